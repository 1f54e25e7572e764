#pragma once
/// The memory that a worker shares with the set: two batches.
#include <wye/base/bytes.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>

#include "process/error_bytes.hpp"

namespace wye::inline v0::records {

enum class SlotState : std::uint32_t {
  empty,     ///< of the set
  given,     ///< has a batch: the worker takes it, or the set takes it back
  running,   ///< of the worker
  answered,  ///< of the set: has results, or an error
};

enum class Stage : std::uint32_t { preparing, ready, failed };

/// One batch. The owner of a state other than `given` may access the other members.
struct Slot {
  std::atomic<std::uint32_t> state{0};  ///< a SlotState, unless the worker wrote something else
  std::uint32_t has_error = 0;
  std::atomic<std::uint64_t> order{0};  ///< batches run in this order
  std::uint64_t count = 0;              ///< records
  std::uint64_t error_bytes = 0;
  std::array<std::byte, process::most_error_bytes> error;

  bool move(SlotState from, SlotState to) noexcept {
    auto expected = static_cast<std::uint32_t>(from);
    return state.compare_exchange_strong(expected, static_cast<std::uint32_t>(to));
  }
  void set(SlotState to) noexcept { state = static_cast<std::uint32_t>(to); }
  bool is(SlotState asked) const noexcept { return state == static_cast<std::uint32_t>(asked); }
};

struct SlotHeader {
  std::atomic<std::uint32_t> stage{0};  ///< a Stage, unless the worker wrote something else
  std::uint64_t error_bytes = 0;        ///< with `Stage::failed`
  std::array<std::byte, process::most_error_bytes> error;
  std::array<Slot, 2> slots;
};

/// The places of records and results in the memory. Both ends compute them from the same numbers.
struct SlotLayout {
  std::uint64_t batch = 0;  ///< records of one slot
  std::uint64_t input = 0;  ///< bytes of one record
  std::uint64_t output = 0;

  static constexpr std::uint64_t aligned(std::uint64_t size) { return (size + 63) / 64 * 64; }
  /// Returns the size of the memory; nothing if it exceeds 2^62 bytes.
  std::optional<Bytes> size() const noexcept {
    constexpr std::uint64_t most = std::uint64_t{1} << 60;
    if (input > most / batch || output > most / batch) return std::nullopt;
    return Bytes{aligned(sizeof(SlotHeader)) + 2 * aligned(batch * input) + 2 * aligned(batch * output)};
  }
  std::span<std::byte> input_of(std::span<std::byte> memory, std::size_t slot) const noexcept {
    return memory.subspan(aligned(sizeof(SlotHeader)) + slot * aligned(batch * input), batch * input);
  }
  std::span<std::byte> output_of(std::span<std::byte> memory, std::size_t slot) const noexcept {
    return memory.subspan(
        aligned(sizeof(SlotHeader)) + 2 * aligned(batch * input) + slot * aligned(batch * output),
        batch * output);
  }
};

inline SlotHeader& header_of(std::span<std::byte> memory) noexcept {
  return *reinterpret_cast<SlotHeader*>(memory.data());
}

}  // namespace wye::records
