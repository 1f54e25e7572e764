// Tests that need a card: memory runs out, faults are real, kernels exceed deadlines. Without a
// card each case is a skip; if WYE_REQUIRE_CARD is set, it fails. A case with [fatal] ends CUDA in
// its process and is hidden: tests/gpu/run.sh gives each one a process.
#include <wye/base/dynamic_library.hpp>
#include <wye/wye.hpp>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "support/catch.hpp"
#include "support/skip.hpp"

namespace wye::test {
namespace {

using namespace wye::literals;
using namespace std::chrono_literals;

bool card_is_required() { return std::getenv("WYE_REQUIRE_CARD") != nullptr; }

/// Returns a runtime with a card and the CPU to fall back to; none without a card. With `computes`,
/// the stand-in for the driver does not count, because it has none of these kernels.
enum class Card { any, computes };
std::optional<Runtime> with_card(Card needed, Bytes lane_memory = PoolOptions().lane_memory) {
  RuntimeOptions options = RuntimeOptions::from_environment().value();
  options.pool.backends = {"cuda", "cpu"};
  options.pool.lane_memory = lane_memory;
  auto runtime = Runtime::open(std::move(options));
  REQUIRE(runtime);
  std::string reasons;
  for (const Device& device : runtime->devices()) {
    if (device.info().backend != "cuda") continue;
    if (needed == Card::any || device.info().name != "wye stand-in") return *runtime;
    reasons += device.id() + ": it is a stand-in; ";
  }
  for (const AdapterInfo& adapter : runtime->adapters())
    if (adapter.backend == "cuda" && !adapter.usable) reasons += adapter.id + ": " + adapter.reason + "; ";
  if (card_is_required()) FAIL("There is no card: " << reasons);
  test::skip("there is no card: " + reasons);
  return std::nullopt;
}

template <class... P>
Kernel<P...> cuda_kernel(std::string name, std::string text) {
  return Kernel<P...>::make({.name = std::move(name), .sources = {CudaCpp{.text = std::move(text)}}}).value();
}

/// Adds one on the card, or on the CPU if the card fails.
Kernel<ReadWrite<std::uint32_t>> increment() {
  return Kernel<ReadWrite<std::uint32_t>>::make(
             {.name = "increment",
              .sources = {CudaCpp{.text = R"(
extern "C" __global__ void increment(wye_span<unsigned> x) {
  const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size) x[i] += 1;
})"},
                          host([](Range range, std::span<std::uint32_t> x) {
                            for (const auto i : range) ++x[i];
                          })}})
      .value();
}

/// Occupies the card for some milliseconds.
Kernel<ReadWrite<std::uint32_t>, std::uint32_t> hold() {
  return cuda_kernel<ReadWrite<std::uint32_t>, std::uint32_t>("hold", R"(
__device__ unsigned long long now() {
  unsigned long long nanoseconds;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}
extern "C" __global__ void hold(wye_span<unsigned> x, unsigned milliseconds) {
  const unsigned long long end = now() + milliseconds * 1000000ull;
  while (now() < end) {}
  if (blockIdx.x == 0 && threadIdx.x == 0) x[0] += 1;
})");
}

/// CUDA does not work in this process any more; everything else does.
void check_that_only_cuda_died(Runtime& runtime) {
  std::vector<std::uint32_t> x(1000, 41);
  const auto kernel = increment();
  const auto refused = runtime.submit(kernel(x), {.fallback = Fallback::forbid, .on = "cuda"}).wait();
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::device_lost);
  CHECK(refused.error().sentence().find("cuda:0") != std::string::npos);
  CHECK(x == std::vector<std::uint32_t>(1000, 41));

  auto ticket = runtime.submit(kernel(x));
  const auto done = ticket.wait();
  REQUIRE(done);
  CHECK(done->backend() == "cpu");
  CHECK(x == std::vector<std::uint32_t>(1000, 42));
  CHECK(ticket.explain().text().find("cuda:0") != std::string::npos);

  RuntimeOptions options = RuntimeOptions::from_environment().value();
  options.pool.backends = {"cuda", "cpu"};
  const auto another = Runtime::open(options);
  REQUIRE(another);
  const auto& adapters = another->adapters();
  const auto cuda = std::find_if(adapters.begin(), adapters.end(),
                                 [](const AdapterInfo& a) { return a.backend == "cuda"; });
  REQUIRE(cuda != adapters.end());
  CHECK_FALSE(cuda->usable);
  CHECK(cuda->reason.find("An error has disabled CUDA in this process: ") == 0);
}

/// Several jobs are in flight on both lanes when `kernel` faults. The driver reports one of
/// `codes`.
template <class... P>
void fault(const Kernel<P...>& kernel, const std::vector<std::string>& codes) {
  auto runtime = with_card(Card::computes);
  if (!runtime) return;
  const auto wait_first = hold();
  std::vector<std::vector<std::uint32_t>> memory(8, std::vector<std::uint32_t>(1000, 7));
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < memory.size(); ++i)
    tickets.push_back(i == 2 ? runtime->submit(kernel(memory[i]), {.on = "cuda"})
                             : runtime->submit(wait_first(memory[i], 20u), {.on = "cuda"}));
  std::size_t failed = 0;
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    const auto done = tickets[i].wait();
    if (done) {
      INFO(i);
      CHECK(i != 2);
      CHECK(memory[i][0] == 8);
      continue;
    }
    ++failed;
    INFO(done.error().describe());
    CHECK(done.error() == Errc::device_lost);
    REQUIRE(done.error().native());
    CHECK(std::find(codes.begin(), codes.end(), done.error().native()->name) != codes.end());
    CHECK(memory[i] == std::vector<std::uint32_t>(1000, 7));
  }
  CHECK(failed >= 1);
  check_that_only_cuda_died(*runtime);
}

}  // namespace

TEST_CASE("the card reports its name, memory and architecture", "[gpu]") {
  auto runtime = with_card(Card::any);
  if (!runtime) return;
  const AdapterInfo& info = runtime->devices()[0].info();
  WARN(info.name << ", " << info.architecture << ", " << info.driver << ", " << info.api << ", "
                 << to_string(info.memory));
  CHECK(info.architecture.compare(0, 3, "sm_") == 0);
  CHECK(info.memory.count > 0);
  CHECK(info.limits.subgroup_size == 32);
  CHECK(info.device_uuid != Uuid{});
}

TEST_CASE("out of memory is an error, and existing memory is unchanged", "[gpu]") {
  auto runtime = with_card(Card::any, Bytes{1ull << 50});
  if (!runtime) return;
  const Device device = runtime->devices()[0];
  auto lease = runtime->pool().lease({.on = "cuda"}).value();
  const std::vector<std::uint32_t> values(1000, 0xabcdu);
  const Buffer kept = lease.buffer<std::uint32_t>(values.size()).value();
  lease.upload(values, kept);
  REQUIRE(lease.wait());

  const std::uint64_t piece = device.memory().total.count / 8 / 4;
  std::vector<Buffer> all;
  std::optional<Error> error;
  while (!error && all.size() < 100) {
    auto buffer = lease.buffer<std::uint32_t>(piece);
    if (buffer)
      all.push_back(*buffer);
    else
      error = buffer.error();
  }
  REQUIRE(error);
  WARN(error->describe());
  CHECK(*error == Errc::out_of_memory);
  CHECK(error->sentence().find("cuda:0") != std::string::npos);
  CHECK(all.size() >= 4);
  CHECK(all.size() <= 8);

  std::vector<std::uint32_t> back(values.size(), 1);
  lease.download(kept, back);
  REQUIRE(lease.wait());
  CHECK(back == values);
  all.clear();
  const auto again = lease.buffer<std::uint32_t>(piece);
  INFO((again ? std::string() : again.error().describe()));
  CHECK(again);
}

TEST_CASE("a kernel writes the end of a buffer larger than 4 GiB", "[gpu]") {
  auto runtime = with_card(Card::computes, 8_GiB);
  if (!runtime) return;
  constexpr std::uint64_t count = (1ull << 30) + 12345;
  auto lease = runtime->pool().lease({.on = "cuda"}).value();
  const auto buffer = lease.buffer<std::uint32_t>(count);
  if (!buffer) {
    CHECK(buffer.error() == Errc::out_of_memory);
    return test::skip(buffer.error().sentence());
  }
  const auto kernel = cuda_kernel<Write<std::uint32_t>>("iota", R"(
extern "C" __global__ void iota(wye_span<unsigned> x) {
  const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < x.size; i += step)
    x[i] = (unsigned)(i * 2654435761ull >> 7);
})");
  const auto executable = runtime->cache().find_or_build(kernel, lease.device()).value();
  lease.fill(*buffer, 0xdeadbeef);
  lease.dispatch(executable, arguments(*buffer));
  const std::vector<std::uint64_t> places = {0, (1ull << 29) - 500, (1ull << 30) - 500, count - 1000};
  std::vector<std::vector<std::uint32_t>> back(places.size(), std::vector<std::uint32_t>(1000));
  for (std::size_t p = 0; p < places.size(); ++p)
    lease.download(*buffer, back[p], Bytes{places[p] * sizeof(std::uint32_t)});
  REQUIRE(lease.wait(60s));
  for (std::size_t p = 0; p < places.size(); ++p) {
    std::vector<std::uint32_t> expected(1000);
    for (std::uint64_t i = 0; i < expected.size(); ++i)
      expected[i] = static_cast<std::uint32_t>((places[p] + i) * 2654435761ull >> 7);
    INFO("from element " << places[p]);
    CHECK(back[p] == expected);
  }
}

TEST_CASE("a kernel over its time limit times out, and the card runs later jobs", "[gpu]") {
  auto runtime = with_card(Card::computes);
  if (!runtime) return;
  const auto kernel = hold();
  std::vector<std::uint32_t> x(1, 5);
  REQUIRE(runtime->submit(kernel(x, 1u), {.on = "cuda"}).wait());
  CHECK(x[0] == 6);
  const auto done = runtime->submit(kernel(x, 3000u), {.time_limit = 50ms, .on = "cuda"}).wait();
  REQUIRE_FALSE(done);
  CHECK(done.error() == Errc::timed_out);
  CHECK(x[0] == 6);
  REQUIRE(runtime->submit(kernel(x, 1u), {.on = "cuda"}).wait());
  CHECK(x[0] == 7);
}

TEST_CASE("PTX for an old architecture runs on this card", "[gpu]") {
  auto runtime = with_card(Card::computes);
  if (!runtime) return;
  const auto compiled = compile(CudaCpp{.text = R"(
extern "C" __global__ void triple(wye_span<unsigned> x) {
  const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size) x[i] *= 3;
})"},
                                {.name = "triple", .target = "compute_75"});
  REQUIRE(compiled);
  REQUIRE(compiled->ptx);
  const auto kernel =
      Kernel<ReadWrite<std::uint32_t>>::make({.name = "triple", .sources = {*compiled->ptx}}).value();
  std::vector<std::uint32_t> x(10'007);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint32_t>(i * 7919);
  auto expected = x;
  for (auto& value : expected) value *= 3;
  REQUIRE(runtime->submit(kernel(x), {.on = "cuda"}).wait());
  CHECK(x == expected);
}

TEST_CASE("the host's current context is unchanged", "[gpu]") {
  auto runtime = with_card(Card::computes);
  if (!runtime) return;
  const auto driver =
      DynamicLibrary::open(std::getenv("WYE_CUDA_DRIVER") ? std::getenv("WYE_CUDA_DRIVER") : "libcuda.so.1");
  REQUIRE(driver);
  const auto current = driver->function<int (*)(void**)>("cuCtxGetCurrent");
  REQUIRE(current);
  void* context = &context;
  REQUIRE(current(&context) == 0);
  CHECK(context == nullptr);
  std::vector<std::uint32_t> x(1000, 1);
  REQUIRE(runtime->submit(increment()(x), {.on = "cuda"}).wait());
  CHECK(x[999] == 2);
  context = &context;
  REQUIRE(current(&context) == 0);
  CHECK(context == nullptr);
}

TEST_CASE("an illegal address ends CUDA in this process, and nothing else", "[.][fatal]") {
  fault(cuda_kernel<ReadWrite<std::uint32_t>>("stray", R"(
extern "C" __global__ void stray(wye_span<unsigned> x) {
  if (threadIdx.x == 0 && blockIdx.x == 0) x.data[1ull << 45] = 1;
})"),
        {"CUDA_ERROR_ILLEGAL_ADDRESS"});
}

TEST_CASE("a misaligned address ends CUDA in this process, and nothing else", "[.][fatal]") {
  fault(cuda_kernel<ReadWrite<std::uint32_t>>("askew", R"(
extern "C" __global__ void askew(wye_span<unsigned> x) {
  if (threadIdx.x == 0 && blockIdx.x == 0) *(volatile unsigned*)((char*)x.data + 1) = 1;
})"),
        {"CUDA_ERROR_MISALIGNED_ADDRESS"});
}

TEST_CASE("a kernel that traps ends CUDA in this process, and nothing else", "[.][fatal]") {
  fault(cuda_kernel<ReadWrite<std::uint32_t>>("trap", R"(
extern "C" __global__ void trap(wye_span<unsigned> x) {
  if (threadIdx.x == 0 && blockIdx.x == 0) asm volatile("trap;");
})"),
        {"CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ILLEGAL_INSTRUCTION"});
}

}  // namespace wye::test
