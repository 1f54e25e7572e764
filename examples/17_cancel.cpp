// Cancels jobs: a queued job completes at once, a running host function when it tests its
// StopToken.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <span>
#include <thread>
#include <vector>
#include <wye/wye.hpp>

int main() {
  using namespace std::chrono_literals;

  std::atomic<bool> started{false};
  const auto search = wye::Kernel<wye::ReadWrite<float>>::make({
      .name = "search",
      // A host function takes the token as its last parameter.
      .sources = {wye::host([&](wye::Range, std::span<float>, wye::StopToken stop) {
        started = true;
        while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
      })},
  });
  if (!search) return std::puts(search.error().describe().c_str()), 1;
  auto runtime = wye::Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.concurrent_jobs = 1}});
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  std::vector<float> x(1), y(1), z(1);
  auto running = runtime->submit((*search)(x));
  while (!started) std::this_thread::yield();
  auto queued = runtime->submit((*search)(y));
  // A job that must start within 10 ms.
  auto late = runtime->submit((*search)(z), {.start_by = 10ms});

  queued.cancel();
  std::puts(queued.wait().error().describe().c_str());
  std::puts(late.wait().error().describe().c_str());
  running.cancel();
  std::puts(running.wait().error().describe().c_str());

  const bool as_expected = queued.wait().error() == wye::Errc::cancelled &&
                           late.wait().error() == wye::Errc::timed_out &&
                           running.wait().error() == wye::Errc::cancelled;
  return as_expected ? 0 : 1;
}
