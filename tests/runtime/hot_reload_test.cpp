/// Kernels that follow their files, on real Vulkan devices.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/gate.hpp"
#include "base/internals.hpp"
#include "base/worker.hpp"
#include "kernel/compilers/glsl.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/compilers.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

/// The reported reloads, in order.
class Reports {
 public:
  void add(Reload reload) {
    const base::Lock lock(mutex_);
    reloads_.push_back(std::move(reload));
    gate_.wake_all();
  }
  /// Returns the next reload. Fails the test if none is reported.
  Reload next() {
    base::Lock lock(mutex_);
    if (!gate_.wait(lock, Clock::steady().now() + 1min, [&] { return !reloads_.empty(); }))
      FAIL("Nothing was reloaded.");
    Reload first = std::move(reloads_.front());
    reloads_.pop_front();
    return first;
  }
  /// The next one, which failed: its sentence, diagnostics and all.
  std::string next_error() {
    const Reload reload = next();
    if (!reload.error) FAIL("Kernel '" << reload.kernel << "' was reloaded.");
    return reload.error->describe();
  }
  void expect_success() {
    if (const Reload reload = next(); reload.error) FAIL(reload.error->describe());
  }
  /// How many there are after a while.
  std::size_t later() {
    std::this_thread::sleep_for(300ms);
    const base::Lock lock(mutex_);
    return reloads_.size();
  }

 private:
  std::mutex mutex_;
  base::Gate gate_;
  std::deque<Reload> reloads_;
};

/// Opens a Vulkan runtime that watches files. Reports a skip if there is no Vulkan device.
std::optional<Runtime> open_following(Reports& reports, LogSink log = {}) {
  auto opened = Runtime::open({.pool = {.backends = {"vulkan"}},
                               .hot_reload = true,
                               .on_reload = [&reports](const Reload& reload) { reports.add(reload); },
                               .log = std::move(log)});
  if (opened) return std::move(*opened);
  test::skip(opened.error().sentence());
  return std::nullopt;
}

using Change = Kernel<ReadWrite<float>>;

std::string glsl(const std::string& formula, const std::string& before = {}) {
  return "#version 450\n" + before +
         "layout(local_size_x = 64) in;\n"
         "layout(set = 0, binding = 0) buffer X { float x[]; };\n"
         "void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) " +
         formula + "; }\n";
}

/// Replaces a file in one step, so that no reload reads half of it.
void save(const TemporaryFolder& folder, const std::string& name, std::string_view text) {
  std::filesystem::rename(folder.put(name + "~", text), folder / name);
}

/// Writes `text` into a file of the same size, without truncating it first.
void write_in_place(const std::string& file, const std::string& text) {
  REQUIRE(std::filesystem::file_size(file) == text.size());
  std::fstream(file, std::ios::binary | std::ios::in | std::ios::out) << text;
}

Change change_of(const std::string& file, const char* name = "change") {
  return Change::make({.name = name, .sources = {Glsl::from_file(file).value()}}).value();
}

/// Returns the result of a kernel for the input 1.
float of_one(Runtime& on, const Change& kernel) {
  std::vector<float> x(100, 1.0f);
  const auto done = on.submit(kernel(x)).wait();
  if (!done) FAIL(done.error().describe());
  CHECK(x.front() == x.back());
  return x.front();
}

}  // namespace

TEST_CASE("the next job runs a saved file, for every way of saving", "[runtime][reload]") {
  Reports reports;
  auto on = open_following(reports);
  if (!on) return;
  const TemporaryFolder folder;
  const std::string file = folder.put("change.comp", glsl("x[i] += 1"));
  const Change kernel = change_of(file);
  CHECK(of_one(*on, kernel) == 2);

  write_in_place(file, glsl("x[i] += 2"));
  const Reload reload = reports.next();
  CHECK_FALSE(reload.error);
  CHECK(reload.kernel == "change");
  CHECK(of_one(*on, kernel) == 3);

  save(folder, "change.comp", glsl("x[i] += 3"));  // replaced
  reports.expect_success();
  CHECK(of_one(*on, kernel) == 4);

  std::filesystem::remove(file);
  CHECK(reports.next_error().find("change.comp' does not exist") != std::string::npos);
  CHECK(of_one(*on, kernel) == 4);
  std::filesystem::create_hard_link(folder.put("new", glsl("x[i] += 4")), file);  // created again
  reports.expect_success();
  CHECK(of_one(*on, kernel) == 5);

  folder.put("change.comp", glsl("x[i] += 5"));  // truncated, then written: a reload may read the empty file
  while (reports.next().error) continue;
  CHECK(of_one(*on, kernel) == 6);

  write_in_place(file, glsl("x[i] += 5"));  // saved, not changed
  CHECK(reports.later() == 0);
}

TEST_CASE("a syntax error is reported once, with file and line, and the kernel is unchanged",
          "[runtime][reload]") {
  std::atomic<int> warnings{0};
  Reports reports;
  auto on = open_following(reports, [&](const LogRecord& record) {
    warnings += record.level == LogLevel::warning && record.text.find("broken") != record.text.npos;
  });
  if (!on) return;
  const TemporaryFolder folder;
  const std::string file = folder.put("change.comp", glsl("x[i] += 1"));
  const std::string other_file = folder.put("other.comp", glsl("x[i] += 10"));
  const Change kernel = change_of(file), other = change_of(other_file, "other");
  CHECK(of_one(*on, kernel) == 2);
  CHECK(of_one(*on, other) == 11);

  save(folder, "change.comp", glsl("x[i] += broken"));
  const Reload failed = reports.next();
  REQUIRE(failed.error);
  CHECK(*failed.error == Errc::compile_failed);
  REQUIRE(failed.error->diagnostics().size() >= 1);
  CHECK(failed.error->diagnostics()[0].file == file);
  CHECK(failed.error->diagnostics()[0].line == 4);
  CHECK(failed.error->sentence().find("change.comp:4:") != std::string::npos);
  CHECK(failed.error->describe().find("kernel 'change', which is unchanged") != std::string::npos);
  CHECK(of_one(*on, kernel) == 2);

  save(folder, "other.comp", glsl("x[i] += 20"));  // another burst
  CHECK(reports.next().kernel == "other");
  CHECK(of_one(*on, other) == 21);
  CHECK(reports.later() == 0);
  CHECK(warnings == 1);

  save(folder, "change.comp", glsl("x[i] += 1"));  // undone: this is reported too
  reports.expect_success();
  save(folder, "change.comp", glsl("x[i] += 5"));
  reports.expect_success();
  CHECK(of_one(*on, kernel) == 6);
}

TEST_CASE("changed parameters are reported with both values, and the kernel is unchanged",
          "[runtime][reload]") {
  Reports reports;
  auto on = open_following(reports);
  if (!on) return;
  const TemporaryFolder folder;
  const std::string file = folder.put("change.comp", glsl("x[i] += 1"));
  const Change kernel = change_of(file);
  CHECK(of_one(*on, kernel) == 2);
  save(folder, "change.comp",
       "#version 450\nlayout(local_size_x = 64) in;\n"
       "layout(set = 0, binding = 0) buffer X { uint x[]; };\n"
       "void main() { x[gl_GlobalInvocationID.x] += 1; }\n");
  const std::string refused = reports.next_error();
  INFO(refused);
  CHECK(refused.find("'x'") != std::string::npos);
  CHECK(refused.find("float32") != std::string::npos);
  CHECK(refused.find("uint32") != std::string::npos);
  CHECK(of_one(*on, kernel) == 2);
}

TEST_CASE("saving, removing or creating an include reloads its includers", "[runtime][reload]") {
  Reports reports;
  auto on = open_following(reports);
  if (!on) return;
  const TemporaryFolder folder;
  folder.put("deep/amount.glsl", "#define amount 1\n");
  folder.put("amount.glsl", "#include \"deep/amount.glsl\"\n");
  const std::string a = folder.put("a.comp", glsl("x[i] += amount", "#include \"amount.glsl\"\n"));
  const std::string b = folder.put("b.comp", glsl("x[i] *= amount", "#include \"amount.glsl\"\n"));
  const Change add = change_of(a, "add"), multiply = change_of(b, "multiply");
  CHECK(of_one(*on, add) == 2);
  CHECK(of_one(*on, multiply) == 1);
  CHECK(reports.later() == 0);

  save(folder, "deep/amount.glsl", "#define amount 7\n");
  reports.expect_success();
  reports.expect_success();
  CHECK(of_one(*on, add) == 8);
  CHECK(of_one(*on, multiply) == 7);

  save(folder, "a.comp", glsl("x[i] += more", "#include \"amount.glsl\"\n#include \"more.glsl\"\n"));
  CHECK(reports.next_error().find("more.glsl") != std::string::npos);
  CHECK(of_one(*on, add) == 8);
  save(folder, "more.glsl", "#define more (amount * 2)\n");
  reports.expect_success();
  CHECK(of_one(*on, add) == 15);
}

TEST_CASE("saves in quick succession and many kernels of one file are each reloaded to the last",
          "[runtime][reload]") {
  Reports reports;
  auto on = open_following(reports);
  if (!on) return;
  const TemporaryFolder folder;
  const std::string file = folder.put("change.comp", glsl("x[i] += 1 * by"));
  std::vector<Change> kernels;
  for (int by = 1; by <= 8; ++by) {
    Glsl source = Glsl::from_file(file).value();
    source.macros = {{"by", std::to_string(by)}};  // options are unchanged
    kernels.push_back(Change::make({.name = "by" + std::to_string(by), .sources = {source}}).value());
    CHECK(of_one(*on, kernels.back()) == static_cast<float>(1 + by));
  }
  constexpr int saves = 40;
  for (int i = 1; i <= saves; ++i)
    save(folder, "change.comp", glsl("x[i] += " + std::to_string(i) + " * by"));
  // A save during a reload leaves kernels with different texts. The next reload replaces them all.
  for (int by = 1; by <= 8; ++by)
    while (of_one(*on, kernels[static_cast<std::size_t>(by - 1)]) != static_cast<float>(1 + by * saves))
      reports.expect_success();
}

TEST_CASE("an executable in use still works after a reload", "[runtime][reload]") {
  Reports reports;
  auto on = open_following(reports);
  if (!on) return;
  const TemporaryFolder folder;
  const std::string file = folder.put("change.comp", glsl("x[i] += 1"));
  const Change kernel = change_of(file);
  CHECK(of_one(*on, kernel) == 2);
  auto lease = on->pool().lease();
  REQUIRE(lease);
  const auto before = on->cache().find_or_build(kernel, lease->device());
  save(folder, "change.comp", glsl("x[i] += 2"));
  reports.expect_success();
  const auto after = on->cache().find_or_build(kernel, lease->device());
  REQUIRE((before && after));
  std::vector<float> x(100, 1.0f);
  auto buffer = lease->buffer<float>(x.size());
  REQUIRE(buffer);
  lease->upload(x, *buffer);
  lease->dispatch(*before, arguments(*buffer));
  lease->dispatch(*after, arguments(*buffer));
  lease->download(*buffer, x);
  REQUIRE(lease->wait(1min));
  CHECK(x.front() == 4);
}

TEST_CASE("a kernel known only to the cache is reloaded, for handles too", "[runtime][reload]") {
  Reports reports;
  auto on = open_following(reports);
  if (!on) return;
  const TemporaryFolder folder;
  const Change kernel = change_of(folder.put("change.comp", glsl("x[i] += 1")));
  const Device device = on->devices()[0];
  auto handle = on->cache().handle(kernel, device).value();
  const auto before = base::state_of(*handle.find_or_build().value());
  CHECK(base::state_of(*handle.find_or_build().value()) == before);

  save(folder, "change.comp", glsl("x[i] += 2"));
  reports.expect_success();
  const auto after = base::state_of(on->cache().find_or_build(kernel, device).value());
  CHECK(after != before);
  CHECK(base::state_of(*handle.find_or_build().value()) == after);

  save(folder, "change.comp", glsl("x[i] += 3"));
  reports.expect_success();
  CHECK(reports.later() == 0);  // the new text is not watched apart from the old one
  CHECK(of_one(*on, kernel) == 4);
}

TEST_CASE("jobs that run while a file is saved run one text or another", "[runtime][reload]") {
  Reports reports;
  auto on = open_following(reports);
  if (!on) return;
  const TemporaryFolder folder;
  const std::string file = folder.put("change.comp", glsl("x[i] = 1; x[i] += 1"));
  const Change kernel = change_of(file);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> hosts;
  for (int h = 0; h < 3; ++h)
    hosts.emplace_back([&] {
      std::vector<float> x(64);
      while (!stop) {
        const auto done = on->submit(kernel(x)).wait();
        const int value = static_cast<int>(x[0]);
        wrong += !done || value < 2 || value > 11 || x[0] != x[63];
      }
    });
  for (int i = 2; i <= 10; ++i) {
    save(folder, "change.comp", glsl(i % 3 == 0 ? "x[i] = oops" : "x[i] = 1; x[i] += " + std::to_string(i)));
    reports.next();
  }
  stop = true;
  for (std::thread& host : hosts) host.join();
  CHECK(wrong == 0);
  CHECK(of_one(*on, kernel) == 11);
}

TEST_CASE("a module of SPIR-V is reloaded, and an invalid one is refused", "[runtime][reload]") {
  const auto compiler = kernel::GlslCompiler::share();
  if (!compiler) return test::skip("there is no compiler of GLSL");
  Reports reports;
  auto on = open_following(reports);
  if (!on) return;
  const TemporaryFolder folder;
  const auto module = [&](const char* formula) {
    const auto words = compiler->compile(Glsl{.text = glsl(formula)}, "change").value();
    return std::string(reinterpret_cast<const char*>(words.data()), words.size() * 4);
  };
  const std::string file = folder.put("change.spv", module("x[i] += 1"));
  const Change kernel = Change::make({.name = "change", .sources = {SpirV::from_file(file).value()}}).value();
  CHECK(of_one(*on, kernel) == 2);
  save(folder, "change.spv", module("x[i] += 2"));
  reports.expect_success();
  CHECK(of_one(*on, kernel) == 3);
  save(folder, "change.spv", module("x[i] += 3").substr(0, 400));  // its writer has not finished
  CHECK_FALSE(reports.next_error().empty());
  CHECK(of_one(*on, kernel) == 3);
  save(folder, "change.spv", module("x[i] += 3"));
  reports.expect_success();
  CHECK(of_one(*on, kernel) == 4);
}

TEST_CASE("a module that a kernel in Slang imports is reloaded", "[runtime][reload][slang]") {
  if (!test::has_slang()) return;
  Reports reports;
  auto on = open_following(reports);
  if (!on) return;
  const TemporaryFolder folder;
  folder.put("amount.slang", "module amount;\npublic static const float amount = 1;\n");
  const std::string file = folder.put("change.slang", R"(import amount;
[shader("compute")] [numthreads(64, 1, 1)]
void change(uint3 id : SV_DispatchThreadID, uniform RWStructuredBuffer<float> x) {
  uint count, stride;
  x.GetDimensions(count, stride);
  if (id.x < count) x[id.x] += amount;
})");
  const Change kernel = Change::make({.name = "change", .sources = {Slang::from_file(file).value()}}).value();
  CHECK(of_one(*on, kernel) == 2);
  save(folder, "amount.slang", "module amount;\npublic static const float amount = 2;\n");
  reports.expect_success();
  CHECK(of_one(*on, kernel) == 3);
  save(folder, "amount.slang", "module amount;\npublic static const float amount = ;\n");
  const Reload failed = reports.next();
  REQUIRE(failed.error);
  REQUIRE(failed.error->diagnostics().size() >= 1);
  CHECK(failed.error->diagnostics()[0].file.find("amount.slang") != std::string::npos);
  CHECK(failed.error->diagnostics()[0].line == 2);
  CHECK(failed.error->diagnostics()[0].column > 0);
  CHECK(of_one(*on, kernel) == 3);
}

TEST_CASE("without hot reload a kernel keeps its source", "[runtime][reload]") {
  auto on = Runtime::open({.pool = {.backends = {"vulkan"}}});
  if (!on) return;
  const TemporaryFolder folder;
  const std::string file = folder.put("change.comp", glsl("x[i] += 1"));
  const Change kernel = change_of(file);
  const auto here = [&] {  // no worker and no waiter starts for it
    std::vector<float> x(1, 1.0f);
    REQUIRE(on->run(kernel(x)));
    return x[0];
  };
  CHECK(here() == 2);
  const int threads = base::Worker::alive();
  save(folder, "change.comp", glsl("x[i] += 2"));
  std::this_thread::sleep_for(200ms);
  CHECK(here() == 2);
  CHECK(base::Worker::alive() == threads);
}

TEST_CASE("hot reload leaves no thread, also if its report ends the runtime", "[runtime][reload]") {
  const TemporaryFolder folder;
  const std::string file = folder.put("change.comp", glsl("x[i] += 1"));
  const int threads = base::Worker::alive();
  {
    Reports reports;
    auto on = open_following(reports);
    if (!on) return;
    const Change kernel = change_of(file);
    CHECK(of_one(*on, kernel) == 2);
    CHECK(base::Worker::alive() > threads);
    save(folder, "change.comp", glsl("x[i] += 2"));  // ends while it is looked at, or before, or after
  }
  CHECK(base::Worker::alive() == threads);

  std::mutex mutex;
  std::optional<Runtime> on;
  auto opened =
      Runtime::open({.pool = {.backends = {"vulkan"}}, .hot_reload = true, .on_reload = [&](const Reload&) {
                       const base::Lock lock(mutex);
                       on.reset();
                     }});
  REQUIRE(opened);
  const Change kernel = change_of(file);
  {
    const base::Lock lock(mutex);
    on = *opened;
  }
  CHECK(of_one(*opened, kernel) == 3);
  { const Runtime last = std::move(*opened); }
  save(folder, "change.comp", glsl("x[i] += 3"));
  CHECK(test::becomes_true([&] { return base::Worker::alive() == threads; }));
}
