#include "base/checksum.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

using wye::base::checksum;

namespace {

std::string hex(const wye::base::Checksum& sum) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : sum)
    text += {digits[std::to_integer<unsigned>(byte >> 4)], digits[std::to_integer<unsigned>(byte) % 16]};
  return text;
}

}  // namespace

TEST_CASE("a checksum is XXH3 with 128 bits, as printed by xxhsum -H2", "[base]") {
  CHECK(hex(checksum({})) == "99aa06d3014798d86001c324468d497f");
  CHECK(hex(checksum(std::as_bytes(std::span("abc", 3)))) == "06b05ab6733a618578af5f94892f3950");
  std::vector<std::byte> bytes;
  for (int i = 0; i < 1000; ++i) bytes.push_back(static_cast<std::byte>(i * 7 + i / 256));
  CHECK(hex(checksum(bytes)) == "bae798f9321bda6cd1db6a0afea2cc82");
}

TEST_CASE("the checksum of two pieces is the checksum of their concatenation", "[base]") {
  std::vector<std::byte> bytes(600);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i);
  const std::span<const std::byte> all(bytes);
  const auto whole = checksum(all);
  for (const std::size_t cut : {0u, 1u, 16u, 17u, 240u, 241u, 599u, 600u})
    CHECK(checksum(all.first(cut), all.subspan(cut)) == whole);
}
