// Reads decisions as data: which device ran the last jobs, and why the others did not, as JSON for
// a log or a page.
#include <chrono>
#include <cstdio>
#include <vector>
#include <wye/workloads/axpy.hpp>
#include <wye/workloads/normalize.hpp>
#include <wye/wye.hpp>

int main() {
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  std::vector<float> x(100'000, 1.0f), y(100'000, 2.0f), rows(64 * 512, 0.5f);
  for (int i = 0; i < 3; ++i)
    if (auto done = runtime->run(wye::workloads::axpy(0.5f, x, y), {.tag = "warm-up"}); !done)
      return std::puts(done.error().describe().c_str()), 1;
  auto ticket = runtime->submit(wye::workloads::normalize(rows, 512), {.tag = "frame 1"});
  if (auto done = ticket.wait(); !done) return std::puts(done.error().describe().c_str()), 1;

  // One job: each device with its verdict, as JSON.
  std::puts(ticket.explain().json().c_str());

  // The last jobs of the scheduler, the oldest first. Nothing had to be kept for it: not even the
  // tickets.
  for (const wye::Placement& placement : runtime->scheduler().recent()) {
    std::printf("%llu %-10s %-8s on %-8s waited %7.1f us, ran %7.1f us",
                static_cast<unsigned long long>(placement.number), placement.job.c_str(),
                placement.tag.c_str(), placement.device().data(),
                std::chrono::duration<double, std::micro>(placement.queue_time).count(),
                std::chrono::duration<double, std::micro>(placement.run_time).count());
    for (const wye::Placement::Decision& other : placement.decisions)
      if (other.verdict != wye::Candidate::Verdict::ran)
        std::printf("; %s: %s", other.device.c_str(), wye::name(other.code).data());
    std::puts("");
  }
  return 0;
}
