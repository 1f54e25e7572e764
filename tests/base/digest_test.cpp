
#include <set>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "support/catch.hpp"

using wye::Digest;
using wye::Hasher;

namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

TEST_CASE("a digest is BLAKE2b with 256 bits", "[base]") {
  // The RFC's own vector is for 512 bits; these are what `b2sum -l 256` of GNU coreutils prints.
  CHECK(wye::digest(bytes("")).hex() == "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  CHECK(wye::digest(bytes("abc")).hex() ==
        "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  const std::string longer(100'000, 'x');
  CHECK(wye::digest(bytes(longer)) != wye::digest(bytes(std::string_view(longer).substr(1))));
}

TEST_CASE("a hasher frames each field by its length", "[base]") {
  std::string framed("\x02\0\0\0\0\0\0\0ab\x01\0\0\0\0\0\0\0c", 19);
  CHECK(Hasher().add("ab").add("c").finish() == wye::digest(bytes(framed)));

  std::set<Digest> digests;
  digests.insert(Hasher().add("ab").add("c").finish());
  digests.insert(Hasher().add("a").add("bc").finish());
  digests.insert(Hasher().add("abc").finish());
  digests.insert(Hasher().add("abc").add("").finish());
  digests.insert(Hasher().add("").add("abc").finish());
  digests.insert(Hasher().finish());
  CHECK(digests.size() == 6);
}

TEST_CASE("a number is a field of eight bytes, the lowest first", "[base]") {
  const std::string_view little_endian("\x08\x07\x06\x05\x04\x03\x02\x01", 8);
  CHECK(Hasher().add(std::uint64_t{0x0102030405060708}).finish() == Hasher().add(little_endian).finish());
}

TEST_CASE("a hasher is fresh after it finished, and its copy is independent", "[base]") {
  Hasher hasher;
  const Digest first = hasher.add("x").finish();
  CHECK(hasher.add("x").finish() == first);

  hasher.add("x");
  Hasher copy = hasher;
  copy.add("y");
  CHECK(hasher.finish() == first);
  CHECK(copy.finish() == Hasher().add("x").add("y").finish());
}

TEST_CASE("a field may have any length", "[base]") {
  const std::vector<std::byte> field(3 * 1024 * 1024 + 1, std::byte{0x5a});
  const Digest whole = Hasher().add(field).finish();
  CHECK(whole == Hasher().add(field).finish());
  CHECK(whole != Hasher().add(std::span(field).first(field.size() - 1)).finish());
}
