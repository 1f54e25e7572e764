#pragma once
// Records over two child processes, by hand: memory that they share, two slots for each, futexes. It
// handles no failure.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace peers {

/// Runs `run(in, out, records)` on all records, in batches, in `workers` children of `fork`.
void distribute_by_ring(std::span<const std::byte> in, std::size_t record, std::span<std::byte> out,
                        std::size_t result, std::size_t batch, unsigned workers,
                        const std::function<void(const std::byte*, std::byte*, std::size_t)>& run);

}  // namespace peers
