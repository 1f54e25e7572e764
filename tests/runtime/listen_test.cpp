// Listeners of a runtime, and the text of events.
#include <wye/wye.hpp>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/worker.hpp"
#include "runtime/events.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/stop_point.hpp"

using namespace wye;
using namespace std::chrono_literals;
using Json = nlohmann::json;

namespace {

const Error lost{Errc::device_lost, "The driver has stopped.",
                 NativeError{"vkQueueSubmit", -4, "DEVICE_LOST"}};

std::string text_of(base::EventData data) {
  const base::Event event{.data = std::move(data), .at = Clock::steady().now(), .thread = 3};
  const Event shown = runtime::shown(event);
  return std::string(name(shown.kind)) + ": " + shown.text();
}
Json json_of(base::EventData data) {
  const base::Event event{.data = std::move(data), .at = Clock::steady().now(), .thread = 3};
  Json all = Json::parse(runtime::shown(event).json());
  CHECK(all["thread"] == 3);
  CHECK(all["time"].get<std::string>().size() == std::string("2026-11-30T21:04:05.123456Z").size());
  all.erase("thread");
  all.erase("time");
  return all;
}

base::JobEnded job() {
  return {.id = {42},
          .number = 7,
          .name = "scale",
          .type = "vector",
          .device = "cuda:0",
          .context = "cuda:0#1",
          .attempts = 1,
          .bytes = Bytes{4096},
          .queue_time = 1ms,
          .build_time = 2ms,
          .transfer_time = 500us,
          .run_time = 250us};
}

}  // namespace

TEST_CASE("each kind of event is a line", "[events]") {
  base::JobEnded failed = job();
  failed.error = lost;
  base::KernelBuilt build{.id = {9},
                          .kernel = "scale",
                          .device = "vulkan:0",
                          .tier = CacheTier::built,
                          .took = 12ms,
                          .bytes = Bytes{4096},
                          .hit_rate = 0.5};
  base::KernelBuilt loaded = build, unbuilt = build;
  loaded.tier = CacheTier::disk;
  unbuilt.error = Error(Errc::compile_failed, "Line 3 has no semicolon.");
  base::DeviceChanged device{
      .change = base::DeviceChanged::Change::opened, .device = "cuda:0", .name = "NVIDIA H200"};
  base::DeviceChanged gone = device, back = device;
  gone.change = base::DeviceChanged::Change::lost;
  gone.error = lost;
  back.change = base::DeviceChanged::Change::recovered;
  CHECK(text_of(job()) ==
        "job_completed: job 'scale' completed on cuda:0#1 in 3.75 ms (queue 1 ms, build 2 ms, transfer 0.5 "
        "ms, run 0.25 ms)");
  CHECK(text_of(failed) ==
        "job_completed: job 'scale' failed on cuda:0#1 after 3.75 ms: The driver has stopped.");
  CHECK(text_of(build) ==
        "kernel_built: kernel 'scale' built for vulkan:0 in 12 ms (4.00 KiB, hit rate 50 %)");
  CHECK(text_of(loaded) ==
        "kernel_built: kernel 'scale' loaded from disk for vulkan:0 in 12 ms (4.00 KiB, hit rate 50 %)");
  CHECK(text_of(unbuilt) == "kernel_built: kernel 'scale' not built for vulkan:0: Line 3 has no semicolon.");
  CHECK(text_of(base::ContextSwitched{.from = "cpu:0#1",
                                      .to = "vulkan:0#0",
                                      .device = "vulkan:0",
                                      .backend = "vulkan",
                                      .duration = 800us}) ==
        "context_switched: context switch cpu:0#1 -> vulkan:0#0 (0.8 ms)");
  CHECK(text_of(device) == "device_opened: device cuda:0 opened (NVIDIA H200)");
  CHECK(text_of(gone) == "device_lost: device cuda:0 lost (NVIDIA H200): The driver has stopped.");
  CHECK(text_of(back) == "device_recovered: device cuda:0 recovered (NVIDIA H200)");
  CHECK(text_of(base::ContextCreated{
            .id = {5}, .context = "cuda:0#1", .device = "cuda:0", .limit = Bytes{512ull << 20}}) ==
        "context_created: context cuda:0#1 created (memory limit 512 MiB)");
  CHECK(text_of(base::JobFellBack{
            .id = {42}, .number = 7, .name = "scale", .type = "vector", .device = "cuda:0", .error = lost}) ==
        "fell_back: job 'scale' failed on cuda:0 and falls back: The driver has stopped.");
  CHECK(text_of(base::SlotWaited{.context = "cuda:0#1", .device = "cuda:0", .took = 3ms}) ==
        "slot_waited: context cuda:0#1 leased after 3 ms of waiting for a slot");
  CHECK(text_of(base::PressureChanged{.silicon = "NVIDIA H200",
                                      .limited = "silicon",
                                      .held = Bytes{900ull << 20},
                                      .limit = Bytes{1ull << 30},
                                      .level = 1}) ==
        "memory_pressure: memory pressure of 'NVIDIA H200': some (900 MiB of 1.00 GiB of the silicon)");
  CHECK(text_of(base::Evicted{.name = "scale", .device = "cuda:0", .bytes = Bytes{4096}}) ==
        "evicted: kernel 'scale' evicted from cuda:0 (4.00 KiB)");
  CHECK(text_of(base::Evicted{.name = "array", .device = "cuda:0", .bytes = Bytes{4096}}) ==
        "evicted: copy of an array evicted from cuda:0 (4.00 KiB)");
  CHECK(text_of(base::QueueFull{.limit = 65536}) == "queue_full: queue full: 65536 jobs wait (max_queued)");
  CHECK(text_of(base::KernelReloaded{.kernel = "scale", .took = 30ms}) ==
        "reloaded: kernel 'scale' reloaded in 30 ms");
  CHECK(text_of(base::KernelReloaded{.kernel = "scale", .error = lost, .took = 30ms}) ==
        "reloaded: kernel 'scale' not reloaded: The driver has stopped.");
}

TEST_CASE("an event is a JSON object with the members of its kind", "[events]") {
  CHECK(json_of(job()) == Json{{"event", "job_completed"},
                               {"id", 42},
                               {"number", 7},
                               {"name", "scale"},
                               {"type", "vector"},
                               {"device", "cuda:0"},
                               {"context", "cuda:0#1"},
                               {"queue_ms", 1.0},
                               {"build_ms", 2.0},
                               {"transfer_ms", 0.5},
                               {"run_ms", 0.25},
                               {"attempts", 1},
                               {"bytes", 4096}});
  CHECK(json_of(base::JobFellBack{.id = {42}, .number = 7, .name = "s", .device = "cuda:0", .error = lost}) ==
        Json{{"event", "fell_back"},
             {"id", 42},
             {"number", 7},
             {"name", "s"},
             {"device", "cuda:0"},
             {"error", {{"code", "device_lost"}, {"sentence", "The driver has stopped."}}}});
  CHECK(json_of(base::KernelBuilt{
            .id = {9}, .kernel = "\xff\"\n", .device = "d", .tier = CacheTier::bundle})["name"] ==
        "\xef\xbf\xbd\"\n");
  CHECK(json_of(base::PressureChanged{
            .silicon = "H200", .limited = "runtime", .level = 2})["pressure"]["level"] == "high");
}

TEST_CASE("a listener receives each job of a runtime, with the numbers of its outcome", "[events]") {
  const int threads = base::Worker::alive();
  Runtime runtime =
      Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.concurrent_jobs = 1}}).value();
  std::vector<std::pair<std::uint64_t, std::string>> jobs;
  std::vector<EventKind> kinds;
  std::optional<Duration> run_time;
  int wrong = 0;
  auto heard = runtime.listen([&](const Event& event) {
    kinds.push_back(event.kind);
    if (event.kind != EventKind::job_completed) return;
    jobs.emplace_back(event.number, event.error ? event.error->sentence() : std::string(event.device));
    if (event.number == 1) run_time = event.times.run;
    const bool is_right = event.id && event.type == workload_types::custom.name && event.attempts == 1 &&
                          event.context == "cpu:0#0" && event.time - CalendarTime::clock::now() < 60s;
    if (!is_right) ++wrong;
  });
  REQUIRE(heard);
  CHECK(base::Worker::alive() > threads);
  std::vector<float> x(10, 1.0f);
  const auto done = runtime.run(test::host_scale()(x, 2.0f));
  REQUIRE(done);
  const auto failing =
      test::on_host("failing", [](Range, std::span<float>) { throw std::runtime_error("no"); });
  const auto failed = runtime.run(failing(x));
  heard->finish();
  CHECK(wrong == 0);
  REQUIRE(jobs.size() == 2);
  CHECK((jobs[0].first == 1 && jobs[0].second == "cpu:0"));
  CHECK((jobs[1].first == 2 && jobs[1].second == failed.error().sentence()));
  CHECK(run_time == done->run_time());
  CHECK(kinds[0] == EventKind::context_created);
  CHECK(heard->dropped() == 0);
  REQUIRE(runtime.run(test::host_scale()(x, 2.0f)));
  CHECK(jobs.size() == 2);
}

TEST_CASE("a listener that blocks delays no job, and the events that it misses are counted", "[events]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  test::StopPoint point;
  std::atomic<std::uint64_t> received{0};
  auto heard = runtime.listen([&](const Event&) {
    point.pass();
    ++received;
  });
  REQUIRE(heard);
  std::vector<float> x(10, 1.0f);
  const auto scale = test::host_scale();
  for (int job = 0; job < 20'000; ++job) REQUIRE(runtime.run(scale(x, 1.0f)));  // all events of this thread
  point.open();
  heard->finish();
  CHECK(heard->dropped() > 20'000 - 16'384 - 10);
  CHECK(received + heard->dropped() >= 20'000);
}

TEST_CASE("listeners come and go while jobs are submitted", "[events]") {
  const int threads = base::Worker::alive();
  {
    Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
    std::atomic<bool> is_ended{false};
    std::atomic<int> received{0}, failed{0};
    std::vector<std::thread> submitters;
    for (int t = 0; t < 8; ++t)
      submitters.emplace_back([&] {
        std::vector<float> x(10, 1.0f);
        while (!is_ended) failed += runtime.run(test::host_scale()(x, 1.0f)) ? 0 : 1;
      });
    for (int listener = 0; listener < 50; ++listener) {
      auto heard = runtime.listen([&](const Event& event) {
        if (event.kind == EventKind::job_completed) ++received;
      });
      REQUIRE(heard);
      const int before = received;
      if (listener % 5 == 0) test::await([&] { return received > before; });
      if (listener % 2 == 0) heard->finish();
    }
    is_ended = true;
    for (std::thread& submitter : submitters) submitter.join();
    CHECK(failed == 0);
  }
  test::await([&] { return base::Worker::alive() <= threads; });
}

TEST_CASE("a wait for a slot is an event, and in the histogram of waits", "[events]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}, .slots = 1}}).value();
  std::vector<std::string> waits;
  auto heard = runtime.listen([&](const Event& event) {
    if (event.kind == EventKind::slot_waited) waits.push_back(event.text());
  });
  std::optional<Lease> first = runtime.pool().lease().value();
  bool is_leased = false;
  std::thread other([&] { is_leased = runtime.pool().lease().has_value(); });
  test::await([&] { return runtime.pool().silicon()[0].waiting == 1; });
  first.reset();
  other.join();
  heard->finish();
  CHECK(is_leased);
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].starts_with("context cpu:0#"));
  CHECK(runtime.metrics().pool.lease_wait.count() == 1);
}

TEST_CASE("switches of a thread that switches often are in the histogram of switches", "[events]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  Lease first = runtime.pool().lease().value(), second = runtime.pool().lease().value();
  const auto submit = [](Lease& lease) {
    const Buffer buffer = lease.buffer<std::uint32_t>(4).value();
    lease.fill(buffer, 1);
    CHECK(lease.wait());
  };
  for (int i = 0; i < 10; ++i) submit(first), submit(second);  // 19 switches: the first is not timed
  CHECK(runtime.metrics().pool.switches == 19);
  CHECK(runtime.metrics().pool.switch_time.count() == 18);
  for (int i = 0; i < 200; ++i) submit(second);
  submit(first);
  CHECK(runtime.metrics().pool.switches == 20);
  CHECK(runtime.metrics().pool.switch_time.count() == 18);
}

TEST_CASE("at level debug the log has a line for each event", "[events]") {
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto sink = [&](const LogRecord& record) {
    const std::lock_guard lock(mutex);
    if (record.room == "event") lines.emplace_back(record.text);
  };
  for (const bool is_wanted : {false, true}) {
    Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}},
                                     .log = sink,
                                     .log_level = is_wanted ? "warning,event=debug" : "warning"})
                          .value();
    std::vector<float> x(10, 1.0f);
    REQUIRE(runtime.run(test::host_scale()(x, 2.0f)));
  }
  REQUIRE(lines.size() >= 3);
  CHECK(lines[0].starts_with("device cpu:0 opened ("));
  CHECK(lines[1].starts_with("context cpu:0#0 created (memory limit "));
  CHECK(lines[2].starts_with("job '"));
}

TEST_CASE("the sink of JSON writes one object on a line for each message", "[base]") {
  const int before = ::dup(STDERR_FILENO);
  std::FILE* const captured = std::tmpfile();
  REQUIRE(captured);
  std::fflush(stderr);
  ::dup2(::fileno(captured), STDERR_FILENO);
  const LogSink sink = log_json();
  sink({LogLevel::warning, "scheduler", "a \"quoted\"\nline \xff"});
  sink({LogLevel::debug, "event", "b"});
  std::fflush(stderr);
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  std::rewind(captured);
  std::vector<Json> lines;
  for (std::string line(4096, '\0'); std::fgets(line.data(), 4096, captured);)
    lines.push_back(Json::parse(line.c_str()));
  std::fclose(captured);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["level"] == "warning");
  CHECK(lines[0]["room"] == "scheduler");
  CHECK(lines[0]["text"] == "a \"quoted\"\nline \xef\xbf\xbd");
  CHECK(lines[1]["text"] == "b");
  // The same time, as the system's own conversion reads it.
  const std::string time = lines[0]["time"];
  std::tm parts{};
  REQUIRE(::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts));
  CHECK(std::abs(std::difftime(::timegm(&parts), std::time(nullptr))) < 60);
  CHECK((time.size() == 27 && time.back() == 'Z'));
}
