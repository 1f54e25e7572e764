#include "base/digest.hpp"

#include <sodium/crypto_generichash_blake2b.h>

#include <cstdint>
#include <new>

namespace wye::inline v0 {
namespace {

using State = crypto_generichash_blake2b_state;

State* state_of(std::byte* storage) { return std::launder(reinterpret_cast<State*>(storage)); }

const unsigned char* octets(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

std::array<std::byte, 8> little_endian(std::uint64_t number) {
  std::array<std::byte, 8> bytes;
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(number & 0xff);
    number >>= 8;
  }
  return bytes;
}

}  // namespace

std::string Digest::hex() const {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (std::byte byte : bytes) {
    text += digits[std::to_integer<unsigned>(byte >> 4)];
    text += digits[std::to_integer<unsigned>(byte & std::byte{15})];
  }
  return text;
}

// libsodium is not initialized by `sodium_init`: BLAKE2b does not need it, and it would open random
// devices in the host's process. None of these calls can fail with a digest of 32 bytes and no key.
Hasher::Hasher() noexcept {
  static_assert(sizeof(State) <= sizeof state_ && alignof(State) <= 64);
  crypto_generichash_blake2b_init(new (state_) State, nullptr, 0, sizeof(Digest::bytes));
}

Hasher& Hasher::add(std::span<const std::byte> field) noexcept {
  const auto length = little_endian(field.size());
  crypto_generichash_blake2b_update(state_of(state_), octets(length.data()), length.size());
  if (!field.empty()) crypto_generichash_blake2b_update(state_of(state_), octets(field.data()), field.size());
  return *this;
}

Hasher& Hasher::add(std::string_view field) noexcept { return add(std::as_bytes(std::span(field))); }

Hasher& Hasher::add(std::uint64_t field) noexcept {
  const auto bytes = little_endian(field);
  return add(std::span<const std::byte>(bytes));
}

Digest Hasher::finish() noexcept {
  Digest result;
  crypto_generichash_blake2b_final(state_of(state_), reinterpret_cast<unsigned char*>(result.bytes.data()),
                                   result.bytes.size());
  *this = Hasher();
  return result;
}

Digest digest(std::span<const std::byte> content) noexcept {
  Digest result;
  crypto_generichash_blake2b(reinterpret_cast<unsigned char*>(result.bytes.data()), result.bytes.size(),
                             octets(content.data()), content.size(), nullptr, 0);
  return result;
}

}  // namespace wye
