// Every ticket settles exactly once, whatever fails.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::Scripted;
using test::scripted;
using Step = test::ScriptedDevice::Step;

namespace {

/// Fails one of `every` steps, with a code that another device may not have or that ends the job.
test::ScriptedDevice::Script fails_one_of(unsigned every, std::atomic<unsigned>& steps) {
  return [every, &steps](Step) -> std::optional<Error> {
    static constexpr Errc codes[] = {Errc::unavailable, Errc::out_of_memory, Errc::over_budget,
                                     Errc::internal,    Errc::unsupported,   Errc::compile_failed,
                                     Errc::io,          Errc::kernel_failed, Errc::invalid_argument};
    const std::uint64_t random = std::minstd_rand(++steps * 7919)();
    if (random % every != 0) return std::nullopt;
    return Error(codes[random / every % std::size(codes)], "The script fails this step.");
  };
}

/// The settlements of one job.
struct Settlements {
  std::atomic<int> count{0};
  std::atomic<bool> completed{false};
};

/// What the jobs of a storm do beside being cancelled, late, or dropped.
struct StormOptions {
  bool have_limits = false;                 ///< some jobs have a start_by or a time limit that passes soon
  std::function<void()> in_kernel = [] {};  ///< called by a part of the kernels
  std::function<void()> in_continuation = [] {};  ///< called before a job counts as settled
};

/// Submits jobs from several threads, cancels some and drops some tickets early. Counts how often
/// each settles.
class Storm {
 public:
  Storm(test::Machine& machine, int threads, int jobs_each, StormOptions options = {})
      : machine_(machine),
        options_(std::move(options)),
        jobs_each_(jobs_each),
        settled_(static_cast<std::size_t>(threads * jobs_each)) {
    for (int i = 0; i < 16; ++i) arrays_.push_back(machine.array(std::vector<float>(4, 1.0f)));
    for (int t = 0; t < threads; ++t) threads_.emplace_back([this, t] { submit(t); });
  }
  /// Waits until the threads have submitted and every job has settled.
  void join() {
    for (std::thread& thread : threads_) thread.join();
    REQUIRE(machine_.scheduler.quiesce(60s));
  }
  int settled_other_than_once() const {
    int wrong = 0;
    for (const Settlements& one : settled_) wrong += one.count != 1;
    return wrong;
  }
  std::uint64_t jobs() const { return settled_.size(); }
  std::uint64_t completed() const {
    std::uint64_t sum = 0;
    for (const Settlements& one : settled_) sum += one.completed;
    return sum;
  }
  int wrong_memory() const { return wrong_memory_; }

 private:
  void submit(int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    for (int i = 0; i < jobs_each_; ++i) {
      Array<float>& a = arrays_[random() % arrays_.size()];
      submit_job(random, a, settled_[static_cast<std::size_t>(thread * jobs_each_ + i)]);
      if (random() % 64 == 0)
        if (auto view = a.write())
          for (float& value : *view) value = 1.0f;  // mends it
    }
  }
  void submit_job(std::mt19937& random, Array<float>& a, Settlements& settled) {
    const JobOptions options = options_of_job(random);
    std::vector<float> x(4, 1.0f);
    const bool borrows = random() % 2 == 0;
    Job job = borrows             ? Job(scale_(x, 2.0f))
              : random() % 2 == 0 ? Job(copy_(a, arrays_[random() % arrays_.size()]))
                                  : Job(scale_(a, 1.0f));
    auto ticket = machine_.scheduler.submit(std::move(job), options);
    ticket.then([this, &settled](const Result<Outcome>& r) {
      options_.in_continuation();
      ++settled.count;
      settled.completed = r.has_value();
    });
    if (random() % 8 == 0) ticket.cancel();
    if (random() % 4 != 0 && borrows) {
      const auto done = ticket.wait();
      if (!is_right(done, x[0])) ++wrong_memory_;
    }
  }  // the ticket's destructor waits for a job that borrows `x`
  JobOptions options_of_job(std::mt19937& random) const {
    JobOptions options{.priority = static_cast<Priority>(random() % 3),
                       .start_by = random() % 32 == 0 ? Deadline(0ns) : Deadline(),
                       .on = random() % 4 == 0 ? "vulkan" : ""};
    if (!options_.have_limits) return options;
    const auto soon = std::chrono::microseconds(random() % 400);
    if (random() % 8 == 0) options.start_by = Deadline(soon);
    if (random() % 8 == 0) options.time_limit = soon;
    return options;
  }
  /// A failed job leaves the caller's memory as it was, unless it was cancelled or late.
  static bool is_right(const Result<Outcome>& done, float x) {
    if (done) return x == 2.0f;
    return x == 1.0f || done.error() == Errc::cancelled || done.error() == Errc::timed_out;
  }

  test::Machine& machine_;
  const StormOptions options_;
  const int jobs_each_;
  const Kernel<ReadWrite<float>, float> scale_ =
      Kernel<ReadWrite<float>, float>::make(
          {.name = "host_scale", .sources = {host([this](Range range, std::span<float> x, float s) {
                                   options_.in_kernel();
                                   for (const std::uint64_t at : range) x[at] *= s;
                                 })}})
          .value();
  const Kernel<Read<float>, Write<float>> copy_ = test::copy();
  std::vector<Settlements> settled_;
  std::atomic<int> wrong_memory_{0};
  std::vector<Array<float>> arrays_;
  std::vector<std::thread> threads_;
};

}  // namespace

namespace {

/// Checks that the jobs of a storm are counted, and that none is left.
void check_metrics(const SchedulerMetrics& metrics, const Storm& storm) {
  test::check_counts(metrics);
  CHECK(metrics.submitted == storm.jobs());
  CHECK(metrics.completed == storm.completed());
  CHECK(metrics.queued + metrics.running == 0);
}

/// Submits jobs from eight threads to devices that fail at random.
void check_settlements(int jobs_each) {
  std::atomic<unsigned> steps{0};
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0"), c = scripted("vulkan:1");
  a->set_script(fails_one_of(7, steps));
  b->set_script(fails_one_of(31, steps));
  c->set_script(fails_one_of(101, steps));
  {
    test::Machine machine({a, b, c}, {.batch_limit = test::shares_submissions});
    {
      Storm storm(machine, 8, jobs_each);
      storm.join();
      CHECK(storm.settled_other_than_once() == 0);
      CHECK(storm.wrong_memory() == 0);
      const SchedulerMetrics metrics = machine.scheduler.metrics();
      check_metrics(metrics, storm);
      for (const std::uint64_t count :
           {metrics.completed, metrics.failed, metrics.cancelled, metrics.timed_out, metrics.fallbacks})
        CHECK(count > 0);
    }
  }
  for (const Scripted& device : {a, b, c}) {
    CHECK(device->buffers_alive() == 0);
    CHECK(device->lanes_alive() == 0);
  }
}

/// Where a delay lets other threads act in the middle of a job's life.
enum class Window : std::uint8_t {
  create_executable,
  create_lane,
  create_buffer,
  submit,
  wait,
  reading_of_clock,  ///< between two states of a job
  kernel,
  in_flight,  ///< submissions complete late, on another thread
  continuation,
  last = continuation,
};

/// Sleeps in a part of its calls, of all threads.
class Delay {
 public:
  void act() const {
    if (std::minstd_rand(++calls_ * 7919)() % 4 == 0) std::this_thread::sleep_for(200us);
  }

 private:
  mutable std::atomic<unsigned> calls_{0};
};

/// The steady clock, with a delay.
class DelayingClock final : public Clock {
 public:
  explicit DelayingClock(const Delay& delay) : delay_(&delay) {}
  Instant now() const noexcept override {
    delay_->act();
    return Clock::steady().now();
  }

 private:
  const Delay* delay_;
};

/// Holds the submissions to a device for a while, again and again, until it is destroyed.
class HoldsNowAndThen {
 public:
  explicit HoldsNowAndThen(Scripted device) : device_(std::move(device)), thread_([this] { run(); }) {}
  ~HoldsNowAndThen() {
    ended_ = true;
    thread_.join();
  }

 private:
  void run() const {
    while (!ended_) {
      device_->hold();
      std::this_thread::sleep_for(500us);
      device_->release();
      std::this_thread::sleep_for(100us);
    }
  }
  const Scripted device_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace

TEST_CASE("100,000 jobs on devices that fail at random each settle exactly once", "[scheduler]") {
  check_settlements(test::rounds(12'500));
}

TEST_CASE("1,000,000 jobs on devices that fail at random each settle exactly once", "[.proof]") {
  check_settlements(125'000);
}

TEST_CASE("jobs of eight threads settle once each, with a delay at each point of a job's life",
          "[scheduler]") {
  for (std::uint8_t number = 0; number <= static_cast<std::uint8_t>(Window::last); ++number) {
    const auto window = static_cast<Window>(number);
    for (const bool closes : {false, true}) {
      INFO("window " << static_cast<int>(number) << (closes ? ", while the scheduler closes" : ""));
      const Delay delay;
      const DelayingClock clock(delay);
      std::atomic<unsigned> steps{number};
      const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0");
      for (const auto& [device, every] : {std::pair(a, 31u), std::pair(b, 101u)})
        device->set_script([fails = fails_one_of(every, steps), &delay, window](Step step) {
          if (static_cast<std::uint8_t>(step) == static_cast<std::uint8_t>(window)) delay.act();
          return fails(step);
        });
      StormOptions options{.have_limits = true};
      if (window == Window::kernel) options.in_kernel = [&] { delay.act(); };
      if (window == Window::continuation) options.in_continuation = [&] { delay.act(); };
      test::Machine machine({a, b}, {.batch_limit = test::shares_submissions,
                                     .clock = window == Window::reading_of_clock ? &clock : nullptr});
      std::optional<HoldsNowAndThen> holds_a, holds_b;
      if (window == Window::in_flight) holds_a.emplace(a), holds_b.emplace(b);
      Storm storm(machine, 8, test::rounds(100), options);
      if (closes) {
        while (machine.scheduler.metrics().submitted < storm.jobs() / 2) std::this_thread::yield();
        machine.scheduler.close();
      }
      storm.join();
      REQUIRE(storm.settled_other_than_once() == 0);
      REQUIRE(storm.wrong_memory() == 0);
      check_metrics(machine.scheduler.metrics(), storm);
    }
  }
}

TEST_CASE("jobs that are staged on devices that fail at random each settle exactly once", "[scheduler]") {
  std::atomic<unsigned> steps{0};
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0");
  a->set_script(fails_one_of(31, steps));
  b->set_script(fails_one_of(101, steps));
  {
    test::Machine machine(
        {a, b},
        {.committed_per_lane = 4, .batch_limit = test::shares_submissions, .refuse_unreachable = true}, 1);
    Storm storm(machine, 4, test::rounds(5000));
    storm.join();
    CHECK(storm.settled_other_than_once() == 0);
    CHECK(storm.wrong_memory() == 0);
    const SchedulerMetrics metrics = machine.scheduler.metrics();
    test::check_counts(metrics);
    CHECK(metrics.submitted == storm.jobs());
    CHECK(metrics.queued == 0);
    CHECK(metrics.running == 0);
    CHECK(metrics.prefetches > 0);
  }
  for (const Scripted& device : {a, b}) {
    CHECK(device->buffers_alive() == 0);
    CHECK(device->lanes_alive() == 0);
  }
}

TEST_CASE("jobs on devices that are lost one after the other each settle exactly once", "[scheduler]") {
  for (int round = 0; round < test::rounds(40); ++round) {
    const std::vector<Scripted> devices{scripted("cuda:0"), scripted("vulkan:0"), scripted("vulkan:1")};
    test::Machine machine(devices, {.batch_limit = test::shares_submissions});
    Storm storm(machine, 4, 100);
    for (const Scripted& device : devices) {
      while (device->count(Step::submit) < 20 && machine.scheduler.metrics().submitted < storm.jobs())
        std::this_thread::yield();
      device->lose();
    }
    storm.join();
    REQUIRE(storm.settled_other_than_once() == 0);
    REQUIRE(storm.wrong_memory() == 0);
    test::check_counts(machine.scheduler.metrics());
  }
}

TEST_CASE("jobs of a scheduler that closes while devices fail each settle exactly once", "[scheduler]") {
  for (int round = 0; round < test::rounds(40); ++round) {
    std::atomic<unsigned> steps{static_cast<unsigned>(round) * 1000};
    const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0");
    a->set_script(fails_one_of(3, steps));
    b->set_script(fails_one_of(5, steps));
    test::Machine machine({a, b}, {.batch_limit = test::shares_submissions});
    Storm storm(machine, 4, 100);
    while (machine.scheduler.metrics().submitted < 10u * static_cast<unsigned>(round) % 300)
      std::this_thread::yield();
    machine.scheduler.close();
    storm.join();
    REQUIRE(storm.settled_other_than_once() == 0);
    REQUIRE(storm.wrong_memory() == 0);
    test::check_counts(machine.scheduler.metrics());
  }
}
