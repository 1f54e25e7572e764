// Prints where a job ran, how long it took, and why the other devices were not chosen.
#include <chrono>
#include <cstdio>
#include <vector>
#include <wye/workloads/normalize.hpp>
#include <wye/wye.hpp>

int main() {
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  // Every device, and the reason for each that cannot be used.
  for (const wye::AdapterInfo& adapter : runtime->adapters())
    std::printf("%-10s %s\n", adapter.id.c_str(),
                adapter.usable ? adapter.name.c_str() : adapter.reason.c_str());

  std::vector<float> rows(1000 * 512, 0.5f);
  auto ticket = runtime->submit(wye::workloads::normalize(rows, 512));
  auto done = ticket.wait();
  if (!done) return std::puts(done.error().describe().c_str()), 1;

  const auto microseconds = [](wye::Duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
  };
  std::printf("\nran on %s (%s): queued %.0f us, built %.0f us, ran %.0f us, moved %s, kernel: %s\n",
              done->device().id.c_str(), done->device().name.c_str(), microseconds(done->queue_time()),
              microseconds(done->build_time()), microseconds(done->run_time()),
              wye::to_string(done->bytes_transferred()).c_str(), wye::name(done->cache_tier()).data());
  std::puts(ticket.explain().text().c_str());

  // Where the next one would run, and how long it would take: nothing runs.
  auto next = runtime->scheduler().estimate(wye::workloads::normalize(rows, 512));
  if (!next) return std::puts(next.error().describe().c_str()), 1;
  std::printf("\n%s\n", next->text().c_str());
  return 0;
}
