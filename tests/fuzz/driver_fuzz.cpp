// What a driver made of kernels in an earlier process: it is what was stored, or the driver never sees it.
#include <algorithm>
#include <cstdlib>

#include "cache/artefact_bytes.hpp"
#include "fuzz/edits.hpp"

namespace {

using namespace wye;

// magic 10, version 8, key 32, size 8; then the checksum of these and of all that follows it.
constexpr std::size_t size_at = 50, checksum_at = 58, payload_at = 90;

void sign(std::vector<std::byte>& bytes) {
  if (bytes.size() < payload_at) return;
  const std::uint64_t size = bytes.size() - payload_at;
  for (std::size_t i = 0; i < 8; ++i) bytes[size_at + i] = static_cast<std::byte>(size >> (8 * i));
  const std::span<const std::byte> all(bytes);
  const Digest sum = Hasher().add(all.first(checksum_at)).add(all.subspan(payload_at)).finish();
  std::ranges::copy(sum.bytes, bytes.begin() + checksum_at);
}

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Digest key = Hasher().add("key").finish();
  static const std::vector<std::byte> valid = cache::encode(
      cache::DriverCode{"llvmpipe", "Mesa 22.3.6", std::vector<std::byte>(60, std::byte{5})}, key);
  test::Input input(data, size);
  const bool signs = input.take<std::uint8_t>() % 4 != 0;
  std::vector<std::byte> bytes = test::edited(valid, input);
  if (signs) sign(bytes);
  const auto decoded = cache::decode_driver(bytes, key);
  if (bytes == valid) expect(decoded.has_value());
  if (!signs && bytes != valid) expect(!decoded);
  if (decoded) expect(cache::encode(*decoded, key) == bytes);
  expect(!cache::decode(bytes, key));  // nor is it ever taken for a kernel
  return 0;
}
