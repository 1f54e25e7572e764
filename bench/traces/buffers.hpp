#pragma once
/// The buffers that programs create and destroy.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wye_bench {

/// Returns what each of several programs did, event by event: n > 0 creates a buffer of n bytes; -n
/// destroys the n-th youngest buffer of the program.
std::span<const std::span<const std::int32_t>> recorded_buffers();

/// One event of all programs.
struct BufferEvent {
  std::uint32_t buffer = 0;  ///< a number from 0, which a later buffer gets again after the destruction
  std::uint64_t bytes = 0;   ///< 0: it is destroyed
};

/// The programs as parts of one: their events take turns at random, the same ones each time. What a
/// program left alive at its end is destroyed then.
struct BufferTrace {
  std::vector<BufferEvent> events;
  std::size_t most_alive = 0;    ///< buffers
  std::uint64_t most_bytes = 0;  ///< of the buffers that are alive at the same time
};
BufferTrace interleaved_buffers();

}  // namespace wye_bench
