#include "cache/store/artefact_bytes.hpp"

#include <random>

#include "base/checksum.hpp"
#include "support/catch.hpp"

using namespace wye;
using cache::decode;
using cache::encode;

namespace {

device::Artefact rich() {
  device::Artefact a;
  a.kernel = "scale";
  a.language = "spirv";
  a.entry = "go";
  for (int i = 0; i < 100; ++i) a.code.push_back(static_cast<std::byte>(i * 37));
  a.specialization = {{3, 4, 64}, {5, 8, 0x123456789abcdef0}};
  a.schema.slots = {{"x", SlotKind::buffer, Access::read_write, ElementType::float32, 4},
                    {"", SlotKind::structure, Access::read, ElementType::opaque, 12},
                    {"address", SlotKind::address, Access::write, ElementType::uint64, 0}};
  using Kind = device::Passing::Kind;
  a.passing = {{Kind::descriptor, 3, 0}, {Kind::bytes, 0, 16}, {Kind::span, 0, 32}};
  a.parameter_bytes = 48;
  a.workgroup = Extent3(8, 4, 2);
  a.tile = Extent3(0, 16, 1ull << 40);
  a.needs = {Feature::float64, Feature::host_memory, Feature::float16};
  a.dynamic_shared = 4096;
  a.key = Hasher().add("a key").finish();
  return a;
}

void check_same(const device::Artefact& a, const device::Artefact& b) {
  CHECK(a.kernel == b.kernel);
  CHECK(a.language == b.language);
  CHECK(a.entry == b.entry);
  CHECK(a.code == b.code);
  CHECK(a.specialization == b.specialization);
  CHECK(a.schema == b.schema);
  CHECK(a.passing == b.passing);
  CHECK(a.parameter_bytes == b.parameter_bytes);
  CHECK(a.workgroup == b.workgroup);
  CHECK(a.tile == b.tile);
  CHECK(a.needs == b.needs);
  CHECK(a.dynamic_shared == b.dynamic_shared);
  CHECK(a.launch == b.launch);
  CHECK(a.key == b.key);
}

}  // namespace

TEST_CASE("an artefact survives encoding and decoding", "[cache]") {
  const device::Artefact full = rich();
  const auto again = decode(encode(full), full.key);
  REQUIRE(again);
  check_same(full, *again);

  device::Artefact empty;
  empty.key = full.key;
  const auto still_empty = decode(encode(empty), empty.key);
  REQUIRE(still_empty);
  check_same(empty, *still_empty);
}

TEST_CASE("launch options are stored, and default options take no bytes", "[cache]") {
  for (const LaunchOptions& launch :
       {LaunchOptions{.cluster = Extent3(2, 4)}, LaunchOptions{.cooperative = true},
        LaunchOptions{.shared_carveout = 0}, LaunchOptions{Extent3(8), true, 100}}) {
    device::Artefact a = rich();
    a.launch = launch;
    CHECK(encode(a).size() > encode(rich()).size());
    const auto again = decode(encode(a), a.key);
    REQUIRE(again);
    check_same(a, *again);
  }
}

TEST_CASE("the stored form of a version is the same on every machine", "[cache]") {
  CHECK(digest(encode(rich())).hex() == "233aaba92eefe1d905bb3db08b374da4cea4507a1e296fd1b2357a40c72b4755");
}

TEST_CASE("bytes of another key are not decoded", "[cache]") {
  const device::Artefact full = rich();
  CHECK_FALSE(decode(encode(full), Hasher().add("another key").finish()));
}

TEST_CASE("every truncation and every flipped bit is detected", "[cache]") {
  const device::Artefact full = rich();
  const auto bytes = encode(full);
  std::size_t accepted = 0;
  for (std::size_t length = 0; length < bytes.size(); ++length)
    accepted += decode(std::span(bytes).first(length), full.key).has_value();
  auto longer = bytes;
  longer.push_back(std::byte{0});
  accepted += decode(longer, full.key).has_value();
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (unsigned bit = 0; bit < 8; ++bit) {
      auto flipped = bytes;
      flipped[at] ^= static_cast<std::byte>(1u << bit);
      accepted += decode(flipped, full.key).has_value();
    }
  CHECK(accepted == 0);
  CHECK(decode(bytes, full.key));
}

TEST_CASE("a malformed payload with a valid checksum is refused", "[cache]") {
  // A faulty writer, or an attacker, could leave such bytes. Nothing is read outside the bytes, and
  // nothing huge is allocated.
  const device::Artefact full = rich();
  const auto whole = encode(full);
  constexpr std::size_t header = 10 + 8 + 32 + 8;
  const auto sealed = [&](std::vector<std::byte> payload) {
    std::vector<std::byte> record(whole.begin(), whole.begin() + header);
    for (unsigned i = 0; i < 8; ++i)
      record[header - 8 + i] = static_cast<std::byte>(std::uint64_t{payload.size()} >> (8 * i));
    const base::Checksum sum = base::checksum(record, payload);
    record.insert(record.end(), sum.begin(), sum.end());
    record.insert(record.end(), payload.begin(), payload.end());
    return record;
  };
  const std::vector<std::byte> payload(whole.begin() + header + sizeof(base::Checksum), whole.end());
  REQUIRE(decode(sealed(payload), full.key));
  std::size_t accepted = 0;
  for (std::size_t length = 0; length < payload.size(); ++length)
    accepted +=
        decode(sealed({payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(length)}), full.key)
            .has_value();
  CHECK(accepted == 0);
  std::mt19937 random(7);
  for (std::size_t at = 0; at < payload.size(); ++at)
    for (const unsigned value : {0u, 1u, 127u, 255u, static_cast<unsigned>(random() % 256)}) {
      auto changed = payload;
      changed[at] = static_cast<std::byte>(value);
      const auto decoded = decode(sealed(changed), full.key);
      if (decoded && decoded->passing.size() != decoded->schema.slots.size()) ++accepted;
    }
  CHECK(accepted == 0);
}
