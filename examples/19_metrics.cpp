// Prints metrics of one runtime: jobs, kernels and memory.
#include <chrono>
#include <cstdio>
#include <vector>
#include <wye/workloads/axpy.hpp>
#include <wye/workloads/matmul.hpp>
#include <wye/wye.hpp>

int main() {
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  std::vector<float> x(10'000, 1.0f), y(x.size()), c(x.size());
  for (int i = 0; i < 5; ++i)
    if (auto done = runtime->run(wye::workloads::axpy(2.0f, x, y)); !done)
      return std::puts(done.error().describe().c_str()), 1;
  if (auto done = runtime->run(wye::workloads::matmul(x, y, c)); !done)
    return std::puts(done.error().describe().c_str()), 1;
  (void)runtime->run(wye::workloads::axpy(2.0f, x, y), {.on = "abacus"}).has_value();  // fails

  const auto metrics = runtime->metrics();
  const auto& jobs = metrics.jobs;
  std::printf(
      "jobs: %llu submitted, %llu completed, %llu failed, %llu timed out, %llu cancelled, %u running\n",
      static_cast<unsigned long long>(jobs.submitted), static_cast<unsigned long long>(jobs.completed),
      static_cast<unsigned long long>(jobs.failed), static_cast<unsigned long long>(jobs.timed_out),
      static_cast<unsigned long long>(jobs.cancelled), jobs.running);
  for (const auto& [type, of_type] : jobs.by_type)
    std::printf("  %-8s %llu completed, built for %.2f ms, ran for %.2f ms\n", type.c_str(),
                static_cast<unsigned long long>(of_type.completed),
                std::chrono::duration<double, std::milli>(of_type.build_time).count(),
                std::chrono::duration<double, std::milli>(of_type.run_time).count());
  for (const auto& [backend, done] : jobs.completed_by_backend)
    std::printf("  on %s: %llu\n", backend.c_str(), static_cast<unsigned long long>(done));
  std::printf("kernels: %u ready, %llu built, %.0f %% found ready\n", metrics.cache.kernels,
              static_cast<unsigned long long>(metrics.cache.misses), 100 * metrics.cache.hit_rate());
  return jobs.completed == 6 && jobs.failed == 1 ? 0 : 1;
}
