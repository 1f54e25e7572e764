#include "device/operand.hpp"

#include <atomic>

namespace wye::inline v0 {

device::Retained::~Retained() = default;

namespace {

/// The bytes of a value that is larger than `Operand::inline_value`.
struct StoredValue final : device::Retained {
  explicit StoredValue(std::span<const std::byte> value) : bytes(value.begin(), value.end()) {}
  std::vector<std::byte> bytes;
};

}  // namespace

std::span<const std::byte> Operand::value() const noexcept {
  if (kind != Kind::value) return {};
  if (size <= inline_value.size()) return std::span(inline_value).first(size);
  return {static_cast<const std::byte*>(data), size};
}

Operand Operand::of_bytes(std::span<const std::byte> bytes) {
  Operand o;
  o.kind = Kind::value;
  o.size = static_cast<std::uint32_t>(bytes.size());
  o.count = 1;
  if (bytes.size() <= o.inline_value.size()) {
    if (!bytes.empty()) std::memcpy(o.inline_value.data(), bytes.data(), bytes.size());
  } else {
    auto stored = std::make_shared<StoredValue>(bytes);
    o.data = stored->bytes.data();
    o.object = std::move(stored);
  }
  return o;
}

std::string_view device::name(Operand::Kind kind) noexcept {
  switch (kind) {
    case Operand::Kind::none: return "nothing";
    case Operand::Kind::host: return "host memory";
    case Operand::Kind::buffer: return "a buffer";
    case Operand::Kind::array: return "an array";
    case Operand::Kind::scratch: return "scratch memory";
    case Operand::Kind::value: return "a value";
    case Operand::Kind::address: return "an address";
  }
  return "unknown";
}

std::uint64_t detail::next_scratch_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace wye
