#include "device/operand.hpp"

#include <atomic>

namespace wye {
inline namespace v0 {

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

std::uint64_t detail::next_scratch_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace v0
}  // namespace wye
