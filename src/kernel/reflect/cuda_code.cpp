#include "kernel/reflect/cuda_code.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "base/text.hpp"
#include "spirv/module.hpp"

namespace wye::inline v0::kernel {

namespace {

/// The most bytes of a kernel's parameters. A launch accepts at most 32,764.
constexpr std::uint64_t most_parameter_bytes = 1 << 16;

std::optional<std::uint64_t> to_number(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// Makes the error for a missing entry point: "The code has no kernel 'c' (it has 'a', 'b')."
Error no_entry(std::string_view entry, const std::vector<std::string>& names) {
  constexpr std::size_t most_shown = 8;
  std::string others;
  for (std::size_t i = 0; i < names.size() && i < most_shown; ++i)
    others += base::text("{}'{}'", i == 0 ? "" : ", ", spirv::printable(names[i]));
  if (names.size() > most_shown) others += base::text(" and {} more", names.size() - most_shown);
  const std::string mangled = base::text("_Z{}{}", entry.size(), entry);
  const bool in_cpp = std::any_of(names.begin(), names.end(),
                                  [&](const std::string& name) { return name.starts_with(mangled); });
  return base::invalid(names.empty()
                           ? std::string("The code has no kernel.")
                           : base::text("The code has no kernel '{}' (it has {}){}.", entry, others,
                                        in_cpp ? ", because its function is not declared extern \"C\"" : ""));
}

void end_block(Interface& interface) {
  for (const PushMember& member : interface.members)
    interface.push_bytes = std::max(interface.push_bytes, member.offset + member.size);
}

// ---- PTX

struct PtxType {
  std::string_view name;
  std::uint32_t size;
  ElementType element;  ///< opaque: untyped bits
};

constexpr PtxType ptx_types[] = {
    {".b8", 1, ElementType::opaque},    {".b16", 2, ElementType::opaque},   {".b32", 4, ElementType::opaque},
    {".b64", 8, ElementType::opaque},   {".b128", 16, ElementType::opaque}, {".u8", 1, ElementType::uint8},
    {".u16", 2, ElementType::uint16},   {".u32", 4, ElementType::uint32},   {".u64", 8, ElementType::uint64},
    {".s8", 1, ElementType::int8},      {".s16", 2, ElementType::int16},    {".s32", 4, ElementType::int32},
    {".s64", 8, ElementType::int64},    {".f16", 2, ElementType::float16},  {".f32", 4, ElementType::float32},
    {".f64", 8, ElementType::float64},  {".f16x2", 4, ElementType::opaque}, {".bf16", 2, ElementType::opaque},
    {".bf16x2", 4, ElementType::opaque}};

/// Iterates over the words of PTX: names with their dots, numbers, single punctuation characters.
/// Skips comments; a string is one word without its content.
class PtxWords {
 public:
  explicit PtxWords(std::string_view text) : text_(text) { advance(); }

  std::string_view word() const { return word_; }
  bool at_end() const { return word_.empty(); }
  std::string_view take() {
    const std::string_view word = word_;
    advance();
    return word;
  }
  bool take(std::string_view wanted) {
    if (word_ != wanted) return false;
    advance();
    return true;
  }

 private:
  static bool in_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.' || c == '$' || c == '%';
  }

  void advance() {
    at_ = skip(at_);
    std::size_t end = at_;
    if (end < text_.size() && text_[end] == '"')
      end = std::min(text_.find('"', end + 1), text_.size() - 1) + 1;
    else
      while (end < text_.size() && in_word(text_[end])) ++end;
    if (end == at_ && end < text_.size()) ++end;
    word_ = text_.substr(at_, end - at_);
    at_ = end;
  }

  /// Returns the next position after blanks and comments.
  std::size_t skip(std::size_t at) const {
    while (at < text_.size()) {
      const std::string_view two = text_.substr(at, 2);
      if (two == "//") {
        at = std::min(text_.find('\n', at), text_.size());
      } else if (two == "/*") {
        at = std::min(text_.find("*/", at + 2), text_.size() - 2) + 2;
      } else if (static_cast<unsigned char>(text_[at]) <= ' ') {
        ++at;
      } else {
        break;
      }
    }
    return at;
  }

  std::string_view text_, word_;
  std::size_t at_ = 0;
};

class PtxReader {
 public:
  PtxReader(std::string_view text, std::string_view entry) : words_(text), entry_(entry) {}

  Result<CudaCode> run() {
    std::size_t open = 0;
    while (!words_.at_end()) {
      const std::string_view word = words_.take();
      if (word == "{") {
        ++open;
      } else if (word == "}") {
        if (open-- == 0) return damaged("a '}' has no '{'");
      } else if (word == ".target" && open == 0) {
        if (auto done = read_target(); !done) return std::move(done).error();
      } else if (word == ".version" && open == 0) {
        read_version();
      } else if (word == ".entry" && open == 0) {
        if (auto done = read_entry(); !done) return std::move(done).error();
      }
    }
    if (open != 0) return damaged("a '{' has no '}'");
    if (out_.architecture.number == 0) return damaged("it has no .target");
    if (!found_) return no_entry(entry_, names_);
    end_block(out_.interface);
    return std::move(out_);
  }

 private:
  static Error damaged(std::string_view why) {
    return base::invalid(base::text("The PTX is incomplete or damaged: {}.", why));
  }

  Result<void> read_target() {
    const std::string name(words_.take());
    const auto architecture = parse_architecture(name);
    if (!architecture)
      return damaged(base::text("its .target ('{}') is not an architecture", spirv::printable(name)));
    out_.architecture = *architecture;
    return {};
  }

  /// Reads "8.2". The driver judges other text.
  void read_version() {
    const std::string_view text = words_.take();
    const std::size_t dot = std::min(text.find('.'), text.size());
    const auto major = to_number(text.substr(0, dot));
    const auto minor = to_number(text.substr(std::min(dot + 1, text.size())));
    if (major && minor && *major < 100 && *minor < 10)
      out_.version = static_cast<unsigned>(*major * 10 + *minor);
  }

  Result<void> read_entry() {
    names_.emplace_back(words_.take());
    const bool wanted = names_.back() == entry_;
    CudaCode unused;
    CudaCode& code = wanted ? out_ : unused;
    if (wanted && std::exchange(found_, true))
      return damaged(base::text("it has kernel '{}' twice", spirv::printable(names_.back())));
    std::uint64_t offset = 0;
    if (words_.take("(") && !words_.take(")")) {
      do {
        if (auto done = read_parameter(code.interface, offset); !done) return done;
      } while (words_.take(","));
      if (!words_.take(")")) return damaged("the parameter list of a kernel does not end");
    }
    for (;;) {
      if (words_.take(".maxntid")) {
        auto most = read_threads();
        if (!most) return std::move(most).error();
        code.most_threads = most->count();
      } else if (words_.take(".reqntid")) {
        auto exactly = read_threads();
        if (!exactly) return std::move(exactly).error();
        code.required = *exactly;
      } else if (words_.at_end()) {
        return damaged("it ends within the declaration of a kernel");
      } else if (words_.word() == "{" || words_.word() == ";") {
        return {};
      } else {
        words_.take();
      }
    }
  }

  Result<void> read_parameter(Interface& interface, std::uint64_t& offset) {
    if (!words_.take(".param")) return damaged("a kernel has an invalid parameter");
    PushMember member;
    member.kind = PushMember::Kind::bytes;
    std::uint64_t size = 0, alignment = 0, count = 1;
    bool points = false;
    for (; words_.word().starts_with('.'); words_.take()) {
      const std::string_view word = words_.word();
      if (word == ".texref" || word == ".samplerref" || word == ".surfref")
        return Error(Errc::unsupported, "The code has a texture parameter, which wye does not support.");
      if (word == ".ptr") points = true;
      if (word == ".align") {
        words_.take();
        const auto n = to_number(words_.word());
        if (!n || *n == 0 || *n > 256) return damaged("the alignment of a parameter is invalid");
        if (!points) alignment = *n;  // otherwise it is the alignment of the pointee
      }
      for (const PtxType& type : ptx_types)
        if (type.name == word) size = type.size, member.element = type.element;
    }
    if (size == 0) return damaged("a parameter of a kernel has no type");
    if (points) member.element = ElementType::opaque;
    words_.take();  // its name
    if (words_.take("[")) {
      const auto n = to_number(words_.take());
      if (!n || *n == 0 || *n > most_parameter_bytes || !words_.take("]"))
        return damaged("the size of a parameter is not a valid number");
      count = *n;
      member.element = ElementType::opaque;
    }
    alignment = std::max(alignment, size);
    offset = (offset + alignment - 1) / alignment * alignment;
    if (offset + size * count > most_parameter_bytes) return damaged("its parameters are too large");
    member.offset = static_cast<std::uint32_t>(offset);
    member.size = member.padded_size = member.packed_size = static_cast<std::uint32_t>(size * count);
    offset += size * count;
    interface.members.push_back(std::move(member));
    return {};
  }

  Result<Extent3> read_threads() {
    std::uint64_t n[3] = {1, 1, 1};
    std::size_t i = 0;
    do {
      const auto value = to_number(words_.take());
      if (i == 3 || !value || *value == 0 || *value > std::numeric_limits<std::uint32_t>::max())
        return damaged("the block size of a kernel is invalid");
      n[i++] = *value;
    } while (words_.take(","));
    return Extent3(n[0], n[1], n[2]);
  }

  PtxWords words_;
  std::string_view entry_;
  std::vector<std::string> names_;
  bool found_ = false;
  CudaCode out_;
};

// ---- cubins

Error damaged_cubin(std::string_view why) {
  return base::invalid(base::text("The cubin is damaged: {}.", why));
}

/// Bytes with bounds checks: a read beyond the end returns zero.
class CubinBytes {
 public:
  explicit CubinBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t size() const { return bytes_.size(); }
  bool holds(std::uint64_t at, std::uint64_t n) const { return at <= size() && n <= size() - at; }
  std::uint64_t number(std::uint64_t at, unsigned n) const {
    std::uint64_t value = 0;
    if (holds(at, n))
      for (unsigned i = 0; i < n; ++i)
        value |= std::to_integer<std::uint64_t>(bytes_[static_cast<std::size_t>(at) + i]) << (8 * i);
    return value;
  }
  std::uint32_t number32(std::uint64_t at) const { return static_cast<std::uint32_t>(number(at, 4)); }
  CubinBytes part(std::uint64_t at, std::uint64_t n) const {
    if (!holds(at, n)) return CubinBytes({});
    return CubinBytes(bytes_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(n)));
  }
  /// Returns the text up to a terminating zero; nothing if there is no zero.
  std::optional<std::string_view> text(std::uint64_t at) const {
    if (at >= size()) return std::nullopt;
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at,
                                size() - static_cast<std::size_t>(at));
    const std::size_t end = rest.find('\0');
    if (end == rest.npos) return std::nullopt;
    return rest.substr(0, end);
  }

 private:
  std::span<const std::byte> bytes_;
};

class CubinReader {
 public:
  explicit CubinReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<Architecture> architecture() {
    if (bytes_.size() < header_bytes || bytes_.number32(0) != 0x464c457f || bytes_.number(4, 2) != 0x0102 ||
        bytes_.number(18, 2) != nvidia)
      return base::invalid("The bytes are not a cubin.");
    if (bytes_.number(16, 2) != executable)
      return base::invalid("The cubin is relocatable: it has not been linked.");
    const std::uint32_t flags = bytes_.number32(48);
    const bool newer = bytes_.number(8, 1) >= 8;  // ABI version 8 was introduced by CUDA 13
    Architecture found;
    found.number = newer ? flags >> 8 & 0xff : flags & 0xff;
    if ((flags & (newer ? 0x8u : 0x800u)) != 0) found.only = 'a';
    if (found.number == 0) return damaged_cubin("it has no architecture");
    return found;
  }

  Result<CudaCode> run(std::string_view entry) {
    auto made_for = architecture();
    if (!made_for) return std::move(made_for).error();
    CudaCode code;
    code.architecture = *made_for;
    if (auto done = read_sections(); !done) return std::move(done).error();
    if (auto done = find_kernels(); !done) return std::move(done).error();
    if (std::find(names_.begin(), names_.end(), entry) == names_.end()) return no_entry(entry, names_);
    const std::string info = base::text(".nv.info.{}", entry);
    const auto section =
        std::find_if(sections_.begin(), sections_.end(), [&](const Section& s) { return s.name == info; });
    if (section == sections_.end())
      return damaged_cubin(base::text("it has no attributes of kernel '{}'", entry));
    if (auto done = read_info(section->bytes, code); !done) return std::move(done).error();
    return code;
  }

 private:
  struct Section {
    std::string_view name;
    std::uint32_t kind;
    std::uint32_t link;
    CubinBytes bytes;
  };

  Result<void> read_sections() {
    const std::uint64_t table = bytes_.number(40, 8), count = bytes_.number(60, 2);
    const std::uint64_t names = bytes_.number(62, 2);
    if (bytes_.number(58, 2) != section_bytes || !bytes_.holds(table, count * section_bytes) ||
        names >= count)
      return damaged_cubin("it is truncated, or its section table is invalid");
    std::vector<std::uint32_t> name_at;
    for (std::uint64_t i = 0; i < count; ++i) {
      const CubinBytes header = bytes_.part(table + i * section_bytes, section_bytes);
      const std::uint32_t kind = header.number32(4);
      const std::uint64_t at = header.number(24, 8), size = header.number(32, 8);
      const bool there = kind != no_bytes && kind != 0;
      if (there && !bytes_.holds(at, size)) return damaged_cubin("it is truncated: a section is incomplete");
      name_at.push_back(header.number32(0));
      sections_.push_back({{}, kind, header.number32(40), there ? bytes_.part(at, size) : CubinBytes({})});
    }
    const CubinBytes texts = sections_[static_cast<std::size_t>(names)].bytes;
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (sections_[i].kind == 0) continue;
      const auto name = texts.text(name_at[i]);
      if (!name) return damaged_cubin("a section has no name");
      sections_[i].name = *name;
    }
    return {};
  }

  Result<void> find_kernels() {
    for (const Section& section : sections_) {
      if (section.kind != symbols) continue;
      if (section.link >= sections_.size()) return damaged_cubin("its symbols have no names");
      const CubinBytes texts = sections_[section.link].bytes;
      for (std::uint64_t at = 0; section.bytes.holds(at, symbol_bytes); at += symbol_bytes) {
        if ((section.bytes.number(at + 4, 1) & 0xf) != function ||
            (section.bytes.number(at + 5, 1) & is_kernel) == 0)
          continue;
        const auto name = texts.text(section.bytes.number32(at));
        if (!name) return damaged_cubin("a kernel has no name");
        names_.emplace_back(*name);
      }
    }
    return {};
  }

  /// Reads a list of attributes. Each begins with the form in which its value is stored.
  static Result<void> read_info(CubinBytes info, CudaCode& code) {
    constexpr std::uint64_t sized = 4;  // the form: the size and the value follow
    constexpr std::uint64_t max_threads = 0x05, required_threads = 0x10, parameter = 0x17;
    std::vector<std::optional<PushMember>> members;
    for (std::uint64_t at = 0; at < info.size();) {
      if (!info.holds(at, 4)) return damaged_cubin("a list of attributes is truncated");
      const std::uint64_t form = info.number(at, 1), attribute = info.number(at + 1, 1);
      const std::uint64_t size = form == sized ? info.number(at + 2, 2) : 0;
      at += 4;
      if (!info.holds(at, size)) return damaged_cubin("an attribute is truncated");
      const CubinBytes value = info.part(at, size);
      at += size;
      if (form != sized) continue;
      if (attribute == max_threads || attribute == required_threads) {
        const Extent3 threads(value.number32(0), value.number32(4), value.number32(8));
        if (size < 12 || threads.count() == 0) return damaged_cubin("a block size is invalid");
        if (attribute == max_threads)
          code.most_threads = threads.count();
        else
          code.required = threads;
      }
      if (attribute != parameter) continue;
      const auto ordinal = static_cast<std::size_t>(value.number(4, 2));
      if (size < 12 || ordinal * 4 > most_parameter_bytes)
        return damaged_cubin("a parameter has an invalid number");
      members.resize(std::max(members.size(), ordinal + 1));
      PushMember member;
      member.kind = PushMember::Kind::bytes;
      member.offset = static_cast<std::uint32_t>(value.number(6, 2));
      member.size = member.padded_size = member.packed_size = value.number32(8) >> 18;
      if (members[ordinal]) return damaged_cubin(base::text("it has parameter {} twice", ordinal + 1));
      members[ordinal] = std::move(member);
    }
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!members[i] || members[i]->size == 0)
        return damaged_cubin(base::text("it lacks parameter {} of {}", i + 1, members.size()));
      if (members[i]->offset < end)
        return damaged_cubin(base::text("parameter {} overlaps the previous parameter", i + 1));
      end = members[i]->offset + members[i]->size;
      code.interface.members.push_back(std::move(*members[i]));
    }
    end_block(code.interface);
    return {};
  }

  static constexpr std::uint16_t executable = 2, nvidia = 190;  // of an ELF header
  static constexpr std::uint32_t symbols = 2, no_bytes = 8;     // kinds of sections
  static constexpr std::uint8_t function = 2, is_kernel = 0x10;
  static constexpr std::size_t header_bytes = 64, section_bytes = 64, symbol_bytes = 24;

  CubinBytes bytes_;
  std::vector<Section> sections_;
  std::vector<std::string> names_;
};

}  // namespace

Result<void> check_launch(const std::optional<Extent3>& workgroup, Bytes dynamic_shared,
                          const LaunchOptions& launch, const std::string& kernel) {
  constexpr Extent3 most{1024, 1024, 64};
  if (workgroup && (workgroup->count() == 0 || workgroup->x > most.x || workgroup->y > most.y ||
                    workgroup->z > most.z || workgroup->count() > most.x))
    return base::invalid(base::text(
        "The workgroup of kernel '{}' ({} x {} x {}) is not within 1024 x 1024 x 64 and 1024 in total.",
        kernel, workgroup->x, workgroup->y, workgroup->z));
  if (dynamic_shared.count > std::numeric_limits<std::uint32_t>::max())
    return base::invalid(base::text("The dynamic shared memory of kernel '{}' ({}) exceeds 4 GiB.", kernel,
                                    to_string(dynamic_shared)));
  constexpr std::uint64_t most_of_cluster = 16;
  if (const auto& cluster = launch.cluster;
      cluster && (cluster->count() == 0 || cluster->count() > most_of_cluster))
    return base::invalid(
        base::text("The cluster of kernel '{}' ({} x {} x {}) does not have 1 to {} workgroups.", kernel,
                   cluster->x, cluster->y, cluster->z, most_of_cluster));
  if (launch.shared_carveout > 100u)
    return base::invalid(
        base::text("The share of shared memory that kernel '{}' prefers ({} %) exceeds 100 %.", kernel,
                   *launch.shared_carveout));
  return {};
}

Result<Extent3> block_of(const std::optional<Extent3>& declared, const CudaCode& code,
                         const std::string& kernel) {
  constexpr std::uint64_t usual = 256;
  const auto text = [](Extent3 e) { return base::text("{} x {} x {}", e.x, e.y, e.z); };
  if (code.required) {
    if (declared && *declared != *code.required)
      return base::invalid(
          base::text("The workgroup of kernel '{}' ({}) is not the workgroup that its code requires ({}).",
                     kernel, text(*declared), text(*code.required)));
    return *code.required;
  }
  const std::uint64_t most = code.most_threads == 0 ? usual : code.most_threads;
  if (!declared) return Extent3(std::min(usual, most));
  if (code.most_threads != 0 && declared->count() > most)
    return base::invalid(
        base::text("The workgroup of kernel '{}' ({}) exceeds the limit of its code ({} threads).", kernel,
                   text(*declared), most));
  return *declared;
}

std::optional<Architecture> parse_architecture(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  Architecture found;
  if (name.ends_with('a') || name.ends_with('f')) {
    found.only = name.back();
    name.remove_suffix(1);
  }
  const auto number = to_number(name);
  if (!number || name.size() < 2 || name.size() > 3 || name.front() == '0') return std::nullopt;
  found.number = static_cast<unsigned>(*number);
  return found;
}

std::string to_string(Architecture architecture) {
  return base::text("sm_{}{}", architecture.number,
                    architecture.only == 0 ? std::string() : std::string(1, architecture.only));
}

bool runs_cubin(Architecture code, Architecture device) {
  if (code.only == 'a') return code.number == device.number;
  return code.number / 10 == device.number / 10 && code.number <= device.number;
}

bool runs_ptx(Architecture code, Architecture device) {
  return code.only == 0 ? code.number <= device.number : runs_cubin(code, device);
}

std::uint64_t oldest_driver(unsigned version) noexcept {
  const unsigned major = version / 10, minor = version % 10;
  if (major == 8) return 12'000 + 10 * (minor <= 5 ? minor : minor + 1);  // CUDA 12.5 and 12.6 have PTX 8.5
  if (major == 9) return 13'000 + 10 * minor;
  return 0;
}

Result<CudaCode> reflect_ptx(std::string_view text, std::string_view entry) {
  return PtxReader(text, entry).run();
}

Result<Architecture> cubin_architecture(std::span<const std::byte> bytes) {
  return CubinReader(bytes).architecture();
}

Result<CudaCode> reflect_cubin(std::span<const std::byte> bytes, std::string_view entry) {
  return CubinReader(bytes).run(entry);
}

}  // namespace wye::kernel
