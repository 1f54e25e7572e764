// A program of wye::records: its worker process ends at one record, and the others are done.
#include <wye/records/distribute.hpp>
#include <wye/wye.hpp>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

int main(int argc, char** argv) {
  const wye::RecordFunction square{"square", [](std::span<const int> in, std::span<int> out) {
                                     for (std::size_t i = 0; i < in.size(); ++i) {
                                       if (in[i] == 42) std::abort();
                                       out[i] = in[i] * in[i];
                                     }
                                   }};
  if (auto end = wye::worker_main(argc, argv, {square})) return *end;
  auto runtime = wye::Runtime::open({.pool = {.backends = {"cpu"}}});
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;
  std::vector<int> records(1000), results(1000, -1);
  for (int i = 0; i < 1000; ++i) records[static_cast<std::size_t>(i)] = i;
  const auto report = wye::distribute(*runtime, square, records, results, {.processes = true});
  if (!report) return std::puts(report.error().describe().c_str()), 1;
  std::puts(report->text().c_str());
  if (report->done != 999 || !report->error_of(42) || results[42] != -1) return 1;
  return results[999] == 999 * 999 ? 0 : 1;
}
