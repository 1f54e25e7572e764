// Random use of a pool by many threads, from seeds.
#include <wye/pool/context_pool.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "all_devices.hpp"
#include "base/internals.hpp"
#include "support/catch.hpp"
#include "support/scripted_pool.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::pool_of;
using test::Scripted;
using test::scripted;
using Step = test::ScriptedDevice::Step;

namespace {

/// Leases that their threads have left to other threads to end.
class Left {
 public:
  void add(Lease lease) {
    const std::lock_guard lock(mutex_);
    leases_.push_back(std::move(lease));
  }
  std::optional<Lease> take() {
    const std::lock_guard lock(mutex_);
    if (leases_.empty()) return std::nullopt;
    std::optional<Lease> last(std::move(leases_.back()));
    leases_.pop_back();
    return last;
  }

 private:
  std::mutex mutex_;
  std::vector<Lease> leases_;
};

/// Threads that lease contexts of three devices, submit, and lose the second device.
class Stress {
 public:
  Stress(ContextPool& pool, const std::array<Scripted, 3>& devices) : pool_(pool), devices_(devices) {}

  void run(unsigned seed, unsigned thread) {
    std::mt19937 random(seed * 100 + thread);
    for (int i = 0; i < 200; ++i) {
      auto lease = request(random);
      if (thread == 0 && i == 120) devices_[1]->lose();
      if (random() % 40 == 0) devices_[random() % 3]->hold();
      if (random() % 8 == 0) devices_[random() % 3]->release();
      if (random() % 4 == 0) (void)left_.take();  // ends the lease of another thread
      if (lease) use(*std::move(lease), random, thread);
    }
  }
  void check(const PoolMetrics& now) {
    wrong_ += now.active > now.contexts || now.contexts > 6;
    for (const ContextInfo& context : pool_.contexts()) wrong_ += context.bytes > 4000_B;
  }
  void end_leases() {
    while (left_.take()) {
    }
  }
  std::uint64_t leased() const { return leased_; }
  std::uint64_t timed_out() const { return timed_out_; }
  std::uint64_t wrong() const { return wrong_; }

 private:
  Result<Lease> request(std::mt19937& random) {
    constexpr std::array<std::string_view, 5> on{"", "", "cuda", "cuda:1", "vulkan:0"};
    const LeaseRequest request{.on = on[random() % on.size()], .deadline = 200us};
    auto lease = random() % 2 == 0 ? pool_.lease(request) : pool_.try_lease(request);
    leased_ += lease.has_value();
    if (!lease) {
      wrong_ += !is_expected(lease.error());
      timed_out_ += lease.error() == Errc::timed_out;
    }
    return lease;
  }
  /// The codes of a lease that a pool whose devices fail and are lost may refuse.
  static bool is_expected(const Error& error) {
    return error == Errc::timed_out || error == Errc::unavailable || error == Errc::out_of_memory ||
           error == Errc::device_lost;
  }
  void use(Lease lease, std::mt19937& random, unsigned thread) {
    const auto buffer = lease.buffer<std::uint32_t>(1 + random() % 1500);
    if (!buffer) {
      wrong_ += buffer.error() != Errc::over_budget && buffer.error() != Errc::device_lost;
      return;
    }
    lease.upload(std::vector<std::uint32_t>(buffer->size(), thread), *buffer);
    if (random() % 3 == 0) lease.fill(Buffer(), 0);
    if (random() % 2 == 0) lease.submit();
    if (random() % 4 == 0) {
      std::vector<std::uint32_t> out(buffer->size());
      lease.download(*buffer, out);
      if (lease.wait(100us)) wrong_ += out != std::vector<std::uint32_t>(out.size(), thread);
      { const Lease ends = std::move(lease); }  // before `out`
    } else if (random() % 2 == 0) {
      left_.add(std::move(lease));
    }
  }

  ContextPool& pool_;
  const std::array<Scripted, 3>& devices_;
  std::atomic<std::uint64_t> leased_{0}, timed_out_{0}, wrong_{0};
  Left left_;
};

}  // namespace

TEST_CASE("eight threads lease, submit, fail, lose devices and end each other's leases", "[pool]") {
  const unsigned seed = GENERATE(1u, 2u, 3u, 4u, 5u, 6u);
  CAPTURE(seed);
  const std::array<Scripted, 3> devices{scripted("cuda:0"), scripted("cuda:1"), scripted("vulkan:0")};
  std::atomic<unsigned> steps{seed};
  for (const Scripted& device : devices)
    device->set_script([&](Step step) -> std::optional<Error> {
      const unsigned n = ++steps;
      if (step == Step::create_lane && n % 7 == 0) return Error(Errc::out_of_memory, "No lane this time.");
      if (step == Step::submit && n % 11 == 0) return Error(Errc::unavailable, "No submission this time.");
      return std::nullopt;
    });
  std::optional<ContextPool> pool =
      pool_of({devices[0], devices[1], devices[2]},
              {.lanes_per_device = 2, .lane_memory = 4000_B, .close_timeout = 60s});
  Stress stress(*pool, devices);
  std::atomic<int> running{8};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      stress.run(seed, t);
      --running;
    });
  while (running != 0) {
    stress.check(pool->metrics());
    std::this_thread::yield();
  }
  for (auto& thread : threads) thread.join();
  stress.end_leases();
  CHECK(stress.wrong() == 0);
  const PoolMetrics metrics = pool->metrics();
  CHECK(metrics.active == 0);
  CHECK(metrics.leases == stress.leased());
  CHECK(metrics.timeouts <= stress.timed_out());
  CHECK(pool->lease({.on = "cuda:1"}).error() == Errc::device_lost);
  for (const Scripted& device : devices) device->release();
  CHECK(pool->close(60s));
  CHECK(pool->metrics().bytes == 0_B);
  pool.reset();
  for (const Scripted& device : devices) {
    CHECK(device->lanes_alive() == 0);
    CHECK(device->buffers_alive() == 0);
    CHECK(device->lanes_cut_off() == 0);
  }
}

TEST_CASE("threads exchange results through the contexts of real devices", "[pool]") {
  ContextPool pool = test::all_devices({.lanes_per_device = 2, .lease_timeout = 60s});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      const auto devices = pool.devices();
      for (unsigned i = 0; i < 25; ++i) {
        auto lease = pool.lease({.on = devices[random() % devices.size()].id()});
        if (!lease) {
          ++wrong;
          continue;
        }
        const std::size_t size = 1 + random() % 5000;
        auto a = lease->buffer<std::uint32_t>(size), b = lease->buffer<std::uint32_t>(size);
        if (!a || !b) {
          ++wrong;
          continue;
        }
        std::vector<std::uint32_t> values(size, t * 1000 + i), out(size);
        lease->upload(values, *a);
        lease->copy(*a, *b, b->bytes());
        if (random() % 4 == 0) continue;  // ends with work in flight
        lease->download(*b, out);
        wrong += !lease->wait() || out != values;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(pool.close(60s));
  CHECK(pool.metrics().active == 0);
  CHECK(pool.metrics().leases == 150);
}
