#pragma once
// The card and the bare driver, for benchmarks of both.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lane.hpp"
#include "peers/raw_cuda.hpp"

namespace wye_bench {

/// Keeps the driver and its primary context open for later set-ups: opening them takes half a
/// second. The context is not current. The process does not close them at its end, because the
/// driver may have ended before.
inline RawCuda* kept = nullptr;
inline void keep_driver() {
  std::string why;
  if (kept) return;
  kept = RawCuda::open(why).release();
  if (kept) kept->leave();
}
/// Closes them, for a benchmark that measures how long opening takes.
inline void close_driver() {
  if (kept) kept->enter();
  delete std::exchange(kept, nullptr);
}

inline std::unique_ptr<RawCuda> raw(benchmark::State& state) {
  keep_driver();
  std::string why;
  auto peer = RawCuda::open(why);
  if (!peer) state.SkipWithError(why.c_str());
  return peer;
}

/// The bytes of a large array, and few for a stand-in.
inline std::size_t large() { return sized(256u << 20, 1u << 20); }

/// Copies `halves` halves of what is `large`: as many bytes are read, and as many written.
inline void copy_raw(benchmark::State& state, int halves) {
  auto cuda = raw(state);
  if (!cuda) return;
  const std::size_t bytes = large() / 2 * static_cast<std::size_t>(halves);
  const auto x = random_values<std::uint32_t>(bytes / sizeof(std::uint32_t), 3);
  std::vector<std::uint32_t> back(x.size());
  const std::uint64_t from = cuda->memory(bytes), to = cuda->memory(bytes);
  if (from == 0 || to == 0) return state.SkipWithError("no room");
  if (!cuda->write(from, x.data(), bytes) || !cuda->copy(to, from, bytes) ||
      !cuda->read(back.data(), to, bytes) || back != x)
    return state.SkipWithError("the copy is something else");
  for (auto _ : state)
    if (!cuda->copy(to, from, bytes) || !cuda->wait()) state.SkipWithError("failed");
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * bytes));
}

}  // namespace wye_bench
