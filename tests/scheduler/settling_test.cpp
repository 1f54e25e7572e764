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
#include <thread>
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

/// Submits jobs from several threads, cancels some and drops some tickets early. Counts how often each settles.
class Storm {
 public:
  Storm(test::Machine& machine, int threads, int jobs_each)
      : machine_(machine), jobs_each_(jobs_each), settled_(static_cast<std::size_t>(threads * jobs_each)) {
    for (int i = 0; i < 16; ++i) arrays_.push_back(machine.array(std::vector<float>(4, 1.0f)));
    for (int t = 0; t < threads; ++t) threads_.emplace_back([this, t] { submit(t); });
  }
  /// Waits until the threads have submitted and every job has settled.
  void join() {
    for (std::thread& thread : threads_) thread.join();
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (total_ < settled_.size() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
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
    const auto scale = test::host_scale();
    const auto copy = test::copy();
    for (int i = 0; i < jobs_each_; ++i) {
      Settlements& settled = settled_[static_cast<std::size_t>(thread * jobs_each_ + i)];
      const JobOptions options{.priority = static_cast<Priority>(random() % 3),
                               .start_by = random() % 32 == 0 ? Deadline(0ns) : Deadline(),
                               .on = random() % 4 == 0 ? "vulkan" : ""};
      std::vector<float> x(4, 1.0f);
      Array<float>& a = arrays_[random() % arrays_.size()];
      Array<float>& b = arrays_[random() % arrays_.size()];
      const bool borrows = random() % 2 == 0;
      {
        auto ticket =
            borrows ? machine_.scheduler.submit(scale(x, 2.0f), options)
                    : machine_.scheduler.submit(random() % 2 == 0 ? copy(a, b) : scale(a, 1.0f), options);
        ticket.then([this, &settled](const Result<Outcome>& r) {
          ++settled.count;
          settled.completed = r.has_value();
          ++total_;
        });
        if (random() % 8 == 0) ticket.cancel();
        if (random() % 4 != 0 && borrows) {
          const auto done = ticket.wait();
          // A failed job leaves the caller's memory as it was, unless it was cancelled or late.
          const bool may_be_written = done || done.error() == Errc::cancelled;
          if (done ? x[0] != 2.0f : (x[0] != 1.0f && !may_be_written)) ++wrong_memory_;
        }
      }  // the destructor waits for a job that borrows `x`
      if (random() % 64 == 0)
        if (auto view = a.write())
          for (float& value : *view) value = 1.0f;  // mends it
    }
  }

  test::Machine& machine_;
  const int jobs_each_;
  std::vector<Settlements> settled_;
  std::atomic<std::uint64_t> total_{0};
  std::atomic<int> wrong_memory_{0};
  std::vector<Array<float>> arrays_;
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("100,000 jobs on devices that fail at random each settle exactly once", "[scheduler]") {
  std::atomic<unsigned> steps{0};
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0"), c = scripted("vulkan:1");
  a->set_script(fails_one_of(7, steps));
  b->set_script(fails_one_of(31, steps));
  c->set_script(fails_one_of(101, steps));
  {
    test::Machine machine({a, b, c});
    {
      Storm storm(machine, 8, test::rounds(12'500));
      storm.join();
      CHECK(storm.settled_other_than_once() == 0);
      CHECK(storm.wrong_memory() == 0);
      const SchedulerMetrics metrics = machine.scheduler.metrics();
      test::check_counts(metrics);
      CHECK(metrics.submitted == storm.jobs());
      CHECK(metrics.completed == storm.completed());
      CHECK(metrics.queued == 0);
      CHECK(metrics.running == 0);
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

TEST_CASE("jobs on devices that are lost one after the other each settle exactly once", "[scheduler]") {
  for (int round = 0; round < test::rounds(40); ++round) {
    const std::vector<Scripted> devices{scripted("cuda:0"), scripted("vulkan:0"), scripted("vulkan:1")};
    test::Machine machine(devices);
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
    test::Machine machine({a, b});
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
