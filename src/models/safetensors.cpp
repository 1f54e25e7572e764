#include <wye/models/safetensors.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "json_reader.hpp"
#include "mapped_file.hpp"

namespace wye::inline v0::models {
namespace {

constexpr std::uint64_t length_bytes = 8;  // of the header's length, before the header
constexpr std::string_view about = "__metadata__";

struct Type {
  std::string_view name;  // in the file
  ElementType element;
  std::uint32_t size;
};
constexpr std::array<Type, 13> types{{
    {"BOOL", ElementType::boolean, 1},
    {"U8", ElementType::uint8, 1},
    {"I8", ElementType::int8, 1},
    {"I16", ElementType::int16, 2},
    {"U16", ElementType::uint16, 2},
    {"F16", ElementType::float16, 2},
    {"BF16", ElementType::bfloat16, 2},
    {"I32", ElementType::int32, 4},
    {"U32", ElementType::uint32, 4},
    {"F32", ElementType::float32, 4},
    {"F64", ElementType::float64, 8},
    {"I64", ElementType::int64, 8},
    {"U64", ElementType::uint64, 8},
}};

std::uint32_t size_of(ElementType element) {
  const auto* const found = std::ranges::find(types, element, &Type::element);
  return found == types.end() ? 1 : found->size;
}

std::string number(std::uint64_t value) { return std::to_string(value); }

/// Returns a text of a file between quotes, cut after 100 bytes, without control characters.
std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 100;
  std::size_t end = std::min(text.size(), longest);
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0u) == 0x80u;
  };
  while (end < text.size() && end > 0 && continues(end)) --end;
  std::string all = "'";
  for (const char c : text.substr(0, end)) all += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return all + (end < text.size() ? "...'" : "'");
}

Error no_json(const std::string& subject, std::uint64_t at, std::uint64_t size) {
  return Error(Errc::corrupt, subject + " has a header that is no JSON: the error is at byte " + number(at) +
                                  " of " + number(size) + ".");
}

struct Entry {
  std::string_view name;
  ElementType type = ElementType::opaque;
  std::size_t first_dimension = 0;
  std::size_t dimensions = 0;
  std::uint64_t begin = 0;  // in the data
  std::uint64_t end = 0;
};

struct Contents {
  std::vector<char> text;  // of all names and metadata; it never grows beyond its first capacity
  std::vector<std::uint64_t> dimensions;
  std::vector<Entry> entries;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
};

/// Takes the header's JSON piece by piece and stops at the first contradiction. It keeps no tree:
/// its memory is proportional to the header's length.
class HeaderReader final : public Json::json_sax_t {
 public:
  HeaderReader(const std::string& subject, std::uint64_t header_size, std::uint64_t data_size)
      : subject_(subject), header_size_(header_size), data_size_(data_size) {
    // A text without its escapes is no longer than with them, so views of it stay valid.
    contents_.text.reserve(static_cast<std::size_t>(header_size));
  }
  HeaderReader(const HeaderReader&) = delete;
  HeaderReader& operator=(const HeaderReader&) = delete;

  Contents& contents() { return contents_; }
  /// Returns why the header was refused, if it was.
  const std::optional<Error>& error() const { return error_; }

  bool null() override { return refuse_value("a null"); }
  bool boolean(bool) override { return refuse_value("a boolean"); }
  bool number_integer(number_integer_t) override { return refuse_value("a negative number"); }
  bool number_float(number_float_t, const string_t& digits) override {
    return refuse_value("the number " + digits.substr(0, 40));
  }
  bool binary(binary_t&) override { return refuse_value("binary"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) {
      if (shape_size() == Safetensors::max_dimensions)
        return refuse_tensor(Errc::unsupported, "with more dimensions than the limit (" +
                                                    number(Safetensors::max_dimensions) + ")");
      contents_.dimensions.push_back(value);
      return true;
    }
    if (place_ == Place::offsets) {
      if (offsets_ == 2) return refuse_tensor(Errc::corrupt, "with more than two data_offsets");
      (offsets_++ == 0 ? entry_.begin : entry_.end) = value;
      return true;
    }
    return refuse_value("a number");
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      contents_.metadata.emplace_back(kept(metadata_key_), kept(value));
      return true;
    }
    if (place_ != Place::tensor || key_ != Key::dtype) return refuse_value("a string");
    const auto* const found = std::ranges::find(types, std::string_view(value), &Type::name);
    if (found != types.end()) {
      entry_.type = found->element;
      return true;
    }
    std::string known;
    for (const Type& type : types) known += (known.empty() ? "" : ", ") + std::string(type.name);
    return refuse_tensor(Errc::unsupported,
                         "of the element type " + in_quotes(value) + "; supported are " + known);
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::file;
      return true;
    }
    if (place_ != Place::file) return refuse_value("an object");
    place_ = is_about_ ? Place::metadata : Place::tensor;
    return true;
  }

  bool key(string_t& name) override {
    if (place_ == Place::file) return begin_tensor(name);
    if (place_ == Place::metadata) {
      metadata_key_ = name;
      return true;
    }
    if (name == "dtype")
      key_ = Key::dtype;
    else if (name == "shape")
      key_ = Key::shape;
    else if (name == "data_offsets")
      key_ = Key::offsets;
    else
      return refuse_tensor(Errc::unsupported, "with the key " + in_quotes(name) +
                                                  "; supported are dtype, shape and data_offsets");
    if (std::exchange(seen_[static_cast<std::size_t>(key_)], true))
      return refuse_tensor(Errc::corrupt, "with two values of " + std::string(key_names[index()]));
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || key_ == Key::dtype) return refuse_value("an array");
    place_ = key_ == Key::shape ? Place::shape : Place::offsets;
    return true;
  }

  bool end_array() override {
    if (place_ == Place::offsets && offsets_ != 2)
      return refuse_tensor(Errc::corrupt, "with " + number(offsets_) + " data_offsets instead of two");
    place_ = Place::tensor;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor && !end_tensor()) return false;
    place_ = place_ == Place::file ? Place::outside : Place::file;
    return true;
  }

  bool parse_error(std::size_t at, const std::string&, const Json::exception&) override {
    error_ = no_json(subject_, at, header_size_);
    return false;
  }

 private:
  enum class Place { outside, file, metadata, tensor, shape, offsets };  // the innermost open one
  enum class Key { dtype, shape, offsets };
  static constexpr std::array<std::string_view, 3> key_names{"dtype", "shape", "data_offsets"};

  std::size_t index() const { return static_cast<std::size_t>(key_); }
  std::size_t shape_size() const { return contents_.dimensions.size() - entry_.first_dimension; }
  std::span<const std::uint64_t> shape() const {
    return std::span(contents_.dimensions).subspan(entry_.first_dimension);
  }

  std::string_view kept(std::string_view text) {
    auto& all = contents_.text;
    const std::size_t at = all.size();
    all.insert(all.end(), text.begin(), text.end());
    return {all.data() + at, text.size()};
  }

  bool refuse(Errc code, const std::string& rest) {
    error_ = Error(code, subject_ + " " + rest + ".");
    return false;
  }
  bool refuse_tensor(Errc code, const std::string& rest) {
    return refuse(code, "has the tensor " + in_quotes(entry_.name) + " " + rest);
  }
  /// Refuses a value of another kind than its place has.
  bool refuse_value(const std::string& kind) {
    if (place_ == Place::file)
      return refuse(Errc::corrupt, "has " + kind + " at the key " +
                                       in_quotes(is_about_ ? about : entry_.name) + " instead of an object");
    if (place_ == Place::metadata)
      return refuse(Errc::corrupt, "has " + kind + " at the key " + in_quotes(metadata_key_) +
                                       " of its metadata instead of a string");
    if (place_ == Place::tensor)
      return refuse_tensor(Errc::corrupt,
                           "with " + kind + " as its " + std::string(key_names[index()]) +
                               (key_ == Key::dtype ? " instead of a string" : " instead of an array"));
    return refuse_tensor(Errc::corrupt, "with " + kind + " in its " + std::string(key_names[index()]) +
                                            " instead of a whole number below 2^64");
  }

  bool begin_tensor(std::string_view name) {
    is_about_ = name == about;
    if (is_about_) {
      if (std::exchange(was_about_, true))
        return refuse(Errc::corrupt, "has two objects " + std::string(about));
      return true;
    }
    seen_ = {};
    offsets_ = 0;
    entry_ = {.name = kept(name), .first_dimension = contents_.dimensions.size()};
    return true;
  }

  bool end_tensor() {
    for (std::size_t i = 0; i < seen_.size(); ++i)
      if (!seen_[i]) return refuse_tensor(Errc::corrupt, "without " + std::string(key_names[i]));
    entry_.dimensions = shape_size();
    const std::string offsets = "data_offsets [" + number(entry_.begin) + ", " + number(entry_.end) + "]";
    if (entry_.begin > entry_.end) return refuse_tensor(Errc::corrupt, "whose " + offsets + " are reversed");
    if (entry_.end > data_size_)
      return refuse_tensor(Errc::corrupt,
                           "whose " + offsets + " end beyond the data (" + number(data_size_) + " bytes)");
    // An empty tensor has a product of its other dimensions, too, which users may compute.
    std::uint64_t bytes = size_of(entry_.type);
    bool is_empty = false, fits = true;
    for (const std::uint64_t dimension : shape()) {
      if (dimension == 0) is_empty = true;
      if (dimension > 0) fits = fits && !__builtin_mul_overflow(bytes, dimension, &bytes);
    }
    if (!fits)
      return refuse_tensor(Errc::corrupt,
                           "whose shape " + shown(shape()) + " has more bytes than 64 bits count");
    if (is_empty) bytes = 0;
    if (bytes != entry_.end - entry_.begin)
      return refuse_tensor(Errc::corrupt, "whose shape " + shown(shape()) + " takes " + number(bytes) +
                                              " bytes, but whose " + offsets + " hold " +
                                              number(entry_.end - entry_.begin));
    contents_.entries.push_back(entry_);
    return true;
  }

  const std::string& subject_;
  std::uint64_t header_size_;
  std::uint64_t data_size_;
  Contents contents_;
  std::optional<Error> error_;
  Place place_ = Place::outside;
  bool is_about_ = false;   // the last key of the file
  bool was_about_ = false;  // an earlier or the last key of the file
  std::string metadata_key_;
  Key key_ = Key::dtype;        // of the tensor
  std::array<bool, 3> seen_{};  // by Key
  std::uint32_t offsets_ = 0;
  Entry entry_;  // the tensor that is read
};

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

/// Returns the length of the header. Fails if the file does not have that many bytes.
Result<std::uint64_t> header_length(std::span<const std::byte> bytes, const std::string& subject) {
  if (bytes.size() < length_bytes)
    return Error(Errc::corrupt, subject + " has " + number(bytes.size()) +
                                    " bytes; the length of the header alone takes " + number(length_bytes) +
                                    ".");
  const std::uint64_t length = little_endian(bytes.first(length_bytes)), rest = bytes.size() - length_bytes;
  if (length > rest)
    return Error(Errc::corrupt, subject + " states a header of " + number(length) + " bytes, but " +
                                    number(rest) + " bytes follow.");
  if (length > Safetensors::max_header)
    return Error(Errc::unsupported, subject + " states a header of " + number(length) +
                                        " bytes; the limit is " + number(Safetensors::max_header) + ".");
  if (length == 0) return Error(Errc::corrupt, subject + " states a header of 0 bytes; the shortest is {}.");
  if (bytes[length_bytes] != std::byte{'{'})
    return Error(Errc::corrupt, subject + " has a header that begins with the byte " +
                                    number(std::to_integer<std::uint64_t>(bytes[length_bytes])) +
                                    " instead of '{' (123).");
  return length;
}

/// Checks that the tensors, in the order of their bytes, are the whole data.
Result<void> check_offsets(const std::vector<Entry>& entries, std::uint64_t data_size,
                           const std::string& subject) {
  std::uint64_t reached = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string tensor = i == 0 ? "the data" : "the tensor " + in_quotes(entries[i - 1].name);
    if (entries[i].begin < reached)
      return Error(Errc::corrupt, subject + " has the tensor " + in_quotes(entries[i].name) + " at byte " +
                                      number(entries[i].begin) + " of its data, before the end (" +
                                      number(reached) + ") of " + tensor + ".");
    if (entries[i].begin > reached)
      return Error(Errc::corrupt, subject + " has " + number(entries[i].begin - reached) +
                                      " bytes of no tensor before the tensor " + in_quotes(entries[i].name) +
                                      ".");
    reached = entries[i].end;
  }
  if (reached == data_size) return {};
  return Error(Errc::corrupt, subject + " has " + number(data_size) +
                                  " bytes of data, but its tensors take " + number(reached) + ".");
}

/// Returns how many letters two names share at their beginnings and ends.
std::size_t likeness(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t front = 0, back = 0;
  while (front < most && a[front] == b[front]) ++front;
  while (front + back < most && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  return front + back;
}

}  // namespace

struct Safetensors::State {
  std::optional<MappedFile> file;  // none if the application has the bytes
  std::string subject;
  std::vector<char> text;
  std::vector<std::uint64_t> dimensions;
  std::vector<Tensor> tensors;
  std::vector<std::uint32_t> by_name;  // positions in `tensors`
  std::vector<std::pair<std::string_view, std::string_view>> metadata;

  std::string_view name_at(std::uint32_t position) const { return tensors[position].name; }
  Result<void> read(std::span<std::byte> bytes);
};

Result<void> Safetensors::State::read(std::span<std::byte> bytes) {
  auto length = header_length(bytes, subject);
  if (!length) return std::move(length).error();
  const auto header = bytes.subspan(length_bytes, static_cast<std::size_t>(*length));
  const auto data = bytes.subspan(length_bytes + header.size());
  HeaderReader reader(subject, header.size(), data.size());
  const auto* const begin = reinterpret_cast<const char*>(header.data());
  // JSON has no zero byte. The parser takes it for the end of the text.
  const auto zero = std::ranges::find(header, std::byte{0});
  if (zero != header.end())
    return no_json(subject, static_cast<std::uint64_t>(zero - header.begin()) + 1, header.size());
  if (!Json::sax_parse(begin, begin + header.size(), &reader)) return *reader.error();

  Contents& contents = reader.contents();
  auto& entries = contents.entries;
  std::ranges::stable_sort(entries, {}, [](const Entry& a) { return std::tuple(a.begin, a.end); });
  by_name.resize(entries.size());
  std::iota(by_name.begin(), by_name.end(), 0u);
  std::ranges::sort(by_name, {}, [&](std::uint32_t i) { return entries[i].name; });
  const auto same = std::ranges::adjacent_find(by_name, {}, [&](std::uint32_t i) { return entries[i].name; });
  if (same != by_name.end())
    return Error(Errc::corrupt, subject + " has two tensors " + in_quotes(entries[*same].name) + ".");
  std::ranges::sort(contents.metadata);
  const auto twice =
      std::ranges::adjacent_find(contents.metadata, {}, [](const auto& pair) { return pair.first; });
  if (twice != contents.metadata.end())
    return Error(Errc::corrupt,
                 subject + " has the key " + in_quotes(twice->first) + " of its metadata twice.");
  if (auto ok = check_offsets(entries, data.size(), subject); !ok) return ok;

  dimensions = std::move(contents.dimensions);
  metadata = std::move(contents.metadata);
  text = std::move(contents.text);
  tensors.reserve(entries.size());
  for (const Entry& entry : entries)
    tensors.push_back({entry.name, entry.type,
                       std::span(std::as_const(dimensions)).subspan(entry.first_dimension, entry.dimensions),
                       data.subspan(static_cast<std::size_t>(entry.begin),
                                    static_cast<std::size_t>(entry.end - entry.begin))});
  return {};
}

Result<Safetensors> Safetensors::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return std::move(file).error();
  auto state = std::make_shared<State>();
  state->subject = "File '" + path + "'";
  const auto bytes = file->bytes();
  state->file.emplace(std::move(*file));
  if (auto ok = state->read(bytes); !ok) return std::move(ok).error();
  return Safetensors(std::move(state));
}

Result<Safetensors> Safetensors::borrow(std::span<std::byte> bytes, std::string subject) {
  auto state = std::make_shared<State>();
  state->subject = std::move(subject);
  if (auto ok = state->read(bytes); !ok) return std::move(ok).error();
  return Safetensors(std::move(state));
}

std::span<const Tensor> Safetensors::tensors() const noexcept { return state_->tensors; }

Result<Tensor> Safetensors::tensor(std::string_view name) const {
  const auto named = [this](std::uint32_t i) { return state_->name_at(i); };
  const auto found = std::ranges::lower_bound(state_->by_name, name, {}, named);
  if (found != state_->by_name.end() && named(*found) == name) return state_->tensors[*found];

  std::string sentence =
      state_->subject + " has no tensor " + in_quotes(name) + " among its " + number(state_->tensors.size());
  // Names that share more than half of their letters with the wanted one, otherwise the first ones.
  std::array<std::pair<std::size_t, std::string_view>, 3> nearest{};
  for (const Tensor& tensor : state_->tensors) {
    const std::size_t shared = likeness(tensor.name, name);
    if (2 * shared <= std::max(tensor.name.size(), name.size()) || shared <= nearest.back().first) continue;
    nearest.back() = {shared, tensor.name};
    std::ranges::stable_sort(nearest, std::greater(), [](const auto& pair) { return pair.first; });
  }
  std::string names;
  const auto add = [&](std::string_view one) { names += (names.empty() ? "" : ", ") + in_quotes(one); };
  for (const auto& [shared, one] : nearest)
    if (shared > 0) add(one);
  if (!names.empty()) return Error(Errc::not_found, sentence + "; similar names are " + names + ".");
  for (const Tensor& tensor : tensors().first(std::min<std::size_t>(3, tensors().size()))) add(tensor.name);
  if (!names.empty()) return Error(Errc::not_found, sentence + "; the first names are " + names + ".");
  return Error(Errc::not_found, sentence + ".");
}

std::optional<std::string_view> Safetensors::metadata(std::string_view key) const noexcept {
  const auto found =
      std::ranges::lower_bound(state_->metadata, key, {}, [](const auto& pair) { return pair.first; });
  if (found == state_->metadata.end() || found->first != key) return std::nullopt;
  return found->second;
}

Result<std::span<std::byte>> Safetensors::elements_of(std::string_view name, ElementType type,
                                                      const std::span<const std::uint64_t>* shape) const {
  auto found = tensor(name);
  if (!found) return std::move(found).error();
  const std::string has = state_->subject + " has the tensor " + in_quotes(name) + " ";
  if (found->type != type)
    return Error(Errc::invalid_argument, has + "of " + std::string(wye::name(found->type)) +
                                             ", but the caller expects " + std::string(wye::name(type)) +
                                             ".");
  if (shape != nullptr && !std::ranges::equal(found->shape, *shape))
    return Error(Errc::invalid_argument,
                 has + "of shape " + shown(found->shape) + ", but the caller expects " + shown(*shape) + ".");
  const std::uint32_t size = size_of(type);
  if (reinterpret_cast<std::uintptr_t>(found->bytes.data()) % size != 0)
    return Error(Errc::unsupported, has + "at an address that is no multiple of " + number(size) +
                                        " bytes, the size of its elements; copy its bytes.");
  if (type == ElementType::boolean) {
    const auto wrong =
        std::ranges::find_if(found->bytes, [](std::byte value) { return value > std::byte{1}; });
    if (wrong != found->bytes.end())
      return Error(Errc::corrupt, has + "of booleans, of which number " +
                                      number(static_cast<std::uint64_t>(wrong - found->bytes.begin())) +
                                      " is " + number(std::to_integer<std::uint64_t>(*wrong)) +
                                      " instead of 0 or 1.");
  }
  return found->bytes;
}

}  // namespace wye::models
