// Leases, jobs, shortages of memory, failures and losses of devices at random, from one seed. After
// each period all threads stop, and a model that knows only what the threads have done checks that
// slots, bytes and jobs balance.
//
// WYE_SOAK_SECONDS sets the length of each test (10 s), WYE_SOAK_SEED its seed (1).
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/rig.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::Scripted;
using test::ScriptedDevice;

namespace {

using Random = std::mt19937_64;

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* const value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

/// The faults of all devices, which each device asks at each step.
struct Faults {
  std::atomic<std::uint64_t> steps{0};
  std::atomic<std::uint64_t> each{0};  ///< one step in so many fails; 0: none
  std::atomic<bool> holds{
      false};  ///< devices that are opened keep their work in flight, until `disturb` ends it
  std::uint64_t seed = 0;

  std::optional<Error> operator()(ScriptedDevice::Step step) {
    const std::uint64_t rate = each.load(std::memory_order_relaxed);
    const std::uint64_t number = steps.fetch_add(1, std::memory_order_relaxed);
    std::uint64_t hash = (number + seed) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
    if (rate == 0 || hash % rate != 0) return std::nullopt;
    if (step == ScriptedDevice::Step::create_buffer)
      return Error(Errc::out_of_memory, "The script has no memory.");
    if (step == ScriptedDevice::Step::wait) return std::nullopt;  // its lane would hide the state of the work
    return Error(Errc::internal, "The script fails this step.");
  }
};

/// A device in all of its generations.
struct Mortal final : device::Adapter {
  Mortal(AdapterInfo of, std::uint8_t number, std::shared_ptr<Faults> given)
      : described(std::move(of)), silicon(number), faults(std::move(given)) {
    current = make();
  }
  const AdapterInfo& info() const noexcept override { return described; }
  bool can_reopen() const noexcept override { return true; }
  Result<std::shared_ptr<device::DeviceBase>> open() override {
    const std::lock_guard lock(mutex);
    earlier.push_back(current);
    return std::shared_ptr<device::DeviceBase>(current = make());
  }
  Scripted make() const {
    auto made = test::scripted(described.id, described.type, described.features, silicon);
    made->set_script([shared = faults](ScriptedDevice::Step step) { return (*shared)(step); });
    if (faults->holds) made->hold();
    return made;
  }
  Scripted now() {
    const std::lock_guard lock(mutex);
    return current;
  }

  const AdapterInfo described;
  const std::uint8_t silicon;
  const std::shared_ptr<Faults> faults;
  std::mutex mutex;
  Scripted current;  // under `mutex`, like `earlier`
  std::vector<std::weak_ptr<ScriptedDevice>> earlier;
  std::atomic<std::uint64_t> completed{0};  // jobs since its last loss
  std::uint64_t in_a_row = 0;               // losses since 17 jobs have completed
};

class Soak {
 public:
  Soak(unsigned devices, unsigned threads, std::uint64_t seed) : thread_count_(threads), seed_(seed) {
    faults_->seed = seed;
    std::vector<std::shared_ptr<device::DeviceBase>> open;
    std::vector<std::shared_ptr<device::Adapter>> adapters;
    for (unsigned d = 0; d < devices; ++d) {
      // Two devices of different backends on each processor.
      const std::string id = (d % 2 == 0 ? "vulkan:" : "cuda:") + std::to_string(d / 2);
      const auto silicon = static_cast<std::uint8_t>(100 + d / 2);
      mortals_.push_back(std::make_shared<Mortal>(
          test::scripted(id, AdapterType::discrete, {}, silicon)->info(), silicon, faults_));
      open.push_back(mortals_.back()->current);
      adapters.push_back(mortals_.back());
    }
    pool_.emplace(test::pool_over(open,
                                  {.lanes_per_device = 2,
                                   .contexts_ahead = 1,
                                   .slots = 3,
                                   .silicon_memory = 512_KiB,
                                   .tag_memory = {{"small", 48_KiB}},
                                   .lane_memory = 192_KiB,
                                   .lease_timeout = 5s,
                                   .clock = &clock_},
                                  adapters));
    scheduler_.emplace(
        scheduler::open(*pool_, std::make_shared<test::Builder>(Clock::steady()),
                        {.job_time_limit = Duration::max(),
                         .preferences = {{workload_types::custom, Bytes{0}, {"vulkan", "cuda"}}}})
            .value());
  }

  /// Runs periods until `end`.
  void run(Instant end) {
    while (Clock::steady().now() < end) {
      const Instant until = std::min(end, Clock::steady().now() + 400ms);
      std::vector<std::thread> threads;
      for (unsigned t = 0; t < thread_count_; ++t)
        threads.emplace_back([this, until, seed = seed_ * 1'000'003 + periods_ * 64 + t] {
          Random random(seed);
          while (Clock::steady().now() < until) act(random);
        });
      std::atomic<bool> is_quiet{false};
      faults_->holds = true;
      std::thread chaos([&] {
        Random random(seed_ * 7'919 + periods_);
        while (!is_quiet) disturb(random);
        faults_->holds = false;
        for (const auto& mortal : mortals_) mortal->now()->release();
      });
      for (std::thread& thread : threads) thread.join();
      is_quiet = true;
      chaos.join();
      faults_->each = 0;
      ++periods_;
      check();
    }
  }

  std::uint64_t losses() const { return losses_; }
  std::uint64_t jobs() const { return submitted_; }

 private:
  static std::uint64_t below(Random& random, std::uint64_t n) { return random() % n; }

  JobOptions options(Random& random) const {
    static constexpr Priority priorities[] = {Priority::low, Priority::normal, Priority::high};
    JobOptions options{.priority = priorities[below(random, 3)]};
    if (below(random, 4) == 0) options.tag = "small";
    if (below(random, 2) == 0) options.on = mortals_[below(random, mortals_.size())]->described.id;
    return options;
  }

  Ticket submit(Job job, const JobOptions& with) {
    ++submitted_;
    Ticket ticket = scheduler_->submit(std::move(job), with);
    ticket.then([this](const Result<Outcome>& result) {
      ++settled_;
      if (!result) return void(++failed_);
      for (const auto& mortal : mortals_)
        if (mortal->described.id == result->device().id) ++mortal->completed;
    });
    return ticket;
  }

  /// Counts values that are not `expected`, and keeps the first.
  template <class Values, class T>
  void note(const Values& values, T expected, const char* of) {
    const auto wrong = std::find_if(values.begin(), values.end(), [&](T v) { return v != expected; });
    if (wrong == values.end() || wrong_++ != 0) return;
    const std::lock_guard lock(mutex_);
    first_wrong_ = std::string(of) + " has " + std::to_string(*wrong) + " at " +
                   std::to_string(wrong - values.begin()) + ", expected " + std::to_string(expected);
  }

  void act(Random& random) {
    switch (below(random, 8)) {
      case 0: return lease(random);
      case 1: return cancel_some(random);
      case 2: return use_array(random);
      default: return run_jobs(random);
    }
  }

  /// Jobs on memory of the host: a failed one leaves it unchanged.
  void run_jobs(Random& random) {
    constexpr float before = 3.0f, after = 6.0f;
    std::vector<std::vector<float>> memory(1 + below(random, 6));
    std::vector<Ticket> tickets;
    for (auto& values : memory) {
      values.assign(1 + below(random, below(random, 32) == 0 ? 20'000 : 500), before);
      tickets.push_back(submit(scale_(values, 2.0f), options(random)));
    }
    for (std::size_t i = 0; i < tickets.size(); ++i) {
      const auto done = tickets[i].wait();
      const float expected = done ? after : before;
      note(memory[i], expected, done ? "a completed job" : "a failed job");
    }
  }

  void cancel_some(Random& random) {
    std::vector<std::vector<float>> memory(4, std::vector<float>(64, 1.0f));
    std::vector<Ticket> tickets;
    for (auto& values : memory) tickets.push_back(submit(scale_(values, 2.0f), options(random)));
    for (Ticket& ticket : tickets)
      if (below(random, 2) == 0) ticket.cancel();
    for (Ticket& ticket : tickets) {
      const auto done = ticket.wait();
      if (done) continue;
      cancelled_ += done.error() == Errc::cancelled;
    }
  }

  /// Three jobs in a row on an array: its contents are those of all of them, or lost.
  void use_array(Random& random) {
    std::vector<float> values(1 + below(random, 2'000), 1.0f);
    auto array = test::array_in(*pool_, values);
    std::vector<Ticket> tickets;
    for (int i = 0; i < 3; ++i) tickets.push_back(submit(scale_(array, 2.0f), options(random)));
    bool all = true;
    for (Ticket& ticket : tickets) all &= ticket.wait().has_value();
    const auto contents = array.read();
    if (contents && all) note(*contents, 8.0f, "an array");
  }

  void lease(Random& random) {
    LeaseRequest request{.deadline = Deadline(50ms), .tag = "soak"};
    const std::string on = mortals_[below(random, mortals_.size())]->described.id;
    if (below(random, 3) == 0) request.on = on;
    auto lease = below(random, 2) == 0 ? pool_->lease(request) : pool_->try_lease(request);
    if (!lease) return;
    ++leases_;
    const std::uint64_t count = 1 + below(random, 8'000);
    auto buffer = lease->buffer<std::uint32_t>(count);
    if (!buffer) return;
    lease->fill(*buffer, 0x01010101);
    if (below(random, 3) == 0) return lease->submit(), void();  // it ends with work in flight
    std::vector<std::uint32_t> values(count);
    lease->download(*buffer, std::span(values));
    if (lease->wait(Deadline(50ms))) note(values, 0x01010101u, "a lease");
  }

  /// One event: a loss, failing steps, memory that is freed, or nothing. Time passes, and work that
  /// was in flight completes.
  void disturb(Random& random) {
    Mortal& mortal = *mortals_[below(random, mortals_.size())];
    switch (1 + below(random, 15)) {
      case 1: faults_->each = below(random, 2) == 0 ? 0 : 400 + below(random, 1000); break;
      case 2: pool_->trim(static_cast<IdleMemory>(below(random, 3))); break;
      case 3: std::this_thread::sleep_for(200us); break;
      default: {
        // Ten losses and failures in a row would end it: 16 jobs that complete make the next loss a
        // first one.
        if (mortal.completed.exchange(0) >= 17) mortal.in_a_row = 0;
        if (mortal.in_a_row >= 4 || mortal.now()->lost()) break;
        ++mortal.in_a_row;
        ++losses_;
        mortal.now()->lose();
      }
    }
    clock_.advance(31s);  // the back-off of lost devices passes
    for (const auto& one : mortals_) {
      const Scripted device = one->now();
      device->release();
      if (below(random, 2) == 0) device->hold();
    }
  }

  void check() {
    INFO("seed " << seed_ << ", period " << periods_);
    if (wrong_ != 0) FAIL_CHECK(wrong_ << " wrong values; the first: " << first_wrong_);
    // Every job has settled once, and the scheduler counts the same.
    test::await([&] { return settled_ == submitted_; });  // callbacks follow the ends of waits
    test::await([&] { return scheduler_->metrics().running == 0; });
    const SchedulerMetrics jobs = scheduler_->metrics();
    test::check_counts(jobs);
    CHECK(jobs.submitted == submitted_ + probes_);
    CHECK(jobs.completed == submitted_ - failed_ + probes_ - failed_probes_);
    CHECK(jobs.queued == 0);
    // Each device runs a job, so that it has been opened again.
    for (const auto& mortal : mortals_) {
      std::vector<float> values(16, 1.0f);
      const auto probe = [&] {
        clock_.advance(31s);
        ++probes_;
        return scheduler_
            ->submit(scale_(values, 2.0f), {.time_limit = Duration::max(), .on = mortal->described.id})
            .wait();
      };
      auto done = probe();
      if (!done &&
          done.error() == Errc::device_lost) {  // the first one to find the loss, which begins a back-off
        ++failed_probes_;
        done = probe();
      }
      if (!done) FAIL_CHECK(done.error().describe());
    }
    // No slot is used, no lease is left, and all memory was freed.
    pool_->trim();
    test::await([&] { return pool_->metrics().active == 0; });
    pool_->trim();
    for (const SiliconInfo& silicon : pool_->silicon()) {
      CHECK(silicon.used == 0);
      CHECK(silicon.waiting == 0);
      CHECK(silicon.leases.empty());
      CHECK((silicon.slots >= 1 && silicon.slots <= 3));
      for (const MemoryShare& share : silicon.memory)
        if (share.held != Bytes{})
          FAIL_CHECK(share.level << " '" << share.owner << "' holds " << to_string(share.held));
      for (const DeviceState& device : silicon.devices)
        if (device.health != DeviceHealth::healthy) FAIL_CHECK("'" << device.id << "' is not healthy");
    }
    for (const auto& mortal : mortals_) {
      CHECK(mortal->now()->buffers_alive() == 0);
      CHECK(mortal->now()->lanes_cut_off() == 0);
      const std::lock_guard lock(mortal->mutex);
      for (const auto& weak : mortal->earlier)
        if (const auto one = weak.lock()) CHECK(one->buffers_alive() == 0);
      std::erase_if(mortal->earlier, [](const auto& weak) { return weak.expired(); });
      CHECK(mortal->earlier.size() < 8);  // lost devices do not pile up
    }
    CHECK(pool_->metrics().recoveries <=
          losses_);  // a device that is lost while it is probed was never in use
  }

  const unsigned thread_count_;
  const std::uint64_t seed_;
  std::uint64_t periods_ = 0, probes_ = 0, failed_probes_ = 0;
  ManualClock clock_;  // of the pool: back-offs and trims
  const std::shared_ptr<Faults> faults_ = std::make_shared<Faults>();
  std::vector<std::shared_ptr<Mortal>> mortals_;
  std::optional<ContextPool> pool_;
  const Kernel<ReadWrite<float>, float> scale_ = test::host_scale();
  std::atomic<std::uint64_t> submitted_{0}, settled_{0}, failed_{0}, cancelled_{0}, leases_{0}, losses_{0};
  std::atomic<int> wrong_{0};
  std::mutex mutex_;
  std::string first_wrong_;             // under `mutex_`
  std::optional<Scheduler> scheduler_;  // ends first
};

void soak(unsigned devices, unsigned threads) {
  const std::uint64_t seed = setting("WYE_SOAK_SEED", 1);
  Soak soak(devices, threads, seed);
  soak.run(Clock::steady().now() + std::chrono::seconds(setting("WYE_SOAK_SECONDS", 10)));
  CHECK(soak.losses() > 0);
  WARN("seed " << seed << ": " << soak.jobs() << " jobs on " << devices << " devices, " << soak.losses()
               << " losses");
}

}  // namespace

TEST_CASE("eight threads lease and submit while devices fail and are lost", "[soak]") { soak(4, 8); }

TEST_CASE("sixty-four devices with limited memory fail and are lost", "[soak]") { soak(64, 8); }
