// The runtime of the parent in a child of `fork`.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"

using namespace wye;
using test::in_child;
using test::Leave;

namespace {

bool has(const Runtime& runtime, std::string_view backend) {
  for (const Device& device : runtime.devices())
    if (device.info().backend == backend) return true;
  return false;
}

bool runs_on(Runtime& runtime, const std::string& device) {
  std::vector<float> x(10'000, 1.5f);
  auto done = runtime.submit(Job(test::scale()(x, 2.0f)), {.on = device}).wait();
  if (!done) std::fprintf(stderr, "%s\n", done.error().describe().c_str());
  return done && done->backend() == device && x.front() == 3.0f && x.back() == 3.0f;
}

/// In the child: whether a runtime of its own runs jobs on the backends that its parent's has.
int opens_and_runs(std::optional<bool> with_vulkan = {}) {
  auto own = with_vulkan ? Runtime::open() : Runtime::open({.pool = {.backends = {"cpu"}}});
  WYE_CHILD_CHECK(101, own.has_value());
  WYE_CHILD_CHECK(102, runs_on(*own, "cpu"));
  WYE_CHILD_CHECK(103, has(*own, "vulkan") == with_vulkan.value_or(false));
  if (with_vulkan.value_or(false)) WYE_CHILD_CHECK(104, runs_on(*own, "vulkan"));
  own->close();
  return 0;
}

template <class T>
bool is_inherited(const Result<T>& result) {
  return !result && result.error() == Errc::closed &&
         result.error().sentence().find("forked") != std::string::npos;
}

}  // namespace

TEST_CASE("a child of fork with an open static runtime ends by exit", "[runtime][fork][no_sanitizer]") {
  const std::string backends = GENERATE("cpu", "cpu,vulkan");
  CAPTURE(backends);
  // Like a global of an application: it ends with the process, and so does its copy in the child.
  static std::optional<Runtime> cpu_only, all;
  std::optional<Runtime>& runtime = backends == "cpu" ? cpu_only : all;
  if (backends == "cpu")
    runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  else
    runtime = Runtime::open().value();
  for (int i = 0; i < 8; ++i) CHECK(runs_on(*runtime, "cpu"));
  if (has(*runtime, "vulkan")) CHECK(runs_on(*runtime, "vulkan"));
  CHECK(in_child([] { return 0; }) == test::success);
  CHECK(runs_on(*runtime, "cpu"));
  runtime.reset();  // tests that follow have no driver open
}

TEST_CASE("in a child of fork every inherited handle answers an error and ends at once",
          "[runtime][fork][no_sanitizer]") {
  std::optional<Runtime> runtime = Runtime::open().value();
  const std::string backend = has(*runtime, "vulkan") ? GENERATE("cpu", "vulkan") : "cpu";
  CAPTURE(backend);
  const auto kernel = test::scale();
  std::optional<ContextPool> pool = runtime->pool();
  std::optional<ShaderCache> cache = runtime->cache();
  std::optional<Scheduler> scheduler = runtime->scheduler();
  std::optional<Lease> lease = pool->lease({.on = backend}).value();
  std::optional<Device> device = lease->device();
  std::optional<Buffer> buffer = lease->buffer<float>(1000).value();
  std::optional<Executable> executable = cache->find_or_build(kernel, *device).value();
  std::optional<KernelHandle> handle = cache->handle(kernel, *device).value();
  REQUIRE(handle->find_or_build());
  std::optional<Prewarm> prewarm = cache->prewarm({kernel}, {*device}).value();
  const std::vector<float> ones(1000, 1.0f);
  lease->upload(ones, *buffer);
  std::optional<Sequence> sequence(std::in_place, *device);
  sequence->dispatch(*executable, wye::arguments(*buffer, 2.0f));
  lease->submit(*sequence);
  std::optional<SyncPoint> point = lease->point();
  std::optional<Array<float>> array = runtime->array(ones);
  std::optional<ReadView<float>> view = array->read().value();
  std::vector<float> borrowed(1000, 1.0f);
  std::optional<Ticket> ticket = runtime->submit(Job(kernel(borrowed, 2.0f)), {.on = backend});
  std::optional<Ticket> settled = runtime->submit(Job(kernel(*array, 2.0f)));
  std::optional<Outcome> outcome = runtime->run(Job(kernel(borrowed, 2.0f)), {.on = backend}).value();
  std::optional<Job> job(kernel(*array, 2.0f));

  const auto child = [&]() -> int {
    const auto start = std::chrono::steady_clock::now();
    WYE_CHILD_CHECK(1, is_inherited(runtime->submit(Job(kernel(borrowed, 2.0f))).wait()));
    WYE_CHILD_CHECK(2, is_inherited(runtime->run(Job(kernel(borrowed, 2.0f)))));
    WYE_CHILD_CHECK(3, runtime->metrics().jobs.submitted == 0);
    WYE_CHILD_CHECK(4, !runtime->adapters().empty());
    WYE_CHILD_CHECK(5, is_inherited(runtime->array<float>(10).read()));
    WYE_CHILD_CHECK(6, is_inherited(pool->lease()) && is_inherited(pool->try_lease()));
    WYE_CHILD_CHECK(7, pool->contexts().empty() && pool->metrics().leases == 0);
    WYE_CHILD_CHECK(8, is_inherited(cache->find_or_build(kernel, *device)));
    WYE_CHILD_CHECK(9, is_inherited(cache->handle(kernel, *device)));
    WYE_CHILD_CHECK(10, is_inherited(cache->prewarm({kernel}, {*device})));
    WYE_CHILD_CHECK(11, cache->contents().empty() && cache->metrics().hits == 0);
    WYE_CHILD_CHECK(12, cache->manifest().entries.empty() && cache->kernel_metrics().empty());
    cache->clear();
    WYE_CHILD_CHECK(13, scheduler->metrics().submitted == 0);
    WYE_CHILD_CHECK(14, is_inherited(scheduler->run(Job(kernel(borrowed, 2.0f)))));
    WYE_CHILD_CHECK(15, is_inherited(lease->buffer<float>(10)));
    lease->upload(ones, *buffer);
    lease->dispatch(*executable, wye::arguments(*buffer, 2.0f));
    lease->submit();
    lease->submit(*sequence);
    WYE_CHILD_CHECK(16, is_inherited(lease->point().wait()));
    WYE_CHILD_CHECK(17, is_inherited(lease->wait()));
    WYE_CHILD_CHECK(18, is_inherited(point->wait()) && !point->reached());
    WYE_CHILD_CHECK(19, is_inherited(device->buffer<float>(10)));
    WYE_CHILD_CHECK(20, device->memory().total.count == 0);
    WYE_CHILD_CHECK(21, !device->monitor().memory_total.absence.empty());
    WYE_CHILD_CHECK(22, is_inherited(handle->find_or_build()));
    WYE_CHILD_CHECK(23, prewarm->wait() && prewarm->progress().ended);
    WYE_CHILD_CHECK(24, is_inherited(array->read()) && is_inherited(array->write()));
    WYE_CHILD_CHECK(25, is_inherited(ticket->wait()) && ticket->ready());
    bool told = false;
    ticket->then([&](const Result<Outcome>& result) { told = is_inherited(result); });
    WYE_CHILD_CHECK(26, told);
    ticket->cancel();
    WYE_CHILD_CHECK(27, ticket->explain().candidates.empty());
    WYE_CHILD_CHECK(28, outcome->backend() == backend && !outcome->reason().empty());
    WYE_CHILD_CHECK(29, (*view)[0] == 1.0f);
    runtime->close(), pool->close(), scheduler->close();
    // A runtime of the child refuses the objects of its parent's runtime.
    {
      auto own = Runtime::open();
      WYE_CHILD_CHECK(40, own.has_value());
      WYE_CHILD_CHECK(41, !own->run(*job));
      WYE_CHILD_CHECK(42, !own->cache().find_or_build(kernel, *device));
    }
    view.reset(), ticket.reset(), settled.reset(), outcome.reset(), job.reset();
    array.reset(), point.reset(), sequence.reset(), prewarm.reset(), handle.reset(), executable.reset();
    buffer.reset(), lease.reset(), device.reset(), scheduler.reset(), cache.reset(), pool.reset();
    runtime.reset();
    const auto took = std::chrono::steady_clock::now() - start;
    WYE_CHILD_CHECK(50, took < std::chrono::seconds(20));
    return 0;
  };
  CHECK(in_child(child, Leave::at_once) == test::success);

  // The parent continues unharmed.
  CHECK(lease->wait());
  CHECK(point->wait());
  CHECK(ticket->wait());
  view.reset();
  CHECK(array->read());
  CHECK(handle->find_or_build());
  CHECK(runs_on(*runtime, backend));
}

TEST_CASE("a child of fork opens a runtime of its own, runs jobs and ends by exit",
          "[runtime][fork][no_sanitizer]") {
  std::optional<Runtime> runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  CHECK(runs_on(*runtime, "cpu"));
  CHECK(in_child([&] { return opens_and_runs(); }) == test::success);
  CHECK(runs_on(*runtime, "cpu"));
}

TEST_CASE("a child of fork opens Vulkan although its parent has it open", "[runtime][fork][no_sanitizer]") {
  std::optional<Runtime> runtime = Runtime::open().value();
  const bool with_vulkan = has(*runtime, "vulkan");
  CHECK(runs_on(*runtime, "cpu"));
  if (with_vulkan) CHECK(runs_on(*runtime, "vulkan"));
  CHECK(in_child([&] { return opens_and_runs(with_vulkan); }, Leave::at_once) == test::success);
  // A grandchild is no different.
  const auto grandchild = [&] {
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(60);
      ::_exit(opens_and_runs(with_vulkan));
    }
    int status = -1;
    ::waitpid(pid, &status, 0);
    return status == 0 ? opens_and_runs(with_vulkan) : 1;
  };
  CHECK(in_child(grandchild, Leave::at_once, 120) == test::success);
  if (with_vulkan) CHECK(runs_on(*runtime, "vulkan"));
  CHECK(runs_on(*runtime, "cpu"));
}

TEST_CASE("a fork while other threads submit jobs leaves parent and child sound",
          "[runtime][fork][no_sanitizer]") {
  std::optional<Runtime> runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  const auto kernel = test::scale();
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      std::vector<float> x(100, 1.0f);
      const auto array = runtime->array(x);
      while (!stop) {
        if (!runtime->submit(Job(kernel(x, 1.0f))).wait()) ++failed;
        (void)runtime->submit(Job(kernel(array, 1.0f)));
        (void)runtime->metrics();
      }
    });
  std::vector<std::string> ends;
  for (int i = 0; i < 20; ++i)
    ends.push_back(in_child([&]() -> int {
      std::vector<float> x(100, 1.0f);
      WYE_CHILD_CHECK(1, is_inherited(runtime->submit(Job(kernel(x, 1.0f))).wait()));
      (void)runtime->metrics();
      runtime.reset();
      auto own = Runtime::open({.pool = {.backends = {"cpu"}}});
      WYE_CHILD_CHECK(2, own.has_value());
      WYE_CHILD_CHECK(3, runs_on(*own, "cpu"));
      return 0;
    }));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const std::string& end : ends) CHECK(end == test::success);
  CHECK(failed == 0);
  CHECK(runs_on(*runtime, "cpu"));
}

TEST_CASE("a child of a process that has initialized CUDA has no CUDA, and reports the reason",
          "[runtime][fork][no_sanitizer]") {
  std::optional<Runtime> runtime = Runtime::open().value();
  if (!test::has_device(*runtime, "cuda")) return;
  CHECK(in_child(
            [&]() -> int {
              auto own = Runtime::open();
              WYE_CHILD_CHECK(1, own.has_value() && !has(*own, "cuda"));
              for (const AdapterInfo& info : own->adapters())
                if (info.backend == "cuda")
                  WYE_CHILD_CHECK(2, info.reason.find("CUDA cannot be used in a child") == 0);
              WYE_CHILD_CHECK(3, runs_on(*own, "cpu"));
              return 0;
            },
            Leave::at_once) == test::success);
}
