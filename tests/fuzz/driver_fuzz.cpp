// Driver code of an earlier process: it equals what was stored, or the driver never receives it.
#include <cstdlib>

#include "cache/store/artefact_bytes.hpp"
#include "fuzz/edits.hpp"
#include "fuzz/record.hpp"

namespace {

using namespace wye;

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Digest key = Hasher().add("key").finish();
  static const std::vector<std::byte> valid = cache::encode(
      cache::DriverRecord{"llvmpipe", "Mesa 22.3.6", std::vector<std::byte>(60, std::byte{5})}, key);
  test::Input input(data, size);
  const bool signs = input.take<std::uint8_t>() % 4 != 0;
  std::vector<std::byte> bytes = test::edited(valid, input);
  if (signs) test::sign_record(bytes);
  const auto decoded = cache::decode_driver(bytes, key);
  if (bytes == valid) expect(decoded.has_value());
  if (!signs && bytes != valid) expect(!decoded);
  if (decoded) expect(cache::encode(*decoded, key) == bytes);
  expect(!cache::decode(bytes, key));  // it is never taken for a kernel either
  return 0;
}
