// CUDA: what wye adds to the bare driver, and how near its kernels come to what the card can. Each gives right results for
// random numbers before it is timed. On a machine without a card each is skipped; tests/gpu/run.sh runs them where there is one.
// On the stand-in for the driver (tests/with-stand-in-cuda.sh, --small) they show what wye's own code costs: "host_ns", this
// thread's time for a launch, beside "same_calls", which calls the same functions of the driver and does nothing else.
#include <wye/workloads/attention.hpp>
#include <wye/workloads/attention_weights.hpp>
#include <wye/workloads/axpy.hpp>
#include <wye/workloads/matmul.hpp>
#include <wye/workloads/normalize.hpp>
#include <wye/workloads/softmax.hpp>

#include <cmath>
#include <memory>
#include <utility>

#include "lane.hpp"
#include "peers/raw_cuda.hpp"

namespace {

using wye::Bytes;
using wye_bench::HostTime;
using wye_bench::random_values;
using wye_bench::sized;

constexpr char cuda_cpp[] = R"(extern "C" __global__ void add(wye_span<unsigned> x, unsigned by) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size) x[i] += by;
})";
constexpr std::size_t few = 64;
constexpr unsigned block = 256;  // wye's default block

/// Keeps the driver and its primary context open for later set-ups: opening them takes half a second. The context is not
/// current. The process does not close them at its end, because the driver may have ended before.
wye_bench::RawCuda* kept = nullptr;
void keep_driver() {
  std::string why;
  if (kept) return;
  kept = wye_bench::RawCuda::open(why).release();
  if (kept) kept->leave();
}
/// Closes them, for a benchmark that measures how long opening takes.
void close_driver() {
  if (kept) kept->enter();
  delete std::exchange(kept, nullptr);
}

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

std::unique_ptr<wye_bench::RawCuda> raw(benchmark::State& state) {
  keep_driver();
  std::string why;
  auto peer = wye_bench::RawCuda::open(why);
  if (!peer) state.SkipWithError(why.c_str());
  return peer;
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

// --- Waits for kernels that take longer: wye, a thread that only polls, and a thread that only sleeps. On the stand-in, the
// time of a kernel is scripted.

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

std::size_t large() { return sized(256u << 20, 1u << 20); }

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

/// Copies `halves` halves of what is `large`: as many bytes are read, and as many written.
void copy_raw(benchmark::State& state, int halves) {
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

// --- Workloads on arrays that stay on the card

std::optional<wye::Runtime> with_card(benchmark::State& state) {
  keep_driver();
  auto options = wye::RuntimeOptions::from_environment();
  if (!options) return state.SkipWithError(options.error().sentence().c_str()), std::nullopt;
  options->pool.backends = {"cuda"};
  options->pool.lane_memory = Bytes{4ull << 30};
  auto runtime = wye::Runtime::open(*options);
  if (!runtime) return state.SkipWithError("no card"), std::nullopt;
  return *runtime;
}

/// Whether numbers here and there are the reference's, to `bound` of the largest; the reference knows the first ones.
template <class T>
bool is_near(const wye::Array<T>& array, const std::vector<double>& expected, double bound) {
  const auto now = array.read();
  if (!now) return false;
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const auto number = static_cast<float>((*now)[i]);
    error = std::max(error, std::abs(expected[i] - static_cast<double>(number)));
    if (std::isnan(number)) return false;
  }
  return error <= bound * largest;
}

/// Labels a row with the variant that its job selected, and counts the least time of each.
void show_choices(benchmark::State& state, const std::vector<wye::VariantChoice>& choices) {
  for (const wye::VariantChoice& choice : choices) {
    for (const wye::Variant& variant : choice.variants) {
      if (variant.selected) state.SetLabel(variant.kernel);
      if (variant.least_time)
        state.counters["ms_" + variant.kernel] =
            std::chrono::duration<double, std::milli>(*variant.least_time).count();
    }
  }
}

/// Runs a job once, looks at `result`, and runs it over and over. Where there are kernels to choose from, that is over by then.
template <class T>
void run_job(benchmark::State& state, wye::Runtime& runtime, const wye::Job& job, const wye::Array<T>& result,
             const std::vector<double>& expected, double bound) {
  std::vector<wye::VariantChoice> choices;
  for (int i = 0; i == 0 || (i < 7 && !choices.empty()); ++i) {
    const auto done = runtime.run(job);
    if (!done) return state.SkipWithError(done.error().sentence().c_str());
    if (i == 0 && !is_near(result, expected, bound))
      return state.SkipWithError("the result is something else");
    choices = done->variants();
  }
  show_choices(state, choices);
  for (auto _ : state)
    if (!runtime.run(job)) state.SkipWithError("failed");
}

void axpy_wye(benchmark::State& state) {
  auto runtime = with_card(state);
  if (!runtime) return;
  const auto x = random_values<float>(large() / sizeof(float), 4), y = random_values<float>(x.size(), 5);
  std::vector<double> expected(std::min<std::size_t>(x.size(), 1u << 22));
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] = 0.25 * static_cast<double>(x[i]) + static_cast<double>(y[i]);
  auto on_x = runtime->array(x), on_y = runtime->array(y);
  run_job(state, *runtime, wye::workloads::axpy(0.25f, on_x, on_y), on_y, expected, 1e-6);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(3 * large()));
}
BENCHMARK(axpy_wye)->Name("cuda_axpy_256MiB/wye")->UseRealTime()->Unit(benchmark::kMicrosecond);
// A copy that moves as many bytes as two vectors that are read and one that is written.
BENCHMARK_CAPTURE(copy_raw, three_halves, 3)
    ->Name("cuda_axpy_256MiB/device_copy")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

constexpr std::uint64_t columns = 1024;

/// A job on rows in place: what it must move is once read and once written.
template <class Make, class Expected>
void rows_wye(benchmark::State& state, Make job, Expected reference) {
  auto runtime = with_card(state);
  if (!runtime) return;
  const auto matrix = random_values<float>(large() / sizeof(float), 6);
  const auto first = std::span(matrix).first(std::min<std::size_t>(matrix.size(), 64 * columns));
  auto array = runtime->array(matrix);
  run_job(state, *runtime, job(array), array, reference(first), 1e-4);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * large()));
}

void normalize_wye(benchmark::State& state) {
  rows_wye(
      state, [](auto& array) { return wye::workloads::normalize(array, columns); },
      [](auto matrix) { return wye::workloads::reference::normalize(matrix, columns); });
}
BENCHMARK(normalize_wye)->Name("cuda_normalize_256MiB/wye")->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(copy_raw, normalize, 2)
    ->Name("cuda_normalize_256MiB/device_copy")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void softmax_wye(benchmark::State& state) {
  rows_wye(
      state, [](auto& array) { return wye::workloads::softmax(array, columns); },
      [](auto matrix) { return wye::workloads::reference::softmax(matrix, columns); });
}
BENCHMARK(softmax_wye)->Name("cuda_softmax_256MiB/wye")->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(copy_raw, softmax, 2)
    ->Name("cuda_softmax_256MiB/device_copy")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void attention_wye(benchmark::State& state) {
  const wye::workloads::AttentionWeightsOptions options{.columns = columns, .head_size = 64};
  rows_wye(
      state, [&](auto& array) { return wye::workloads::attention_weights(array, options); },
      [&](auto matrix) { return wye::workloads::reference::attention_weights(matrix, options); });
}
BENCHMARK(attention_wye)
    ->Name("cuda_attention_weights_256MiB/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(copy_raw, attention, 2)
    ->Name("cuda_attention_weights_256MiB/device_copy")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// --- Products: cuBLAS through wye, and wye's own kernel, where wye finds no cuBLAS (tests/gpu/run.sh hides it)

std::size_t side() { return sized(4096, 96); }

/// The first row of the product.
std::vector<double> first_row(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<double> row(side(), 0.0);
  for (std::size_t k = 0; k < side(); ++k)
    for (std::size_t j = 0; j < side(); ++j)
      row[j] += static_cast<double>(a[k]) * static_cast<double>(b[k * side() + j]);
  return row;
}

void matmul_wye(benchmark::State& state, bool by_cublas) {
  const std::string by = wye::workloads::matmul_on_cuda();
  if ((by == "cuBLAS") != by_cublas)
    return state.SkipWithError(by_cublas ? by.c_str() : "wye takes cuBLAS, which is there");
  auto runtime = with_card(state);
  if (!runtime) return;
  const auto a = random_values<float>(side() * side(), 7), b = random_values<float>(a.size(), 8);
  auto on_a = runtime->array(a), on_b = runtime->array(b);
  auto c = runtime->array<float>(a.size());
  run_job(state, *runtime, wye::workloads::matmul(on_a, on_b, c), c, first_row(a, b), 1e-4);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(2 * side() * side() * side()));
}

void matmul_cublas(benchmark::State& state) {
  auto cuda = raw(state);
  if (!cuda) return;
  if (std::string why; !cuda->open_cublas(why)) return state.SkipWithError(why.c_str());
  const std::size_t bytes = side() * side() * sizeof(float);
  const auto x = random_values<float>(side() * side(), 7), y = random_values<float>(x.size(), 8);
  std::vector<float> row(side());
  const std::uint64_t a = cuda->memory(bytes), b = cuda->memory(bytes), c = cuda->memory(bytes);
  if (a == 0 || b == 0 || c == 0) return state.SkipWithError("no room");
  const auto multiply = [&] { return cuda->multiply(a, b, c, static_cast<int>(side())); };
  if (!cuda->write(a, x.data(), bytes) || !cuda->write(b, y.data(), bytes) || !multiply() ||
      !cuda->read(row.data(), c, side() * sizeof(float)))
    return state.SkipWithError("failed");
  const auto expected = first_row(x, y);
  for (std::size_t j = 0; j < side(); ++j)
    if (!(std::abs(static_cast<double>(row[j]) - expected[j]) <= 1e-4 * expected[j]))
      return state.SkipWithError("the product is something else");
  for (auto _ : state)
    if (!multiply() || !cuda->wait()) state.SkipWithError("failed");
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(2 * side() * side() * side()));
}

BENCHMARK_CAPTURE(matmul_wye, cublas, true)
    ->Name("cuda_matmul_4096/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(matmul_cublas)->Name("cuda_matmul_4096/cublas")->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(matmul_wye, own, false)
    ->Name("cuda_matmul_own_4096/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(matmul_cublas)->Name("cuda_matmul_own_4096/cublas")->UseRealTime()->Unit(benchmark::kMicrosecond);

template <class T>
std::vector<T> narrowed(const std::vector<float>& numbers) {
  std::vector<T> made;
  made.reserve(numbers.size());
  for (const float number : numbers) made.emplace_back(number);
  return made;
}

/// Products of half by wye's own kernels, of which there are two.
void matmul_half_wye(benchmark::State& state, std::size_t rows) {
  if (wye::workloads::matmul_on_cuda() == "cuBLAS")
    return state.SkipWithError("wye takes cuBLAS, which is there");
  auto runtime = with_card(state);
  if (!runtime) return;
  const wye::workloads::MatmulShape shape{std::min(rows, side()), side(), side()};
  const auto a = narrowed<wye::half>(random_values<float>(shape.rows * shape.inner, 7)),
             b = narrowed<wye::half>(random_values<float>(shape.inner * shape.columns, 8));
  const auto widened = [](const std::vector<wye::half>& numbers) {
    return std::vector<float>(numbers.begin(), numbers.end());
  };
  auto on_a = runtime->array(a), on_b = runtime->array(b);
  auto c = runtime->array<float>(shape.rows * shape.columns);
  run_job(state, *runtime, wye::workloads::matmul(on_a, on_b, c, shape), c, first_row(widened(a), widened(b)),
          1e-3);
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(2 * shape.rows * shape.columns * shape.inner));
}
BENCHMARK_CAPTURE(matmul_half_wye, square, 4096)
    ->Name("cuda_matmul_own_half_4096/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(matmul_cublas)
    ->Name("cuda_matmul_own_half_4096/cublas_in_float32")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
// As many rows as a step of decoding has.
BENCHMARK_CAPTURE(matmul_half_wye, few_rows, 16)
    ->Name("cuda_matmul_own_half_16x4096/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// --- Attention in one pass, beside cuBLAS's products with the weights of a matrix of scores in between

wye::workloads::AttentionShape heads() {
  return {.heads = sized(16, 2), .queries = sized(4096, 70), .keys = sized(4096, 70), .head_size = 64};
}
std::size_t numbers_of_heads() { return heads().heads * heads().queries * heads().head_size; }

/// Queries, keys and values: the first from 1/16 to 1/8, so that no key has all the weight.
std::vector<float> queries() {
  auto q = random_values<float>(numbers_of_heads(), 9);
  for (float& number : q) number /= 16;
  return q;
}
std::vector<float> keys() { return random_values<float>(numbers_of_heads(), 10); }
std::vector<float> values_of_keys() { return random_values<float>(numbers_of_heads(), 11); }

/// Of the first query alone.
std::vector<double> first_query() {
  const auto shape = heads();
  const auto q = queries(), k = keys(), v = values_of_keys();
  const auto one = [&](const std::vector<float>& rows, std::size_t count) {
    return std::span(rows).first(count * shape.head_size);
  };
  return wye::workloads::reference::attention(one(q, 1), one(k, shape.keys), one(v, shape.keys),
                                              {1, 1, shape.keys, shape.head_size});
}

void count_operations(benchmark::State& state) {
  const auto shape = heads();
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(4 * shape.heads * shape.queries *
                                                                         shape.keys * shape.head_size));
}

void fused_attention(benchmark::State& state) {
  auto runtime = with_card(state);
  if (!runtime) return;
  auto q = runtime->array(queries()), k = runtime->array(keys()), v = runtime->array(values_of_keys());
  auto out = runtime->array<float>(numbers_of_heads());
  run_job(state, *runtime, wye::workloads::attention(q, k, v, out, heads()), out, first_query(), 1e-4);
  count_operations(state);
}

void fused_attention_of_half(benchmark::State& state) {
  auto runtime = with_card(state);
  if (!runtime) return;
  const auto narrow = [&](const std::vector<float>& numbers) {
    return runtime->array(narrowed<wye::half>(numbers));
  };
  auto q = narrow(queries()), k = narrow(keys()), v = narrow(values_of_keys());
  auto out = runtime->array<wye::half>(numbers_of_heads());
  run_job(state, *runtime, wye::workloads::attention(q, k, v, out, heads()), out, first_query(), 4e-3);
  count_operations(state);
}

/// In float32, or in TF32: cuBLAS has no softmax for what it multiplies in half.
void attention_by_cublas(benchmark::State& state, bool tf32) {
  if (const std::string by = wye::workloads::matmul_on_cuda(); by != "cuBLAS")
    return state.SkipWithError(by.c_str());
  auto runtime = with_card(state);
  if (!runtime) return;
  const auto shape = heads();
  auto q = runtime->array(queries()), k = runtime->array(keys()), v = runtime->array(values_of_keys());
  auto scores = runtime->array<float>(shape.heads * shape.queries * shape.keys);
  auto out = runtime->array<float>(numbers_of_heads());
  const wye::Job steps[] = {
      wye::workloads::matmul(q, k, scores, {shape.queries, shape.keys, shape.head_size},
                             {.transposed_b = true, .tf32 = tf32, .batch = shape.heads}),
      wye::workloads::attention_weights(scores, {.columns = shape.keys, .head_size = shape.head_size}),
      wye::workloads::matmul(scores, v, out, {shape.queries, shape.head_size, shape.keys},
                             {.tf32 = tf32, .batch = shape.heads})};
  const auto once = [&] {
    return std::all_of(std::begin(steps), std::end(steps),
                       [&](const wye::Job& step) { return runtime->run(step).has_value(); });
  };
  if (!once()) return state.SkipWithError("failed");
  if (!is_near(out, first_query(), tf32 ? 4e-3 : 1e-4))
    return state.SkipWithError("the result is something else");
  for (auto _ : state)
    if (!once()) state.SkipWithError("failed");
  count_operations(state);
}

BENCHMARK(fused_attention)
    ->Name("cuda_attention_16x4096x64/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(attention_by_cublas, float32, false)
    ->Name("cuda_attention_16x4096x64/cublas_and_softmax")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(fused_attention_of_half)
    ->Name("cuda_attention_half_16x4096x64/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(attention_by_cublas, tf32, true)
    ->Name("cuda_attention_half_16x4096x64/cublas_in_tf32")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
