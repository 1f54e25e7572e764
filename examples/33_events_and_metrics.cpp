// Prints the events of a runtime, percentiles of job times, and with --prometheus all metrics.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>
#include <wye/workloads/matmul.hpp>
#include <wye/wye.hpp>

namespace {

double ms(wye::Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

}  // namespace

int main(int argc, char** argv) {
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  // Called on a thread of the runtime until `heard` ends.
  auto heard = runtime->listen([](const wye::Event& event) {
    if (event.kind == wye::EventKind::device_lost) std::puts("This one would raise an alarm:");
    if (event.kind != wye::EventKind::job_completed || event.number <= 3) std::puts(event.text().c_str());
    if (event.number == 1) std::puts(event.json().c_str());
  });
  if (!heard) return std::puts(heard.error().describe().c_str()), 1;

  std::vector<float> a(64 * 64, 0.5f), b(a.size(), 2.0f), c(a.size());
  for (int job = 0; job < 100; ++job)
    if (auto done = runtime->run(wye::workloads::matmul(a, b, c)); !done)
      return std::puts(done.error().describe().c_str()), 1;
  heard->finish();  // after the listener has received all of them

  const wye::Metrics now = runtime->metrics();
  const wye::TypeMetrics& matrix = now.jobs.by_type.at("matrix");
  for (const auto& [backend, times] : matrix.by_backend)
    std::printf("%s: %llu jobs, run p50 %.3f ms, p95 %.3f ms, p99 %.3f ms\n", backend.c_str(),
                static_cast<unsigned long long>(times.run.count()), ms(times.run.percentile(0.5)),
                ms(times.run.percentile(0.95)), ms(times.run.percentile(0.99)));
  std::printf("%.0f %% of the slots in use, %llu events dropped\n", 100 * now.slot_use(),
              static_cast<unsigned long long>(now.events_dropped));
  if (argc > 1 && std::strcmp(argv[1], "--prometheus") == 0)
    std::fputs(wye::prometheus_text(now).c_str(), stdout);
  return matrix.run.count() == 100 ? 0 : 1;
}
