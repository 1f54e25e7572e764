#include <wye/cache/cache_directory.hpp>
#include <wye/wye.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/internals.hpp"
#include "device/provider.hpp"
#include "pool/pool.hpp"
#include "support/catch.hpp"
#include "support/compilers.hpp"
#include "support/kernels.hpp"
#include "support/memory_store.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using namespace wye::literals;

namespace {

/// A variable of this process, as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value.empty() ? ::unsetenv(name) : ::setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;  // puts back once
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("a rescan of a machine that has not changed opens nothing, and jobs go on", "[runtime][rescan]") {
  Runtime runtime = Runtime::open().value();
  const auto ids = [&] {
    std::vector<std::string> all;
    for (const Device& device : runtime.devices()) all.push_back(device.id());
    return all;
  };
  const std::vector<std::string> before = ids();
  const std::size_t adapters = runtime.adapters().size();
  const auto scale = test::scale();
  std::vector<float> x(1000, 1.0f);
  for (int round = 0; round < 3; ++round) {
    const auto found = runtime.rescan();
    if (!found) FAIL(found.error().describe());
    CHECK(found->empty());
    CHECK(ids() == before);
    CHECK(runtime.adapters().size() == adapters);
    REQUIRE(runtime.run(scale(x, 2.0f)));
  }
  CHECK(x == std::vector<float>(1000, 8.0f));
  REQUIRE(runtime.close(Deadline(std::chrono::seconds(60))));
  CHECK(runtime.rescan().error() == Errc::closed);
}

TEST_CASE("the CPU is always present, and a missing device has a reason", "[runtime]") {
  const Runtime runtime = Runtime::open().value();
  bool cpu = false;
  for (const AdapterInfo& info : runtime.adapters()) {
    INFO(info.id);
    CHECK(info.usable == info.reason.empty());
    cpu |= info.id == "cpu:0" && info.usable;
  }
  CHECK(cpu);
  CHECK(runtime.devices().size() ==
        static_cast<std::size_t>(std::count_if(runtime.adapters().begin(), runtime.adapters().end(),
                                               [](const AdapterInfo& info) { return info.usable; })));
}

TEST_CASE("a runtime without any device reports a reason for each", "[runtime]") {
  auto none = Runtime::open({.pool = {.backends = {"cuda"}}});
  if (none) return test::skip("there is a CUDA device");
  CHECK(none.error() == Errc::unavailable);
  CHECK(none.error().sentence().find("No device can be used. cuda") == 0);
}

TEST_CASE("headers of another version are refused with both versions", "[runtime]") {
  auto refused = Runtime::open({}, {Version{0, 99, 0}, sizeof(RuntimeOptions)});
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::unsupported);
  CHECK(refused.error().sentence().find("wye 0.99.0") != std::string::npos);
  CHECK(refused.error().sentence().find(to_string(library_version())) != std::string::npos);
  CHECK(library_version() == header_version);
}

TEST_CASE("metrics add up", "[runtime]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  std::vector<float> x(64, 1.0f);
  const auto scale = test::host_scale();
  for (int i = 0; i < 5; ++i) CHECK(runtime.run(scale(x, 1.5f)));
  const Metrics metrics = runtime.metrics();
  CHECK(metrics.jobs.submitted == 5);
  CHECK(metrics.jobs.completed == 5);
  CHECK(metrics.jobs.completed_by_backend.at("cpu") == 5);
  CHECK(metrics.cache.kernels == 1);
  CHECK(metrics.cache.hits == 4);
  CHECK(metrics.cache.misses == 0);  // a host function needs no build
  CHECK(metrics.pool.active == 0);
  CHECK(metrics.pool.leases == 5);
  CHECK(metrics.contexts.size() == metrics.pool.contexts);
  std::uint64_t kernels = 0;
  for (const ContextInfo& context : metrics.contexts) kernels += context.kernels;
  CHECK(kernels == 5);
}

TEST_CASE("an outcome has the cache tier of its kernel", "[runtime]") {
  Runtime runtime = Runtime::open().value();
  std::vector<float> x(64, 1.0f);
  const auto scale = test::scale();
  for (const Device& device : runtime.devices()) {
    if (!test::runs_glsl_or_host(device)) continue;
    const bool compiles = device.info().backend != "cpu";
    CHECK(runtime.run(scale(x, 2.0f), {.on = device.id()})->cache_tier() ==
          (compiles ? CacheTier::built : CacheTier::none));
    CHECK(runtime.run(scale(x, 2.0f), {.on = device.id()})->cache_tier() == CacheTier::memory);
  }
}

TEST_CASE("the three nouns work alone and together", "[runtime]") {
  auto pool = ContextPool::open({.backends = {"cpu"}, .lanes_per_device = 4}).value();
  auto cache = ShaderCache::open({.memory = 64_MiB, .eviction = Eviction::lru}).value();
  const auto scale = test::scale();
  auto lease = pool.lease().value();
  const auto program = cache.find_or_build(scale, lease.device());
  REQUIRE(program);
  std::vector<float> values(1000), out(1000, -1.0f);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.25f - 3;
  const auto buffer = lease.device().buffer<float>(values.size());
  REQUIRE(buffer);
  lease.upload(values, *buffer);
  lease.dispatch(*program, arguments(*buffer, 2.0f));
  lease.download(*buffer, out);
  REQUIRE(lease.wait(std::chrono::seconds(5)));
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(out[i] == values[i] * 2);

  ShaderCache moved = ShaderCache::open().value();
  const ShaderCache taken = std::move(moved);
  CHECK(Scheduler::open(pool, moved).error() == Errc::invalid_argument);
  CHECK(Scheduler::open(pool, cache, {}, {Version{0, 99, 0}, sizeof(SchedulerOptions)}).error() ==
        Errc::unsupported);
  Scheduler scheduler = Scheduler::open(pool, cache).value();
  CHECK(scheduler.run(scale(values, 2.0f)));
  CHECK(values == out);
  CHECK(cache.metrics().hits == 1);
}

TEST_CASE("a runtime keeps its kernels in the user's place for caches", "[runtime]") {
  const TemporaryFolder folder;
  const Variable unnamed("WYE_CACHE_DIR", ""), caches("XDG_CACHE_HOME", folder / "caches");
  const auto scale = test::scale();
  std::vector<float> x(64, 1.0f);
  for (const CacheTier expected : {CacheTier::built, CacheTier::disk}) {
    Runtime runtime = Runtime::open().value();
    CHECK(std::filesystem::is_directory(folder / "caches/wye"));
    for (const Device& device : runtime.devices())
      if (device.info().backend == "vulkan")
        CHECK(runtime.run(scale(x, 2.0f), {.on = device.id()})->cache_tier() == expected);
    const CacheMetrics counted = runtime.metrics().cache;
    CHECK(counted.driver_loads == counted.disk_hits);  // one kernel on each device whose driver stores code
    CHECK(counted.corrupt == 0);
  }
  std::filesystem::remove_all(folder / "caches");
  const Variable cpu("WYE_BACKENDS", "cpu");  // Mesa stores files there too
  CHECK(Runtime::open({.pool = {.backends = {"cpu"}}}));
  const Variable none("WYE_CACHE_DIR", "none");
  CHECK(Runtime::open());
  CHECK_FALSE(std::filesystem::exists(folder / "caches"));
}

TEST_CASE("options that a host sets win over the environment, and reach every part", "[runtime]") {
  const Variable lanes("WYE_LANES", "zero"), backends("WYE_BACKENDS", "cpu");
  CHECK(Runtime::open().error() == Errc::invalid_argument);
  CHECK(RuntimeOptions::from_environment().error() == Errc::invalid_argument);
  CHECK(Runtime::open({.pool = {.backends = {"cpu"}}}));  // reads no variable

  const Variable set("WYE_LANES", "3");
  RuntimeOptions options = RuntimeOptions::from_environment().value();
  CHECK(options.pool.lanes_per_device == 3);
  options.cache.directory.clear();
  options.scheduler.concurrent_jobs = 0;
  const auto refused = Runtime::open(options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::invalid_argument);
  CHECK(Runtime::open({.log_level = "loud"}).error() == Errc::invalid_argument);
}

TEST_CASE("the log level filters the log of every part", "[runtime]") {
  std::mutex mutex;  // events are logged by a thread of their own
  std::vector<std::string> logged;
  const LogSink log = [&](const LogRecord& record) {
    const std::lock_guard lock(mutex);
    logged.emplace_back(record.room);
  };
  const TemporaryFolder folder;
  const std::string file = folder.put("file", "x");
  const auto open = [&](std::string level) {
    logged.clear();
    return Runtime::open({.pool = {.backends = {"cpu"}},
                          .cache = {.directory = file + "/cache", .require_directory = false},
                          .log = log,
                          .log_level = std::move(level)})
        .has_value();
  };
  CHECK(open("warning"));
  CHECK(logged == std::vector<std::string>{"cache"});
  CHECK(open("trace,cache=error"));
  CHECK(std::count(logged.begin(), logged.end(), "cache") == 0);
  for (const bool is_debug : {false, true}) {
    logged.clear();
    std::optional<Runtime> runtime =
        Runtime::open({.pool = {.backends = {"cpu"}},
                       .log = log,
                       .log_level = is_debug ? "warning,scheduler=debug" : "debug,scheduler=info"})
            .value();
    std::vector<float> x(8, 1.0f);
    REQUIRE(runtime->run(test::scale()(x, 2.0f)));
    runtime.reset();
    CHECK(std::count(logged.begin(), logged.end(), "scheduler") == (is_debug ? 1 : 0));
  }
}

TEST_CASE("the eviction policy of a runtime's cache is an option", "[runtime]") {
  if (!test::has_device(*Runtime::open(), "vulkan")) return;
  const auto kept = [](Eviction eviction) {
    Runtime runtime =
        Runtime::open({.pool = {.backends = {"vulkan"}}, .cache = {.kernels = 2, .eviction = eviction}})
            .value();
    std::vector<float> x(4, 1.0f);
    const auto named = [](std::string name) {
      const std::string text =
          "#version 450\nlayout(local_size_x = 1) in; layout(set = 0, binding = 0) buffer X "
          "{ float x[]; }; void main() { x[0] = 2.0; } // " +
          name;
      return Kernel<ReadWrite<float>>::make({.name = name, .sources = {Glsl{.text = text}}}).value();
    };
    const auto a = named("a"), b = named("b"), c = named("c");
    for (const auto& kernel : {a, a, b, c}) CHECK(runtime.run(kernel(x)));
    auto labels = runtime.cache().contents();
    std::sort(labels.begin(), labels.end());
    return labels;
  };
  CHECK(kept(Eviction::lru) == std::vector<std::string>{"b@vulkan:0", "c@vulkan:0"});
  CHECK(kept(Eviction::slru) == std::vector<std::string>{"a@vulkan:0", "c@vulkan:0"});
}

TEST_CASE("a runtime keeps its kernels in a store of the host", "[runtime]") {
  if (!test::has_glsl()) return;
  const auto store = std::make_shared<test::MemoryStore>();
  const auto scale = test::scale();
  std::vector<float> x(64, 1.0f);
  for (const CacheTier expected : {CacheTier::built, CacheTier::disk}) {
    auto runtime = Runtime::open({.pool = {.backends = {"vulkan"}}, .cache = {.store = store}});
    if (!runtime) return test::skip(runtime.error().sentence());
    const Device device = runtime->devices()[0];
    CHECK(runtime->run(scale(x, 2.0f), {.on = device.id()})->cache_tier() == expected);
    CHECK_FALSE(store->blobs.empty());
  }
  const TemporaryFolder folder;
  CHECK(Runtime::open({.cache = {.directory = folder.path(), .store = store}}).error() ==
        Errc::invalid_argument);
}

TEST_CASE("a runtime's limit of stored files is an option", "[runtime]") {
  if (!test::has_glsl()) return;
  const TemporaryFolder folder;
  auto runtime = Runtime::open(
      {.pool = {.backends = {"vulkan"}}, .cache = {.directory = folder.path(), .disk_kernels = 1}});
  if (!runtime) return test::skip(runtime.error().sentence());
  const Device device = runtime->devices()[0];
  std::vector<float> x(64, 1.0f);
  for (const char* by : {"2.0", "3.0", "4.0"}) {
    const auto kernel = Kernel<ReadWrite<float>>::make(
        {.name = "scale",
         .sources = {Glsl{.text = std::string("#version 450\nlayout(local_size_x = 64) in;\n"
                                              "layout(set = 0, binding = 0) buffer X { float x[]; };\n"
                                              "void main() { x[gl_GlobalInvocationID.x] *= ") +
                                  by + "; }"}}});
    REQUIRE(kernel);
    CHECK(runtime->run((*kernel)(x), {.on = device.id()}));
  }
  const auto files = list_cache(folder.path()).value();
  CHECK(std::count_if(files.begin(), files.end(),
                      [](const StoredFile& file) { return file.kind == StoredFile::Kind::kernel; }) <= 1);
}

TEST_CASE("a runtime without a usable cache directory keeps kernels in memory, with one warning",
          "[runtime]") {
  const TemporaryFolder folder;
  const std::string file = folder.put("file", "x");
  const Variable unnamed("WYE_CACHE_DIR", "");
  std::vector<std::string> logged;
  const auto open = [&] {
    RuntimeOptions options = RuntimeOptions::from_environment().value();
    options.pool.backends = {"cpu"};
    options.log = [&](const LogRecord& record) { logged.emplace_back(record.text); };
    return Runtime::open(std::move(options)).value();
  };
  std::vector<float> x(64, 1.0f);
  {
    const Variable caches("XDG_CACHE_HOME", file);
    Runtime runtime = open();
    CHECK(runtime.run(test::scale()(x, 2.0f)));
    REQUIRE(logged.size() == 1);
    CHECK(logged[0].find("Kernels are not stored: ") == 0);
    CHECK(logged[0].find(file) != std::string::npos);
  }
  logged.clear();
  {
    const Variable caches("XDG_CACHE_HOME", ""), home("HOME", "");
    (void)open();
    CHECK(logged == std::vector<std::string>{"Kernels are not stored: there is no cache directory."});
  }
  const auto named = Runtime::open({.pool = {.backends = {"cpu"}}, .cache = {.directory = file + "/cache"}});
  REQUIRE_FALSE(named);
  CHECK(named.error() == Errc::io);
}

TEST_CASE("a prewarmed kernel needs no code generation in the driver", "[runtime]") {
  Runtime runtime = Runtime::open().value();
  const auto heavy = [](const std::string& name) {
    // Different each time, so that no cache contains it.
    const std::string seed = std::to_string(Clock::steady().now().time_since_epoch().count() % 1'000'000'007);
    std::string text =
        "#version 450\nlayout(local_size_x = 64) in;\nlayout(set = 0, binding = 0) buffer X { float x[]; };\n"
        "layout(push_constant) uniform P { float s; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; if (i >= x.length()) return; float v = x[i] + " +
        seed + ".0;\n";
    for (int i = 0; i < 40; ++i)
      text += "v = sin(v * s) + exp(-v * v) * " + std::to_string(i + 1) + ".5 + pow(abs(v), 1.5);\n";
    return Kernel<ReadWrite<float>, float>::make(
               {.name = name, .sources = {Glsl{.text = text + "x[i] = v; }"}}})
        .value();
  };
  std::vector<float> x(64, 1.0f);
  if (!test::has_device(runtime, "vulkan")) return;
  for (const Device& device : runtime.devices()) {
    if (device.info().backend != "vulkan") continue;
    const auto first_run = [&](const auto& kernel) {
      const auto ran = runtime.run(kernel(x, 1.0f), {.on = device.id()});
      REQUIRE(ran);
      CHECK(ran->cache_tier() == CacheTier::memory);
      return ran->run_time();
    };
    const auto cold = heavy("cold"), warm = heavy("warm");
    if (base::program_of(cold)->refusal(*base::state_of(device))) continue;  // this build compiles no GLSL
    auto prewarm = runtime.cache().prewarm({warm}, {device});
    REQUIRE(prewarm);
    CHECK(prewarm->wait());
    CHECK(prewarm->progress().ready == 1);
    REQUIRE(runtime.cache().find_or_build(cold, device));
    const Duration late = first_run(cold), early = first_run(warm);
    INFO(device.id() << ": " << late.count() / 1000 << " us at the first run, " << early.count() / 1000
                     << " us prewarmed");
    CHECK(early < std::chrono::milliseconds(20) + late / 4);
  }
}

TEST_CASE("an application receives every build of a runtime", "[runtime]") {
  std::mutex mutex;
  std::vector<std::string> told;
  Runtime runtime = Runtime::open({.cache = {.on_build =
                                                 [&](const BuildEvent& event) {
                                                   const std::lock_guard lock(mutex);
                                                   told.push_back(std::string(event.kernel) + "@" +
                                                                  std::string(event.device) + ": " +
                                                                  std::string(name(event.tier)));
                                                   CHECK(event.took > Duration{});
                                                   CHECK(event.bytes > Bytes{0});
                                                   CHECK(event.error == nullptr);
                                                 }}})
                        .value();
  if (!test::has_device(runtime, "vulkan")) return;
  for (const Device& device : runtime.devices()) {
    const auto scale = test::scale();
    if (device.info().backend != "vulkan" || base::program_of(scale)->refusal(*base::state_of(device)))
      continue;
    told.clear();
    std::vector<float> x(10, 1.0f);
    for (int i = 0; i < 3; ++i) {
      const bool completed = runtime.submit(scale(x, 2.0f), {.on = device.id()}).wait().has_value();
      const bool is_flushed = base::state_of(runtime.pool())->journal().flush();  // the listener asserts
      REQUIRE((completed && is_flushed));
    }
    CHECK(told == std::vector<std::string>{"scale@" + device.id() + ": built"});
    const auto kernels = runtime.cache().kernel_metrics();
    REQUIRE_FALSE(kernels.empty());
    CHECK(kernels.back().kernel == "scale");
    CHECK(kernels.back().uses == 3);
    CHECK(kernels.back().builds == 1);
    CHECK(kernels.back().spent > Duration{});
    CHECK(kernels.back().saved >= kernels.back().spent);
  }
}
