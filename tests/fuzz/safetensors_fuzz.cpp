// A file of tensors: what is accepted lies within the file, and is found by its name.
#include <wye/models/safetensors.hpp>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/edits.hpp"
#include "models/safetensors_file.hpp"

namespace {

using namespace wye;

constexpr std::string_view header =
    R"({"__metadata__":{"format":"pt"},"a\n":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]},"c":{"dtype":"BF16","shape":[0,3],"data_offsets":[9,9]},)"
    R"("d":{"dtype":"I64","shape":[1],"data_offsets":[9,17]}})";

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<char> letters(header.begin(), header.end());
  static const std::vector<std::byte> elements(17, std::byte{1}),
      valid = test::file_of_tensors(header, elements);
  test::Input input(data, size);
  std::vector<std::byte> bytes;
  if (input.take<std::uint8_t>() % 4 == 0) {
    bytes = test::edited(valid, input);
  } else {
    // The length of the header is right, so that the reader of its words is reached.
    const std::vector<char> changed = test::edited(letters, input);
    bytes = test::file_of_tensors({changed.data(), changed.size()}, elements);
  }
  const bool is_valid = bytes == valid;
  const auto file = models::Safetensors::borrow(bytes);
  expect(file || !is_valid);
  if (!file) {
    expect(file.error() == Errc::corrupt || file.error() == Errc::unsupported);
    return 0;
  }
  expect(test::wrong_with(*file, bytes).empty());
  for (const models::Tensor& tensor : file->tensors()) {
    const auto floats = file->elements<float>(tensor.name);
    if (floats) expect(tensor.type == ElementType::float32 && floats->size_bytes() == tensor.bytes.size());
    // The sanitizer refuses a bool that is read as another number than 0 and 1.
    const auto booleans = file->elements<bool>(tensor.name, tensor.shape);
    if (booleans) expect(std::ranges::count(*booleans, true) <= std::ssize(*booleans));
  }
  if (const auto found = file->tensor("b"); !found) expect(found.error() == Errc::not_found);
  return 0;
}
