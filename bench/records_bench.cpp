// wye_records_bench [ROUNDS]: record sets in two worker processes beside hand-written ones, in turns.
// Processor time is that of the program and its children, their start included.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>
#include <wye/records/distribute.hpp>
#include <wye/wye.hpp>

#include "peers/record_ring.hpp"

namespace {

struct Record {
  std::uint64_t words[8];
};

std::uint64_t mix(std::uint64_t value, unsigned rounds) {
  for (unsigned r = 0; r < rounds; ++r) value = (value ^ (value >> 31)) * 0x9e3779b97f4a7c15ull;
  return value;
}

/// `rounds` is the work: 1 for none to speak of, 15,000 for about 20 us.
void mix_all(std::span<const Record> in, std::span<std::uint64_t> out, unsigned rounds) {
  for (std::size_t r = 0; r < in.size(); ++r) {
    std::uint64_t sum = 0;
    for (const std::uint64_t word : in[r].words) sum += mix(word, rounds);
    out[r] = sum;
  }
}
constexpr unsigned much_work = 5000;

const wye::RecordFunction& trivial() {
  static const wye::RecordFunction function(
      "trivial", [](std::span<const Record> in, std::span<std::uint64_t> out) { mix_all(in, out, 1); });
  return function;
}
const wye::RecordFunction& heavy() {
  static const wye::RecordFunction function(
      "heavy", [](std::span<const Record> in, std::span<std::uint64_t> out) { mix_all(in, out, much_work); });
  return function;
}
/// One device is ten times slower than the other.
const wye::RecordFunction& uneven() {
  static const wye::RecordFunction function(
      "uneven", [](wye::RecordWorker& worker) { return worker.device(); },
      [](std::string& device, std::span<const Record> in, std::span<std::uint64_t> out) {
        mix_all(in, out, 1);
        std::this_thread::sleep_for(std::chrono::microseconds(device == "null:0" ? 10000 : 1000));
      });
  return function;
}

/// Loads items for as long as it works on them.
void wait(std::chrono::microseconds time) { std::this_thread::sleep_for(time); }
const wye::RecordFunction& loaded() {
  static const wye::RecordFunction function(
      "loaded", [](wye::RecordWorker& worker) { return worker.device(); },
      [](const std::string&, const Record& record) {
        wait(std::chrono::microseconds(4000));
        return record.words[0];
      },
      [](std::string&, std::span<std::uint64_t> items, std::span<std::uint64_t> out) {
        std::copy(items.begin(), items.end(), out.begin());
        wait(std::chrono::microseconds(16000));
      });
  return function;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}
double processor_seconds() {
  double sum = 0;
  for (const int of : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(of, &usage);
    sum += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }
  return sum;
}

struct Times {
  double wall, processor;
};
Times timed(const std::function<void()>& body) {
  const double before = processor_seconds();
  const auto begin = std::chrono::steady_clock::now();
  body();
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {wall, processor_seconds() - before};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void distribute(wye::Runtime& runtime, const wye::RecordFunction& function,
                const std::vector<Record>& records, std::vector<std::uint64_t>& results,
                const wye::RecordOptions& options) {
  const auto report = wye::distribute(runtime, function, records, results, options);
  if (report && report->done == records.size()) return;
  std::fprintf(stderr, "%s\n", report ? report->text().c_str() : report.error().describe().c_str());
  std::exit(1);
}

/// Each of two children of `fork` computes a half.
void halves(const std::vector<Record>& records, unsigned rounds) {
  for (const std::size_t half : {0u, 1u})
    if (::fork() == 0) {
      const std::size_t middle = records.size() / 2;
      const std::span<const Record> in =
          half == 0 ? std::span(records).first(middle) : std::span(records).subspan(middle);
      std::vector<std::uint64_t> out(in.size());
      mix_all(in, out, rounds);
      ::_exit(out[0] == 42 ? 1 : 0);
    }
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
}

std::vector<Record> random_records(std::size_t count) {
  std::vector<Record> records(count);
  std::uint64_t value = 1;
  for (Record& record : records)
    for (std::uint64_t& word : record.words) word = value = mix(value + 1, 1);
  return records;
}

/// Prints a ratio: the median of those of the rounds.
void print(const char* name, const std::vector<double>& ours, const std::vector<double>& theirs, double unit,
           const char* unit_name) {
  std::vector<double> ratios;
  for (std::size_t r = 0; r < ours.size(); ++r) ratios.push_back(ours[r] / theirs[r]);
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  std::printf("%-44s %8.2f %8.2f %s   ratio %.2f (%.2f to %.2f)\n", name, median(ours) * unit,
              median(theirs) * unit, unit_name, median(ratios), *least, *most);
}

}  // namespace

int main(int argc, char** argv) {
  if (auto end = wye::worker_main(argc, argv, {trivial(), heavy(), uneven(), loaded()})) return *end;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  auto runtime = wye::Runtime::open({.pool = {.backends = {"cpu", "null"}}});
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  const std::vector<Record> records = random_records(100'000), few = random_records(4'000);
  std::vector<std::uint64_t> results(records.size()), few_results(few.size());
  constexpr std::size_t batch = 128;
  const double batches = static_cast<double>(records.size()) / batch;
  const wye::RecordOptions two{
      .devices = {"cpu:0"}, .processes = true, .batch = batch, .workers_per_device = 2};
  std::vector<double> ours, theirs, heavy_ours, heavy_theirs, uneven_ours, uneven_least, loaded_ours,
      loaded_least, quiet, shown;
  for (int r = 0; r < rounds; ++r) {
    ours.push_back(timed([&] { distribute(*runtime, trivial(), records, results, two); }).processor);
    theirs.push_back(timed([&] {
                       peers::distribute_by_ring(std::as_bytes(std::span(records)), sizeof(Record),
                                                 std::as_writable_bytes(std::span(results)),
                                                 sizeof(std::uint64_t), batch, 2,
                                                 [](const std::byte* in, std::byte* out, std::size_t count) {
                                                   mix_all({reinterpret_cast<const Record*>(in), count},
                                                           {reinterpret_cast<std::uint64_t*>(out), count}, 1);
                                                 });
                     }).processor);
    heavy_ours.push_back(timed([&] { distribute(*runtime, heavy(), few, few_results, two); }).wall);
    heavy_theirs.push_back(timed([&] { halves(few, much_work); }).wall);

    // 220 batches of 1 ms and 10 ms: 200 and 20 of them, in 0.2 s.
    const std::vector<Record> some(few.begin(), few.begin() + 220);
    std::vector<std::uint64_t> some_results(some.size());
    uneven_ours.push_back(timed([&] {
                            distribute(*runtime, uneven(), some, some_results,
                                       {.devices = {"cpu:0", "null:0"}, .processes = true, .batch = 1});
                          }).wall);
    uneven_least.push_back(0.2 + 0.01);

    // 20 batches of 16 records: 16 ms of loading on four threads, and 16 ms of work.
    const std::vector<Record> images(few.begin(), few.begin() + 320);
    std::vector<std::uint64_t> labels(images.size());
    loaded_ours.push_back(timed([&] {
                            distribute(*runtime, loaded(), images, labels,
                                       {.devices = {"cpu:0"}, .processes = true, .batch = 16});
                          }).wall);
    loaded_least.push_back(20 * 0.016);

    wye::RecordOptions options = two;
    options.batch = 64;  // about 5 ms of work
    quiet.push_back(timed([&] { distribute(*runtime, heavy(), few, few_results, options); }).processor);
    options.progress = [](const wye::RecordProgress&) {};
    options.journal = "wye_records_bench.journal";
    std::remove(options.journal.c_str());
    shown.push_back(timed([&] { distribute(*runtime, heavy(), few, few_results, options); }).processor);
  }
  print("processor time of a batch, over a ring", ours, theirs, 1e6 / batches, "us");
  print("two busy workers, over two halves", heavy_ours, heavy_theirs, 1e3, "ms");
  print("one of two devices ten times slower", uneven_ours, uneven_least, 1e3, "ms");
  std::remove("wye_records_bench.journal");
  print("loading as long as the work, over the longer", loaded_ours, loaded_least, 1e3, "ms");
  print("progress and journal, over none", shown, quiet, 1e3, "ms");
}
