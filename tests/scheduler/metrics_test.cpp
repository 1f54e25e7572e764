// Times of outcomes, and counts of the scheduler.
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/journal.hpp"
#include "rig.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::Busy;
using test::settled;
using Step = test::ScriptedDevice::Step;

namespace {

Duration total_time(const Outcome& outcome) {
  return outcome.queue_time() + outcome.build_time() + outcome.transfer_time() + outcome.run_time();
}

/// Returns whether no count of `now` is below that of `before`.
bool is_later(const SchedulerMetrics& before, const SchedulerMetrics& now) {
  return now.submitted >= before.submitted && now.completed >= before.completed &&
         now.failed >= before.failed && now.cancelled >= before.cancelled &&
         now.timed_out >= before.timed_out && now.fallbacks >= before.fallbacks;
}

}  // namespace

TEST_CASE("each job that ends is in the journal once, with its id, times and error", "[scheduler]") {
  Busy busy;
  base::Journal& journal = base::state_of(busy.runtime.pool())->journal();
  std::vector<base::JobEnded> ended;
  auto subscription =
      journal.listen<base::JobEnded>([&](const base::JobEnded& event) { ended.push_back(event); }).value();
  std::vector<float> x(10, 1.0f), y(10, 1.0f), z(10, 1.0f);
  const auto scale = test::host_scale("scale");
  Ticket cancelled = busy.runtime.submit(scale(x, 2.0f), {.tag = "page"});
  Ticket late = busy.runtime.submit(scale(y, 2.0f), {.start_by = 1h});
  Ticket failed = busy.runtime.submit(test::on_host(
      "thrower", [](Range, std::span<float>) { throw std::runtime_error("The kernel failed."); })(z));
  cancelled.cancel();
  busy.clock.advance(2h);
  CHECK(late.wait().error() == Errc::timed_out);
  busy.release();
  const Error error = failed.wait().error();
  Ticket completed = busy.runtime.submit(scale(x, 2.0f));
  const Outcome outcome = completed.wait().value();
  CHECK(journal.flush());

  std::vector<Id> ids;
  for (const base::JobEnded& event : ended) ids.push_back(event.id);
  CHECK(ids == std::vector{cancelled.id(), late.id(), busy.blocker.id(), failed.id(), completed.id()});
  REQUIRE(ended.size() == 5);
  for (const std::size_t unstarted : {0u, 1u}) {
    CHECK(std::string_view(ended[unstarted].device).empty());
    CHECK(ended[unstarted].run_time == 0ns);
  }
  CHECK(ended[0].error == Errc::cancelled);
  CHECK(ended[1].error == Errc::timed_out);
  CHECK_FALSE(ended[2].error);
  REQUIRE(ended[3].error);
  CHECK(ended[3].error->code() == error.code());
  CHECK(std::string_view(ended[3].device) == "cpu:0");
  const base::JobEnded& last = ended[4];
  CHECK_FALSE(last.error);
  CHECK(std::string_view(last.name) == "scale");
  CHECK(std::string_view(last.type) == workload_types::custom.name);
  CHECK(std::string_view(last.device) == outcome.device().id);
  CHECK(last.number == 5);
  CHECK(last.queue_time == outcome.queue_time());
  CHECK(last.build_time == outcome.build_time());
  CHECK(last.transfer_time == outcome.transfer_time());
  CHECK(last.run_time == outcome.run_time());
}

TEST_CASE("the times of an outcome add up to the time from submission to completion", "[scheduler]") {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 19}) {
    INFO(count << " floats");
    ManualClock clock;
    const auto device = test::scripted("cuda:0");
    device->set_script([&](Step) -> std::optional<Error> {
      clock.advance(3ms);
      return std::nullopt;
    });
    test::Machine machine({device}, {.clock = &clock});
    const auto slow = test::on_host("slow", [&](Range, std::span<float>) { clock.advance(20ms); });
    std::vector<float> x(count, 1.0f);
    auto a = machine.array(x);
    for (Job job : {Job(slow(x)), Job(slow(a)), Job(slow(a))}) {
      const Instant before = clock.now();
      const auto done = machine.scheduler.run(std::move(job));
      REQUIRE(done);
      CHECK(total_time(*done) == clock.now() - before);
      CHECK(done->build_time() == 3ms);  // `create_executable`
      CHECK(done->run_time() >= 20ms);
      for (const Duration part : {done->queue_time(), done->transfer_time()}) CHECK(part >= 0ns);
    }
  }
}

TEST_CASE("the time on a device that failed a job counts as time in the queue", "[scheduler]") {
  ManualClock clock;
  const auto first = test::scripted("cuda:0"), second = test::scripted("vulkan:0");
  first->set_script([&](Step step) -> std::optional<Error> {
    clock.advance(5ms);
    if (step != Step::submit) return std::nullopt;
    return Error(Errc::unavailable, "The script fails this step.");
  });
  test::Machine machine({first, second}, {.clock = &clock});
  const auto slow = test::on_host("slow", [&](Range, std::span<float>) { clock.advance(20ms); });
  std::vector<float> x(1, 1.0f);
  const auto done = machine.scheduler.run(slow(x));
  REQUIRE(done);
  CHECK(done->device().id == "vulkan:0");
  CHECK(done->queue_time() == first->steps_made() * 5ms);
  CHECK(done->build_time() == 0ms);  // on the second device
  CHECK(done->run_time() == 20ms);
}

TEST_CASE("copies of less than 1 MiB count as the time of the kernel", "[scheduler]") {
  ManualClock clock;
  const auto device = test::scripted("cuda:0");
  test::Machine machine({device}, {.clock = &clock});
  const auto slow = test::on_host("slow", [&](Range, std::span<float>) { clock.advance(20ms); });
  std::vector<float> x((1 << 18) - 1, 1.0f);
  const auto done = machine.scheduler.run(slow(x));
  REQUIRE(done);
  CHECK(done->transfer_time() == 0ms);
  CHECK(done->run_time() == 20ms);
  CHECK(done->bytes_transferred() == Bytes{2 * 4 * ((1 << 18) - 1)});
}

TEST_CASE("a device that uses host memory in place transfers nothing", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x(1 << 19, 1.0f);
  auto a = runtime.array(x);
  const auto scale = test::host_scale();
  for (Job job : {Job(scale(x, 2.0f)), Job(scale(a, 2.0f)), Job(test::copy()(a, x))}) {
    const auto done = runtime.run(std::move(job));
    REQUIRE(done);
    CHECK(done->bytes_transferred() == Bytes{0});
  }
}

TEST_CASE("the cache tier of a job is that of its slowest kernel", "[scheduler]") {
  Runtime runtime = Runtime::open({.cache = {.disk = Bytes{0}}}).value();
  if (!test::has_device(runtime, "vulkan")) return;
  std::vector<float> x(64, 1.0f), y(64);
  const auto both = [&](const auto& scale, const auto& copy) {
    return runtime
        .run(Job::sequence("both", workload_types::custom, scale(x, 2.0f), {copy(x, y)}), {.on = "vulkan"})
        ->cache_tier();
  };
  const auto scale = test::scale();
  const auto copy = test::copy();
  REQUIRE(runtime.run(scale(x, 2.0f), {.on = "vulkan"})->cache_tier() == CacheTier::built);
  CHECK(both(scale, copy) == CacheTier::built);
  CHECK(both(scale, copy) == CacheTier::memory);
}

TEST_CASE("jobs are counted under their type, and under the backend that completed them", "[scheduler]") {
  const auto first = test::scripted("cuda:0"), second = test::scripted("vulkan:0"),
             third = test::scripted("vulkan:1");
  test::Machine machine({first, second, third});
  std::vector<float> x(1, 1.0f);
  const Call call = test::host_scale()(x, 1.0f);
  const auto run = [&](WorkloadType type, std::string_view on) {
    (void)machine.scheduler.run(Job(call, type), {.on = on});
  };
  for (int i = 0; i < 3; ++i) run(workload_types::vector, "vulkan:0");
  for (int i = 0; i < 2; ++i) run(workload_types::matrix, "vulkan:1");
  run(workload_types::matrix, "cuda:0");
  run(workload_types::matrix, "nowhere");
  const SchedulerMetrics metrics = machine.scheduler.metrics();
  CHECK(metrics.completed_by_backend.at("vulkan") == 5);
  CHECK(metrics.completed_by_backend.at("cuda") == 1);
  CHECK(metrics.completed_by_backend.size() == 2);
  CHECK(metrics.by_type.at("vector").completed == 3);
  CHECK(metrics.by_type.at("matrix").completed == 3);
  CHECK(metrics.by_type.at("matrix").failed == 1);
  CHECK(metrics.by_type.size() == 2);
  test::check_counts(metrics);
}

TEST_CASE("the run time of a type is the sum of its outcomes", "[scheduler]") {
  ManualClock clock;
  Runtime runtime = test::cpu_runtime(1, &clock);
  std::vector<float> x(1, 1.0f);
  Duration sum{};
  for (const Duration time : {Duration(1ms), Duration(20ms), Duration(300ms)}) {
    const auto slow = test::on_host("slow", [&](Range, std::span<float>) { clock.advance(time); });
    const auto done = runtime.run(Job(slow(x), workload_types::image));
    REQUIRE(done);
    sum += done->run_time();
  }
  CHECK(sum == 321ms);
  CHECK(runtime.metrics().jobs.by_type.at("image").run_time == sum);
  CHECK(runtime.metrics().jobs.by_type.at("image").build_time == 0ms);
}

TEST_CASE("the histograms of a type and backend have the times of its completed jobs", "[scheduler]") {
  ManualClock clock;
  Runtime runtime = test::cpu_runtime(1, &clock);
  std::vector<float> x(1, 1.0f);
  JobHistograms expected;
  for (int i = 0; i < 20; ++i) {
    const auto slow = test::on_host("slow", [&](Range, std::span<float>) { clock.advance((1 + i) * 10ms); });
    const auto done = runtime.run(Job(slow(x), workload_types::image));
    REQUIRE(done);
    expected.queue.add(done->queue_time());
    expected.build.add(done->build_time());
    expected.transfer.add(done->transfer_time());
    expected.run.add(done->run_time());
  }
  const auto failing =
      test::on_host("failing", [](Range, std::span<float>) { throw std::runtime_error("no"); });
  REQUIRE_FALSE(runtime.run(Job(failing(x), workload_types::image)));
  const TypeMetrics image = runtime.metrics().jobs.by_type.at("image");
  const JobHistograms& cpu = image.by_backend.at("cpu");
  CHECK((image.by_backend.size() == 1 && cpu.run.count() == 20 && image.run.count() == 20));
  const auto check_equal = [](const Histogram& one, const Histogram& other, const Histogram& exact) {
    for (const Histogram* histogram : {&one, &other}) {
      CHECK((histogram->count() == exact.count() && histogram->sum() == exact.sum()));
      for (const double fraction : {0.05, 0.5, 0.95, 1.0})
        CHECK(histogram->percentile(fraction) == exact.percentile(fraction));
    }
  };
  check_equal(image.queue, cpu.queue, expected.queue);
  check_equal(image.build, cpu.build, expected.build);
  check_equal(image.transfer, cpu.transfer, expected.transfer);
  check_equal(image.run, cpu.run, expected.run);
  CHECK((image.run.percentile(0.5) > 87ms && image.run.percentile(0.5) < 113ms));
}

TEST_CASE("the rate of a type is that of the last five whole seconds", "[scheduler]") {
  ManualClock clock;
  Runtime runtime = test::cpu_runtime(1, &clock);
  std::vector<float> x(1, 1.0f);
  const auto rate = [&] { return runtime.metrics().jobs.by_type.at("rendering").per_second; };
  const auto quick = test::on_host("quick", [](Range, std::span<float>) {});
  for (int second = 0; second < 20; ++second) {
    for (int job = 0; job < 10; ++job) REQUIRE(runtime.run(Job(quick(x), workload_types::rendering)));
    CHECK(rate() == Approx(2 * std::min(second, 5)));
    clock.advance(1s);
  }
  CHECK(rate() == Approx(10));
  clock.advance(2s);
  CHECK(rate() == Approx(6));
  clock.advance(1min);
  CHECK(rate() == 0);
}

TEST_CASE("types of jobs beyond 64 are counted together", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(1);
  std::vector<float> x(1, 1.0f);
  const auto quick = test::on_host("quick", [](Range, std::span<float>) {});
  std::deque<std::string> names;
  for (int type = 0; type < 200; ++type) {
    names.push_back("type " + std::to_string(type));
    REQUIRE(runtime.run(Job(quick(x), WorkloadType{names.back()})));
  }
  const SchedulerMetrics jobs = runtime.metrics().jobs;
  CHECK(jobs.by_type.size() == 65);
  CHECK((jobs.by_type.at("type 63").completed == 1 && jobs.by_type.at("other types").completed == 136));
  test::check_counts(jobs);
}

TEST_CASE("a job that falls back over two devices is one fallback", "[scheduler]") {
  const auto a = test::scripted("cuda:0"), b = test::scripted("vulkan:0"), c = test::scripted("vulkan:1");
  for (const auto& device : {a, b}) device->fail_at(Step::submit, Errc::unavailable);
  test::Machine machine({a, b, c});
  std::vector<float> x(1, 1.0f);
  CHECK(machine.scheduler.run(test::host_scale()(x, 2.0f))->device().id == "vulkan:1");
  CHECK(machine.scheduler.metrics().fallbacks == 1);
  c->fail_at(Step::submit, Errc::unavailable);
  CHECK_FALSE(machine.scheduler.run(test::host_scale()(x, 2.0f)));
  CHECK(machine.scheduler.metrics().fallbacks == 1);  // it ran on no device
}

TEST_CASE("jobs that wait for their predecessors are counted as queued", "[scheduler]") {
  Busy busy;
  auto x = busy.runtime.array(std::vector<float>(1, 1.0f));
  std::vector<Ticket> tickets;
  for (int i = 0; i < 5; ++i) tickets.push_back(busy.runtime.submit(test::host_scale()(x, 2.0f)));
  SchedulerMetrics metrics = busy.runtime.metrics().jobs;
  CHECK(metrics.queued == 5);
  CHECK(metrics.running == 1);
  CHECK(metrics.submitted == 6);
  test::check_counts(metrics);
  tickets[2].cancel();
  CHECK(busy.runtime.metrics().jobs.queued == 4);
  busy.release();
  for (Ticket& ticket : tickets) (void)settled(ticket);
  metrics = busy.runtime.metrics().jobs;
  CHECK(metrics.queued == 0);
  CHECK(metrics.running == 0);
  test::check_counts(metrics);
}

TEST_CASE("jobs that are refused when they are submitted are counted as submitted and failed",
          "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  CHECK(runtime.run(test::host_scale()(Array<float>(), 2.0f)).error() == Errc::invalid_argument);
  runtime.close();
  std::vector<float> x(1, 1.0f);
  CHECK(runtime.submit(test::host_scale()(x, 2.0f)).wait().error() == Errc::closed);
  const SchedulerMetrics metrics = runtime.metrics().jobs;
  CHECK(metrics.submitted == 2);
  CHECK(metrics.failed == 2);
  test::check_counts(metrics);
}

TEST_CASE("counts agree and never decrease while eight threads submit, cancel and drop jobs", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(3);
  auto shared = runtime.array(std::vector<float>(4, 1.0f));
  constexpr int threads = 8, jobs = test::rounds(2000);
  std::atomic<int> running{threads};
  std::vector<std::thread> submitting;
  for (int t = 0; t < threads; ++t)
    submitting.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      const auto scale = test::host_scale();
      const auto throws = test::on_host("throws", [](Range, std::span<float>) { throw 1; });
      std::vector<float> x(4, 1.0f), y(4, 1.0f);
      for (int i = 0; i < jobs; ++i) {
        const JobOptions options{.priority = static_cast<Priority>(random() % 3),
                                 .start_by = random() % 8 == 0 ? Deadline(0ns) : Deadline()};
        const auto type = random() % 2 == 0 ? workload_types::custom : workload_types::matrix;
        switch (random() % 5) {
          case 0: (void)runtime.run(Job(throws(x), type), options); break;
          case 1: {
            const Ticket dropped = runtime.submit(Job(scale(shared, 1.0f), type), options);
          } break;
          case 2: (void)runtime.submit(Job(scale(x, 1.0f), type), options).wait(); break;
          case 3: runtime.submit(Job(scale(y, 1.0f), type), options).cancel(); break;
          case 4: {
            const Ticket dropped = runtime.submit(Job(test::copy()(shared, y), type), options);
          } break;
        }
        if (random() % 16 == 0)
          for (float& value : shared.write().value()) value = 1.0f;  // mends it
      }
      --running;
    });
  SchedulerMetrics before;
  bool are_later = true;
  while (running > 0) {
    const SchedulerMetrics now = runtime.metrics().jobs;
    are_later = are_later && is_later(before, now);
    test::check_counts(now);
    before = now;
    std::this_thread::yield();
  }
  for (std::thread& thread : submitting) thread.join();
  CHECK(are_later);
  CHECK(shared.write());  // after the last user
  runtime.close();
  const SchedulerMetrics metrics = runtime.metrics().jobs;
  test::check_counts(metrics);
  CHECK(metrics.submitted == std::uint64_t{threads} * jobs);
  CHECK(metrics.queued == 0);
  CHECK(metrics.running == 0);
  for (const std::uint64_t count : {metrics.completed, metrics.failed, metrics.cancelled, metrics.timed_out})
    CHECK(count > 0);
}
