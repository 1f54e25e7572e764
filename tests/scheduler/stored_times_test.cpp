// Times of jobs that are kept between processes.
#include <sys/wait.h>
#include <unistd.h>
#include <wye/wye.hpp>

#include <chrono>
#include <csignal>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cache/cache.hpp"
#include "cache/directory.hpp"
#include "rig.hpp"
#include "scheduler/stored_times.hpp"
#include "scheduler/time_book.hpp"
#include "support/memory_store.hpp"

using namespace wye;
using namespace std::chrono_literals;
using scheduler::StoredTimes;
using scheduler::TimeBook;
using scheduler::Timing;
using test::await;
using test::Scripted;

namespace {

Timing timing(Duration mean, std::uint32_t count = 1) {
  return {.mean = mean, .spread = mean / 8, .least = mean, .count = count};
}

StoredTimes::Row row(std::uint16_t size_class, Duration mean) {
  return {size_class, timing(2 * mean), timing(mean, 3)};
}

StoredTimes sample() {
  return {.kernels = {{7, 50ms, 40ms, {row(40, 3ms), row(255, 400ms)}}, {8, 1ms, 0ms, {row(0, 1ns)}}},
          .variants = {{9, 12, timing(5ms)}, {10, 0, timing(scheduler::longest_time)}}};
}

/// Two GPUs with one lane each and a cache in a directory, as a process has them. The second GPU is
/// ten times faster, and later in the table.
struct Process {
  explicit Process(std::shared_ptr<BlobStore> store, const std::string& directory = {}, LogSink log = {},
                   PlacementMode mode = PlacementMode::learned) {
    for (const Scripted& device : devices) device->hold();
    SchedulerOptions options{.batch_limit = 1, .placement = mode, .clock = &clock};
    if (log) options.log = std::move(log);
    scheduler.emplace(
        test::scheduler_on(pool, devices, std::move(options),
                           cache::Cache::open({.directory = directory, .store = std::move(store)}).value()));
  }
  explicit Process(const test::Directory& directory, LogSink log = {})
      : Process(nullptr, directory.cache(), std::move(log)) {}
  Job job(std::size_t n = 1) { return kernel(values.emplace_back(n, 1.0f), 1.0f); }
  Ticket submit(std::size_t n = 1, const JobOptions& options = {}) {
    return scheduler->submit(job(n), options);
  }
  void run(std::size_t device, Duration took, std::size_t n = 1) {
    Ticket ticket = submit(n, {.on = devices[device]->info().id});
    await([&] { return devices[device]->held() == 1; });
    clock.advance(took);
    devices[device]->release_first(1);
    REQUIRE(ticket.wait());
  }
  /// Runs a job on the device that the scheduler chooses. Returns its index.
  std::size_t run_anywhere() {
    Ticket ticket = submit();
    await([&] { return devices[0]->held() + devices[1]->held() == 1; });
    const std::size_t device = devices[0]->held() == 1 ? 0 : 1;
    clock.advance(1ms);
    devices[device]->release_first(1);
    REQUIRE(ticket.wait());
    return device;
  }
  /// Returns the runs that are known of a job on a device.
  std::uint64_t runs(std::size_t device, std::size_t n = 1) {
    const auto foreseen = scheduler->estimate(job(n));
    REQUIRE(foreseen);
    for (const Candidate& candidate : foreseen->candidates)
      if (candidate.device == devices[device]->info().id)
        return candidate.estimate ? candidate.estimate->runs : 0;
    return 0;
  }

  ManualClock clock;
  std::vector<Scripted> devices = test::unlike_gpus();
  ContextPool pool = test::pool_of(devices, {.lanes_per_device = 1, .clock = &clock});
  Kernel<ReadWrite<float>, float> kernel = test::host_scale();
  std::deque<std::vector<float>> values;  // each job has its own
  std::optional<Scheduler> scheduler;
};

/// A sink that keeps the lines of the scheduler.
struct Lines {
  std::vector<std::string> texts;
  LogSink sink() {
    return [this](const LogRecord& record) {
      if (record.room == "scheduler") texts.emplace_back(record.text);
    };
  }
};

/// Changes a byte in the middle of each file.
void damage(const std::vector<std::filesystem::path>& files) {
  for (const auto& path : files) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const auto at = static_cast<std::streamoff>(std::filesystem::file_size(path) / 2);
    file.seekg(at);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(at);
    file.put(byte);
  }
}

}  // namespace

TEST_CASE("stored times are read as they were written", "[scheduler][times]") {
  CHECK(scheduler::decode_times(scheduler::encode(sample())) == sample());
  CHECK(scheduler::decode_times(scheduler::encode({})) == StoredTimes());
}

TEST_CASE("bytes that are no stored times are rejected", "[scheduler][times]") {
  const std::vector<std::byte> valid = scheduler::encode(sample());
  CHECK_FALSE(scheduler::decode_times({}));
  for (std::size_t size = 0; size < valid.size(); ++size)
    CHECK_FALSE(scheduler::decode_times(std::span(valid).first(size)));
  std::vector<std::byte> longer = valid;
  longer.push_back({});
  CHECK_FALSE(scheduler::decode_times(longer));
  std::vector<std::byte> older = valid;
  older[8 + std::string_view("wye times ").size()] = std::byte{'0'};
  CHECK_FALSE(scheduler::decode_times(older));

  const auto rejects = [](auto change) {
    StoredTimes times = sample();
    change(times);
    CHECK_FALSE(scheduler::decode_times(scheduler::encode(times)));
  };
  rejects([](StoredTimes& times) { times.kernels[0].rows[0].share.mean = 0ns; });
  rejects([](StoredTimes& times) { times.kernels[0].rows[0].share.mean = -1ns; });
  rejects([](StoredTimes& times) { times.kernels[0].rows[0].held.spread = -1ns; });
  rejects([](StoredTimes& times) { times.kernels[0].rows[0].held.least = Duration::max(); });
  rejects([](StoredTimes& times) { times.kernels[0].rows[0].held.count = 0; });
  rejects([](StoredTimes& times) { times.kernels[0].rows[0].size_class = 256; });
  rejects([](StoredTimes& times) { times.kernels[0].run = Duration::max(); });
  rejects([](StoredTimes& times) { times.kernels[0].run_before = times.kernels[0].run + 1ns; });
  rejects([](StoredTimes& times) { times.variants[0].time.mean = scheduler::longest_time + 1ns; });
  rejects([](StoredTimes& times) { times.variants[0].size_class = 1000; });
  rejects([](StoredTimes& times) { times.variants.resize(StoredTimes::most, times.variants[0]); });

  std::mt19937 random(1);
  for (int i = 0; i < 10'000; ++i) {  // a changed byte never reads outside, and may change a number
    std::vector<std::byte> changed = valid;
    changed[random() % changed.size()] = static_cast<std::byte>(random());
    if (const auto read = scheduler::decode_times(changed)) CHECK(scheduler::encode(*read) == changed);
  }
}

TEST_CASE("later times come before those that are kept", "[scheduler][times]") {
  const StoredTimes later{.kernels = {{7, 60ms, 60ms, {row(40, 5ms)}}}, .variants = {{9, 12, timing(6ms)}}};
  const StoredTimes merged = merge(later, sample());
  REQUIRE(merged.kernels.size() == 2);
  CHECK(merged.kernels[0] == StoredTimes::Kernels{7, 60ms, 60ms, {row(40, 5ms), row(255, 400ms)}});
  CHECK(merged.kernels[1] == sample().kernels[1]);
  CHECK(merged.variants == std::vector<StoredTimes::Variant>{{9, 12, timing(6ms)}, sample().variants[1]});

  StoredTimes many;
  for (std::uint64_t k = 0; k < 2 * StoredTimes::most; ++k)
    many.kernels.push_back({k, 1ms, 1ms, {row(static_cast<std::uint16_t>(k % 256), 1ms)}});
  const StoredTimes kept = merge({.kernels = {{~0ull, 1ms, 1ms, {row(1, 1ms)}}}, .variants = {}}, many);
  CHECK(kept.kernels.size() == StoredTimes::most);
  CHECK(kept.kernels[0].number == ~0ull);
  CHECK(kept.kernels[9'999].number == 9'998);
  CHECK(scheduler::decode_times(scheduler::encode(kept)) == kept);
}

TEST_CASE("a book begins with the times of an earlier process", "[scheduler][times]") {
  const bool is_known_before = GENERATE(false, true);
  TimeBook book;
  const TimeBook::Named named{.job = "a", .stored = 7};
  const auto find = [&](std::uint16_t size) {
    return book.row({.kernels = 1007, .size_class = size, .group = 2}, named);
  };
  if (is_known_before) CHECK(find(40)->mean() == 0ns);
  book.adopt(
      2, {.kernels = {{7, 50ms, 40ms, {row(40, 2ms), row(48, 8ms)}}}, .variants = {{9, 12, timing(5ms, 3)}}});
  TimeBook::Row* const here = find(40);
  CHECK(here->mean() == 2ms);
  CHECK(here->held() == 4ms);
  CHECK(here->has_run());
  CHECK(here->run() == 50ms);
  CHECK(here->run_since() == 10ms);
  CHECK(book.estimate(*find(44)) == 4ms);  // between both sizes
  CHECK(book.row({.kernels = 1008, .size_class = 40, .group = 2}, {.job = "b", .stored = 8})->mean() == 0ns);
  CHECK(book.row({.kernels = 1007, .size_class = 40, .group = 3}, named)->mean() == 0ns);
  CHECK(book.noted(2) == StoredTimes());  // nothing is new
  book.note(*here, 4ms, 4ms, Instant(1s));
  const StoredTimes noted = book.noted(2);
  REQUIRE(noted.kernels.size() == 1);
  REQUIRE(noted.kernels[0].rows.size() == 1);
  CHECK(noted.kernels[0].rows[0].share.count == 4);
  CHECK(noted.kernels[0].run == 54ms);
  CHECK(noted.kernels[0].run_before == 54ms);

  const TimeBook::CallKind call{{.kernels = 1009, .size_class = 12, .group = 2}, 9};
  CHECK(book.find_call(call).count == 3);
  book.note_call(call, 1ms);
  CHECK(book.find_call(call).least == 1ms);
  CHECK(book.find_call(call).count == 4);
  CHECK(book.noted(2).variants == std::vector<StoredTimes::Variant>{{9, 12, book.find_call(call)}});
  book.forget();
  CHECK(here->mean() == 0ns);
  CHECK(book.noted(2).kernels.empty());
}

TEST_CASE("a function of the application has the same number in every process", "[scheduler][times]") {
  std::vector<float> values{1.0f};
  const auto made = [](const char* name, auto function) {
    return Kernel<ReadWrite<float>>::make({.name = name, .sources = {host(function)}}).value();
  };
  const auto clears = [](Range range, std::span<float> x) {
    for (const std::uint64_t i : range) x[i] = 0;
  };
  const auto adds = [by = 2.0f](Range range, std::span<float> x) {
    for (const std::uint64_t i : range) x[i] += by;
  };
  const Job clear = made("a", clears)(values), add = made("a", adds)(values), other = made("b", adds)(values);
  CHECK(scheduler::stored_number_of_kernels(clear) == scheduler::stored_number_of_kernels(add));
  CHECK(scheduler::stored_number_of_kernels(add) != scheduler::stored_number_of_kernels(other));
  CHECK(scheduler::number_of_kernels(clear) != scheduler::number_of_kernels(add));
}

TEST_CASE("a second process begins with the times of the first one", "[scheduler][times]") {
  const test::Directory directory;
  {
    Process first(directory);
    first.run(0, 20ms), first.run(1, 2ms), first.run(1, 4ms, 1000);
  }
  Process second(directory);
  CHECK(second.runs(0) == 1);
  CHECK(second.runs(1) == 1);
  CHECK(second.run_anywhere() == 1);  // the first device in the table is slower
  CHECK(second.scheduler->metrics().trials == 0);
  CHECK(second.runs(1, 1000) == 1);
  CHECK(second.runs(0, 1000) == 0);
  CHECK(second.scheduler->costs().size() == 3);
}

TEST_CASE("processes that run at the same time keep each other's times", "[scheduler][times]") {
  const test::Directory directory;
  {
    Process a(directory), b(directory);
    a.run(0, 20ms), b.run(0, 5ms, 1000), b.run(1, 1ms);
  }
  Process later(directory);
  CHECK(later.runs(0) == 1);
  CHECK(later.runs(0, 1000) == 1);
  CHECK(later.runs(1) == 1);
}

TEST_CASE("times are saved a minute after the last save", "[scheduler][times]") {
  const test::Directory directory;
  Process first(directory);
  first.run(0, 20ms);
  CHECK(Process(directory).runs(0) == 0);
  first.clock.advance(1min);
  first.run(0, 20ms);
  await([&] { return !directory.files().empty(); });
  CHECK(Process(directory).runs(0) >= 1);  // a worker may save them before the second job
}

TEST_CASE("damaged times are ignored with a line in the log, and replaced", "[scheduler][times]") {
  const test::Directory directory;
  { Process(directory).run(0, 20ms); }
  REQUIRE(directory.files().size() == 1);
  damage(directory.files());
  Lines lines;
  {
    Process second(directory, lines.sink());
    REQUIRE(lines.texts.size() == 1);
    CHECK(lines.texts[0] ==
          "The stored times of jobs on 'A' are ignored: they are damaged, or of another version of wye.");
    CHECK(second.runs(0) == 0);
    second.run(0, 20ms);
  }
  lines.texts.clear();
  CHECK(Process(directory, lines.sink()).runs(0) == 1);
  CHECK(lines.texts == std::vector<std::string>());
}

TEST_CASE("forgotten times are forgotten in storage too", "[scheduler][times]") {
  const test::Directory directory;
  { Process(directory).run(0, 20ms); }
  {
    Process second(directory);
    REQUIRE(second.runs(0) == 1);
    second.scheduler->forget();
    CHECK(second.runs(0) == 0);
  }
  CHECK(Process(directory).runs(0) == 0);
}

TEST_CASE("with the order of the table, times are neither loaded nor saved", "[scheduler][times]") {
  const test::Directory directory;
  { Process(nullptr, directory.cache(), {}, PlacementMode::table).run(0, 20ms); }
  CHECK(directory.files().empty());
  { Process(directory).run(0, 20ms); }
  CHECK(Process(nullptr, directory.cache(), {}, PlacementMode::table).scheduler->costs().empty());
}

TEST_CASE("the application's store keeps times", "[scheduler][times]") {
  const auto store = std::make_shared<test::MemoryStore>();
  { Process(store).run(0, 20ms); }
  CHECK(Process(store).runs(0) == 1);
  store->put_error = Error(Errc::io, "It is full.");
  { Process(store).run(0, 20ms); }
  CHECK(Process(store).runs(0) == 1);
}

TEST_CASE("a process that is killed leaves times that load", "[scheduler][times]") {
  const test::Directory directory;
  const auto store = cache::Cache::open({.directory = directory.cache()}).value();
  const Digest key = Hasher().add("a").finish();
  StoredTimes many;
  for (std::uint64_t k = 0; k < StoredTimes::most; ++k) many.kernels.push_back({k, 1ms, 1ms, {row(1, 1ms)}});
  const std::vector<std::byte> bytes = scheduler::encode(many);
  const auto load = [&] {
    const auto record = store->driver_records()->load(key);
    REQUIRE(record);  // it is never damaged
    return *record;
  };
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      ::alarm(60);  // if this test ends first
      const auto own = cache::Cache::open({.directory = directory.cache()});
      for (;;) own.value()->driver_records()->update(key, {"a", "b"}, [&](auto) { return bytes; });
    }
    REQUIRE(child > 0);
    await([&] { return load().has_value(); });
    usleep(static_cast<useconds_t>(1000 * round));
    ::kill(child, SIGKILL);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    const auto record = load();
    REQUIRE(record);
    CHECK(scheduler::decode_times(*record) == many);
  }
}

TEST_CASE("a second process measures no variant again", "[scheduler][times]") {
  const test::Directory directory;
  ManualClock clock;
  std::string runs;
  const auto variant = [&](char letter, Duration takes) {
    return Kernel<ReadWrite<float>>::make({.name = std::string(1, letter),
                                           .sources = {host(
                                               [&, letter, takes](Range range, std::span<float> x) {
                                                 for (std::uint64_t i : range) x[i] *= 2;
                                                 clock.advance(takes);
                                                 runs += letter;
                                               },
                                               {.tile = Extent3(2000)})}})
        .value();
  };
  const auto run = [&] {
    runs.clear();
    Runtime runtime =
        Runtime::open(
            {.pool = {.backends = {"cpu"}}, .cache = {.directory = directory.cache()}, .clock = &clock})
            .value();
    const auto either = fastest_of(variant('s', 9ms), {variant('q', 5ms)});
    for (int i = 0; i < 8; ++i) {
      std::vector<float> x{1.0f};
      REQUIRE(runtime.run(either(x)));
    }
    return runs;
  };
  CHECK(run() == "sqsqsqqq");
  CHECK(run() == "qqqqqqqq");
}
