#pragma once
/// The beginning of the memory that a worker shares with its parent.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace wye::inline v0::process {

/// Only the parent writes the sizes, before the worker starts. It never reads them back.
struct BlockHeader {
  std::uint64_t message_bytes = 0;
  std::uint64_t memory_offset = 0;
  std::atomic<std::uint32_t> calls{0};  ///< changed by the parent, to wake the worker
  std::atomic<std::uint32_t> has_joined{0};
  std::atomic<bool> is_ending{false};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

constexpr std::size_t block_alignment = 64;

constexpr std::uint64_t aligned(std::uint64_t size) {
  return (size + block_alignment - 1) / block_alignment * block_alignment;
}

}  // namespace wye::process
