// CUDA: what wye adds to the bare driver. Each gives right results for random numbers before it is
// timed. On a machine without a card each is skipped; tests/gpu/run.sh runs them where there is
// one. On the stand-in for the driver (tests/with-stand-in-cuda.sh, --small) they show what wye's
// own code costs: "host_ns", this thread's time for a launch, beside "same_calls", which calls the
// same functions of the driver and does nothing else.
#include <memory>
#include <utility>

#include "cuda.hpp"
#include "lane.hpp"

namespace {

using wye::Bytes;
using wye_bench::close_driver;
using wye_bench::copy_raw;
using wye_bench::HostTime;
using wye_bench::keep_driver;
using wye_bench::large;
using wye_bench::random_values;
using wye_bench::raw;
using wye_bench::sized;

constexpr char cuda_cpp[] = R"(extern "C" __global__ void add(wye_span<unsigned> x, unsigned by) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size) x[i] += by;
})";
constexpr std::size_t few = 64;
constexpr unsigned block = 256;  // wye's default block

std::optional<wye_bench::Lane<std::uint32_t>> open_lane_of(benchmark::State& state, const std::string& name,
                                                           const std::string& text, std::size_t n) {
  keep_driver();
  const auto kernel = wye::Kernel<wye::ReadWrite<std::uint32_t>, std::uint32_t>::make(
      {.name = name, .sources = {wye::CudaCpp{.text = text}}});
  return wye_bench::Lane<std::uint32_t>::open(
      state, "cuda", *kernel, 1u, [](std::uint32_t x, std::uint32_t by) { return x + by; }, n);
}
std::optional<wye_bench::Lane<std::uint32_t>> open_lane(benchmark::State& state, std::size_t n = few) {
  return open_lane_of(state, "add", cuda_cpp, n);
}

struct AddParameters {
  std::uint64_t address, size;
  unsigned by;
};

// The bare driver, and the kernel.
struct RawAdd {
  std::unique_ptr<wye_bench::RawCuda> cuda;
  wye::Cubin cubin;
  AddParameters parameters{};

  static std::optional<RawAdd> open(benchmark::State& state, const std::string& name = "add",
                                    const std::string& text = cuda_cpp) {
    const auto refused = [&](const std::string& why) {
      return state.SkipWithError(why.c_str()), std::nullopt;
    };
    auto cuda = raw(state);
    if (!cuda) return std::nullopt;
    auto compiled = wye::compile(wye::CudaCpp{.text = text}, {.name = name, .target = cuda->architecture()});
    if (!compiled) return refused(compiled.error().sentence());
    RawAdd add{std::move(cuda), *compiled->cubin};
    if (!add.cuda->load(add.cubin.bytes.data(), name.c_str())) return refused("the cubin is refused");
    auto x = random_values<std::uint32_t>(few);
    add.parameters = {add.cuda->memory(few * sizeof(x[0])), few, 1};
    if (!add.cuda->write(add.parameters.address, x.data(), few * sizeof(x[0])) || !add.launch())
      return refused("no launch");
    if (!add.has_added(x, 1)) return refused("the kernel gives something else");
    return add;
  }
  bool launch() { return cuda->launch(1, block, &parameters, 20); }
  bool has_added(std::vector<std::uint32_t> x, unsigned by) {
    std::vector<std::uint32_t> now(few);
    for (auto& one : x) one += by;
    return cuda->read(now.data(), parameters.address, few * sizeof(x[0])) && now == x;
  }
};

// --- Launches

constexpr int batch = 1000;

void dispatch_wye(benchmark::State& state, int times) {
  auto lane = open_lane(state);
  if (!lane) return;
  for (int i = 0; i < times; ++i)  // once, so that nothing has to grow
    lane->lease.dispatch(lane->executable, wye::arguments(lane->buffer, lane->by));
  if (!lane->lease.wait()) return state.SkipWithError("failed");
  const HostTime time(state, times);
  lane->dispatch_and_wait(state, times);
}

void dispatch_raw(benchmark::State& state, int times) {
  auto add = RawAdd::open(state);
  if (!add) return;
  const HostTime time(state, times);
  for (auto _ : state) {
    bool ok = true;
    for (int i = 0; i < times; ++i) ok = ok && add->launch();
    if (!ok || !add->cuda->wait()) state.SkipWithError("failed");
  }
  state.SetItemsProcessed(state.iterations() * times);
}

/// `submission` between the calls that wye makes around one.
template <class F>
void as_wye_calls(benchmark::State& state, wye_bench::RawCuda& cuda, int times, F submission) {
  cuda.leave();
  {
    const HostTime time(state, times);
    for (auto _ : state) {
      bool ok = cuda.enter() && submission() && cuda.mark() && cuda.leave();
      ok = ok && cuda.enter() && cuda.wait_for_mark() && cuda.leave();
      if (!ok) state.SkipWithError("failed");
    }
  }
  cuda.enter();
  state.SetItemsProcessed(state.iterations() * times);
}

void dispatch_same_calls(benchmark::State& state, int times) {
  auto add = RawAdd::open(state);
  if (!add) return;
  as_wye_calls(state, *add->cuda, times, [&] {
    bool ok = true;
    for (int i = 0; i < times; ++i) ok = ok && add->launch();
    return ok;
  });
}

BENCHMARK_CAPTURE(dispatch_wye, sync, 1)->Name("cuda_dispatch_sync/wye")->UseRealTime();
BENCHMARK_CAPTURE(dispatch_raw, sync, 1)->Name("cuda_dispatch_sync/raw_cuda")->UseRealTime();
BENCHMARK_CAPTURE(dispatch_same_calls, sync, 1)->Name("cuda_dispatch_sync/same_calls")->UseRealTime();
BENCHMARK_CAPTURE(dispatch_wye, batch, batch)->Name("cuda_dispatch_batch/wye")->UseRealTime();
BENCHMARK_CAPTURE(dispatch_raw, batch, batch)->Name("cuda_dispatch_batch/raw_cuda")->UseRealTime();
BENCHMARK_CAPTURE(dispatch_same_calls, batch, batch)->Name("cuda_dispatch_batch/same_calls")->UseRealTime();

// --- Waits for kernels that take longer: wye, a thread that only polls, and a thread that only
// sleeps. On the stand-in, the time of a kernel is scripted.

/// Returns the kernel `name`, which adds after so many nanoseconds.
std::string late_add(const std::string& name, int nanoseconds) {
  return R"(__device__ unsigned long long now() {
  unsigned long long time = 0;
#ifdef __CUDA_ARCH__
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
#endif
  return time;
}
extern "C" __global__ void )" +
         name + R"((wye_span<unsigned> x, unsigned by) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned long long end = now() + )" +
         std::to_string(nanoseconds) + R"(;
  while (now() < end) {
  }
  if (i < x.size) x[i] += by;
})";
}

void wait_wye(benchmark::State& state, const char* name, int nanoseconds) {
  if (auto lane = open_lane_of(state, name, late_add(name, nanoseconds), few)) lane->dispatch_and_wait(state);
}
void wait_raw(benchmark::State& state, const char* name, int nanoseconds,
              bool (wye_bench::RawCuda::*wait)()) {
  auto add = RawAdd::open(state, name, late_add(name, nanoseconds));
  if (!add) return;
  for (auto _ : state)
    if (!add->launch() || !add->cuda->mark() || !((*add->cuda).*wait)()) state.SkipWithError("failed");
}

#define WYE_WAITS(time, name, nanoseconds)                                                              \
  BENCHMARK_CAPTURE(wait_wye, name, #name, nanoseconds)->Name("cuda_wait_" time "/wye")->UseRealTime(); \
  BENCHMARK_CAPTURE(wait_raw, name##_polling, #name, nanoseconds, &wye_bench::RawCuda::poll_mark)       \
      ->Name("cuda_wait_" time "/polling")                                                              \
      ->UseRealTime();                                                                                  \
  BENCHMARK_CAPTURE(wait_raw, name##_sleeping, #name, nanoseconds, &wye_bench::RawCuda::sleep_for_mark) \
      ->Name("cuda_wait_" time "/sleeping")                                                             \
      ->UseRealTime()
WYE_WAITS("200us", add_in_200us, 200'000);
WYE_WAITS("10ms", add_in_10ms, 10'000'000);

// --- A graph of launches, each after the previous one

constexpr int in_graph = 32;

void replay_wye(benchmark::State& state) {
  auto lane = open_lane(state);
  if (!lane) return;
  const auto x = random_values<std::uint32_t>(few);
  auto expected = x;
  for (auto& one : expected) one += in_graph;
  std::vector<std::uint32_t> now(few);
  wye::Sequence sequence(lane->lease.device());
  for (int i = 0; i < in_graph; ++i)
    sequence.dispatch(lane->executable, wye::arguments(lane->buffer, lane->by));
  lane->lease.upload(x, lane->buffer);
  lane->lease.submit(sequence);
  lane->lease.download(lane->buffer, now);
  if (!lane->lease.wait() || now != expected) return state.SkipWithError("the sequence gives something else");
  const HostTime time(state);
  for (auto _ : state) {
    lane->lease.submit(sequence);
    if (!lane->lease.wait()) state.SkipWithError("failed");
  }
}
BENCHMARK(replay_wye)->Name("cuda_replay/wye")->UseRealTime();

std::optional<RawAdd> raw_graph(benchmark::State& state) {
  auto add = RawAdd::open(state);
  if (!add) return add;
  const auto x = random_values<std::uint32_t>(few);
  if (!add->cuda->record(in_graph, 1, block, &add->parameters, 20) ||
      !add->cuda->write(add->parameters.address, x.data(), few * sizeof(x[0])) ||
      !add->cuda->launch_graph() || !add->has_added(x, in_graph))
    return state.SkipWithError("the graph gives something else"), std::nullopt;
  return add;
}

void replay_raw(benchmark::State& state) {
  auto add = raw_graph(state);
  if (!add) return;
  const HostTime time(state);
  for (auto _ : state)
    if (!add->cuda->launch_graph() || !add->cuda->wait()) state.SkipWithError("failed");
}
BENCHMARK(replay_raw)->Name("cuda_replay/raw_cuda")->UseRealTime();

void replay_same_calls(benchmark::State& state) {
  if (auto add = raw_graph(state))
    as_wye_calls(state, *add->cuda, 1, [&] { return add->cuda->launch_graph(); });
}
BENCHMARK(replay_same_calls)->Name("cuda_replay/same_calls")->UseRealTime();

// --- Lanes

/// Two submissions of a fill, to two lanes or both to one.
void lane_switch(benchmark::State& state, bool another) {
  auto lane = open_lane(state);
  if (!lane) return;
  auto second = lane->pool.lease();
  if (!second) return state.SkipWithError(second.error().sentence().c_str());
  const auto buffer = second->buffer<std::uint32_t>(few).value();
  wye::Lease& other = another ? *second : lane->lease;
  int n = 0;
  for (auto _ : state) {
    lane->lease.fill(lane->buffer, 1);
    lane->lease.submit();
    other.fill(buffer, 2);
    other.submit();
    if (++n % 128 != 0) continue;
    state.PauseTiming();
    if (!lane->lease.wait() || !second->wait()) state.SkipWithError("failed");
    state.ResumeTiming();
  }
}
BENCHMARK_CAPTURE(lane_switch, two, true)->Name("cuda_lane_switch/wye");
BENCHMARK_CAPTURE(lane_switch, one, false)->Name("cuda_lane_switch/one_lane");

const char* named_driver() {
  const char* named = std::getenv("WYE_CUDA_DRIVER");
  return named ? named : "";
}

/// The memory of a lane after its first use.
void lane_wye(benchmark::State& state) {
  constexpr std::uint32_t lanes = 64;
  keep_driver();
  auto pool = wye::ContextPool::open(
      {.backends = {"cuda"}, .lanes_per_device = lanes + 1, .cuda_driver = named_driver()});
  if (!pool) return state.SkipWithError("no card");
  auto first = pool->lease().value();
  const auto buffer = first.buffer<std::uint32_t>(few).value();
  first.fill(buffer, 0);
  first.wait().value();
  const double host = wye_bench::resident_bytes();
  const auto device = static_cast<double>(first.device().memory().available.count);
  for (auto _ : state) {
    std::vector<wye::Lease> leases;
    for (std::uint32_t i = 0; i < lanes; ++i) {
      leases.push_back(pool->lease().value());
      leases.back().fill(buffer, i);
      leases.back().wait().value();
    }
  }
  state.SetItemsProcessed(state.iterations() * lanes);
  const auto left = static_cast<double>(first.device().memory().available.count);
  state.counters["host_bytes"] = (wye_bench::resident_bytes() - host) / lanes;
  state.counters["device_bytes"] = (device - left) / lanes;
}
BENCHMARK(lane_wye)->Name("cuda_lane/wye")->Iterations(1)->UseRealTime()->Unit(benchmark::kMicrosecond);

/// Opening the card, and the memory in use on it afterwards, of all processes.
void open_wye(benchmark::State& state) {
  close_driver();
  for (auto _ : state) {
    auto pool = wye::ContextPool::open({.backends = {"cuda"}, .cuda_driver = named_driver()});
    auto lease = pool ? pool->lease() : pool.error();
    if (!lease) return state.SkipWithError("no card");
    const auto memory = lease->device().memory();
    state.counters["card_bytes"] = static_cast<double>(memory.total.count - memory.available.count);
  }
}
BENCHMARK(open_wye)->Name("cuda_open/wye")->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);

void open_raw(benchmark::State& state) {
  close_driver();
  for (auto _ : state) {
    std::string why;
    const auto cuda = wye_bench::RawCuda::open(why);
    if (!cuda) return state.SkipWithError(why.c_str());
    state.counters["card_bytes"] = static_cast<double>(cuda->memory_in_use());
  }
}
BENCHMARK(open_raw)->Name("cuda_open/raw_cuda")->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);

// --- Copies

void copy_wye(benchmark::State& state) {
  auto lane = open_lane(state, large() / sizeof(std::uint32_t));
  if (!lane) return;
  const auto x = random_values<std::uint32_t>(lane->buffer.size(), 3);
  std::vector<std::uint32_t> back(x.size());
  const auto target = lane->lease.buffer<std::uint32_t>(x.size());
  if (!target) return state.SkipWithError(target.error().sentence().c_str());
  const auto copy = [&] { lane->lease.copy(lane->buffer, *target, Bytes{large()}); };
  lane->lease.upload(x, lane->buffer);
  copy();
  lane->lease.download(*target, back);
  if (!lane->lease.wait() || back != x) return state.SkipWithError("the copy is something else");
  for (auto _ : state) {
    copy();
    if (!lane->lease.wait()) state.SkipWithError("failed");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * large()));
}
BENCHMARK(copy_wye)->Name("cuda_copy_256MiB/wye")->UseRealTime()->Unit(benchmark::kMicrosecond);

BENCHMARK_CAPTURE(copy_raw, all, 2)
    ->Name("cuda_copy_256MiB/raw_cuda")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

std::size_t roundtrip() { return sized(64u << 20, 1u << 20); }

void roundtrip_wye(benchmark::State& state) {
  if (auto lane = open_lane(state, roundtrip() / sizeof(std::uint32_t))) lane->go_and_return(state);
}
BENCHMARK(roundtrip_wye)->Name("cuda_roundtrip_64MiB/wye")->UseRealTime()->Unit(benchmark::kMicrosecond);

// From and to memory that any program has: through pinned memory.
void roundtrip_raw(benchmark::State& state) {
  auto cuda = raw(state);
  if (!cuda) return;
  const std::size_t bytes = roundtrip();
  const auto source = random_values<std::uint32_t>(bytes / sizeof(std::uint32_t), 2);
  std::vector<std::uint32_t> target(source.size(), 1);
  std::byte* there = cuda->pinned(bytes);
  std::byte* back = cuda->pinned(bytes);
  const std::uint64_t memory = cuda->memory(bytes);
  if (!there || !back || memory == 0) return state.SkipWithError("no room");
  for (auto _ : state) {
    std::memcpy(there, source.data(), bytes);
    if (!cuda->copy(memory, reinterpret_cast<std::uint64_t>(there), bytes) ||
        !cuda->copy(reinterpret_cast<std::uint64_t>(back), memory, bytes) || !cuda->wait())
      state.SkipWithError("failed");
    std::memcpy(target.data(), back, bytes);
  }
  if (target != source) state.SkipWithError("what comes back is something else");
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * bytes));
}
BENCHMARK(roundtrip_raw)->Name("cuda_roundtrip_64MiB/raw_cuda")->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
