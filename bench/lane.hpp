#pragma once
// The measured work on a lane, the same for every backend: a kernel x[i] = x[i] <op> by, dispatched
// and waited for, and copies.
#include <benchmark/benchmark.h>
#include <wye/wye.hpp>

#include <unistd.h>

#include <ctime>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace wye_bench {

/// Set by --small: sizes that a stand-in for a device can take, to see that everything runs.
inline bool small = false;
/// `full`, or a small size in its place.
inline std::size_t sized(std::size_t full, std::size_t little) { return small ? little : full; }

/// Returns the resident memory of the process, in bytes. It includes the memory of drivers.
inline double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// Numbers from 1 to 2, or from 0 to 2^20; the same each time. Where there are many, they come
/// again after a prime number.
template <class T>
std::vector<T> random_values(std::size_t n, unsigned seed = 1) {
  constexpr std::size_t period = 1'000'003;
  std::mt19937 random(seed);
  std::vector<T> values(n);
  for (std::size_t i = 0; i < std::min(n, period); ++i) {
    const auto drawn = random() >> 12;
    values[i] = std::is_floating_point_v<T> ? 1 + static_cast<T>(drawn) / (1u << 20) : static_cast<T>(drawn);
  }
  for (std::size_t done = period; done < n; done += period)
    std::copy_n(values.begin(), std::min(period, n - done),
                values.begin() + static_cast<std::ptrdiff_t>(done));
  return values;
}

/// Counts this thread's processor time for each of `n` things that an iteration does: "host_ns".
/// bench/count.sh counts instructions between its two ends, and knows them by their names.
class HostTime {
 public:
  [[gnu::noinline]] explicit HostTime(benchmark::State& state, double n = 1)
      : state_(state), n_(n), begin_(now()) {}
  HostTime(const HostTime&) = delete;
  [[gnu::noinline]] ~HostTime() {
    if (state_.iterations() != 0)
      state_.counters["host_ns"] = (now() - begin_) / (static_cast<double>(state_.iterations()) * n_);
  }

 private:
  static double now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
  }
  benchmark::State& state_;
  double n_;
  double begin_;
};

/// A lane with the kernel and a buffer; benchmarks of it are skipped where there is no device.
template <class T>
struct Lane {
  wye::ContextPool pool;
  wye::ShaderCache cache;
  wye::Lease lease;
  wye::Executable executable;
  wye::Buffer buffer;
  T by;

  /// The kernel has given `expected(x, by)` for random numbers.
  template <class F>
  static std::optional<Lane> open(benchmark::State& state, const std::string& backend,
                                  const wye::Kernel<wye::ReadWrite<T>, T>& kernel, T by, F expected,
                                  std::size_t n = 64) {
    const auto refused = [&](const std::string& why) {
      return state.SkipWithError(why.c_str()), std::nullopt;
    };
    const char* driver = std::getenv("WYE_CUDA_DRIVER");
    auto pool = wye::ContextPool::open(
        {.backends = {backend}, .lane_memory = wye::Bytes{1ull << 30}, .cuda_driver = driver ? driver : ""});
    if (!pool) return refused("no device of '" + backend + "'");
    auto cache = wye::ShaderCache::open().value();
    auto lease = pool->lease().value();
    auto executable = cache.find_or_build(kernel, lease.device());
    if (!executable) return refused(executable.error().sentence());
    auto buffer = lease.buffer<T>(n).value();
    const auto given = random_values<T>(n);
    std::vector<T> taken(n);
    lease.upload(given, buffer);
    lease.dispatch(*executable, wye::arguments(buffer, by));
    lease.download(buffer, taken);
    if (auto done = lease.wait(); !done) return refused(done.error().sentence());
    for (std::size_t i = 0; i < n; ++i)
      if (taken[i] != expected(given[i], by)) return refused("the kernel gives something else");
    return Lane{std::move(*pool),       std::move(cache),  std::move(lease),
                *std::move(executable), std::move(buffer), by};
  }

  void dispatch_and_wait(benchmark::State& state, int times = 1) {
    const auto arguments = wye::arguments(buffer, by);
    for (auto _ : state) {
      for (int i = 0; i < times; ++i) lease.dispatch(executable, arguments);
      if (!lease.wait()) state.SkipWithError("failed");
    }
    state.SetItemsProcessed(state.iterations() * times);
  }

  /// From memory of the host to the buffer and back: both of the buffer's size.
  void go_and_return(benchmark::State& state) {
    const auto source = random_values<T>(buffer.size(), 2);
    std::vector<T> target(source.size(), T(1));
    for (auto _ : state) {
      lease.upload(source, buffer);
      lease.download(buffer, target);
      if (!lease.wait()) state.SkipWithError("failed");
    }
    if (target != source) state.SkipWithError("what comes back is something else");
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * source.size() * sizeof(T)));
  }
};

}  // namespace wye_bench
