// Shuts a server down under load: it accepts no more requests, and every request gets an answer.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>
#include <wye/workloads/normalize.hpp>
#include <wye/wye.hpp>

int main() {
  using namespace std::chrono_literals;

  auto runtime = wye::Runtime::open({.scheduler = {.concurrent_jobs = 2}});
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  // Four connections send requests until one is answered with `closed`.
  std::atomic<unsigned> served{0}, late{0}, refused{0}, failed{0};
  const auto serve = [&] {
    std::vector<float> rows(64 * 512, 0.5f);
    for (bool open = true; open;) {
      auto done = runtime->run(wye::workloads::normalize(rows, 512), {.start_by = 1s, .tag = "request"});
      if (done) {
        ++served;
      } else if (done.error() == wye::Errc::timed_out) {
        ++late;  // overload: the client gets an error instead of an endless wait
      } else if (done.error() == wye::Errc::closed) {
        ++refused;
        open = false;
      } else {
        ++failed;
        open = false;
        std::puts(done.error().describe().c_str());
      }
    }
  };
  std::vector<std::thread> connections;
  for (int i = 0; i < 4; ++i) connections.emplace_back(serve);

  std::this_thread::sleep_for(100ms);
  // Running jobs complete; queued and later jobs fail with `closed`.
  runtime->close();
  for (std::thread& connection : connections) connection.join();

  std::printf("served %u, late %u, refused %u, failed %u\n", served.load(), late.load(), refused.load(),
              failed.load());
  return served > 0 && refused == 4 && failed == 0 ? 0 : 1;
}
