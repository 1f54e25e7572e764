// Builds that end their process: compilers and drivers that crash.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "cache/cache.hpp"
#include "cache/store/build_marks.hpp"
#include "directory.hpp"
#include "doubles.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"
#include "support/running_child.hpp"

using namespace wye;
using test::Directory;
using test::DoubleDevice;
using test::metrics;
using test::program;

namespace {

std::shared_ptr<DoubleDevice> mortal_device(std::string driver = "doubles 1.0") {
  return std::make_shared<DoubleDevice>("double:0", std::vector<std::string_view>{"spirv"}, Features{},
                                        std::string(), std::move(driver));
}

/// Returns a program whose build gets `signal`, in any process.
std::shared_ptr<test::CountingProgram> ended_by(const std::string& name, int signal) {
  auto made = program(name, true);
  made->on_build = [signal]() -> Result<void> {
    kill(getpid(), signal);
    for (;;) pause();
  };
  return made;
}

/// Builds in another process. Returns the signal that ended it; 0 if its build was refused.
int build_in_process(
    const Directory& directory, const std::shared_ptr<test::CountingProgram>& built,
    const std::function<std::shared_ptr<DoubleDevice>()>& device = [] { return mortal_device(); }) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : {SIGSEGV, SIGABRT}) signal(number, SIG_DFL);  // not the test runner's handlers
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    _exit(cache->provide(built, device(), Instant::max()) ? 1 : 0);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

/// Ends one process by a build that crashes, and has a second process find out.
void crash(const Directory& directory, const std::string& name) {
  REQUIRE(build_in_process(directory, ended_by(name, SIGSEGV)) == SIGSEGV);
  REQUIRE(build_in_process(directory, ended_by(name, SIGSEGV)) == 0);
}

/// Kills ten processes in their builds of "scale". `stops` says in which process a build stops.
void kill_ten(const Directory& directory, const std::function<bool(pid_t builder)>& stops) {
  for (int i = 0; i < 10; ++i) {
    test::RunningChild killed([&](test::RunningChild& self) {
      const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
      const auto slow = program("scale", true);
      slow->on_build = [&, builder = getpid()]() -> Result<void> {
        if (!stops(builder)) return {};
        self.tell();
        for (;;) pause();
      };
      return cache->provide(slow, mortal_device(), Instant::max()) ? 0 : 1;
    });
    REQUIRE(killed.await());
    killed.kill();
  }
}

/// Returns the sentence of a build of "scale" that is refused.
std::string refusal(const cache::Cache& cache,
                    const std::shared_ptr<DoubleDevice>& device = mortal_device()) {
  const auto refused =
      const_cast<cache::Cache&>(cache).provide(program("scale", true), device, Instant::max());
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::compile_failed);
  return refused.error().sentence();
}

}  // namespace

TEST_CASE("a build that ended its process once is tried again, and a success clears its deaths", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(build_in_process(directory, ended_by("scale", SIGKILL)) == SIGKILL);
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    const auto ready = cache->provide(scale, mortal_device(), Instant::max());
    REQUIRE(ready);
    CHECK(ready->tier == CacheTier::built);
    CHECK(metrics(*cache).deaths == 1);
    for (const auto& file : directory.files()) std::filesystem::remove(file);
  }
}

TEST_CASE("a build that crashes ends one process; later builds are refused and name the signal", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true), other = program("other", true);
  REQUIRE(build_in_process(directory, ended_by("scale", SIGSEGV)) == SIGSEGV);
  for (int i = 0; i < 3; ++i) {
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    const auto crashing = i == 0 ? ended_by("scale", SIGSEGV) : scale;
    const auto refused = cache->provide(crashing, mortal_device(), Instant::max());
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == Errc::compile_failed);
    CHECK(
        refused.error().sentence() ==
        "Building kernel 'scale' for 'double:0' crashes: it has ended a process that did nothing else, by "
        "signal 11 (a segmentation fault). The next try is an hour after the last one. It is earlier if the "
        "kernel, its compiler or the driver (doubles 1.0) changes, or after ShaderCache::clear or 'wyec "
        "cache "
        "clear'.");
    CHECK(cache->explain(*scale, *mortal_device()).find("crashed a process by signal 11") !=
          std::string::npos);
    CHECK(scale->builds == 0);
    CHECK(metrics(*cache).deaths == 1);
    CHECK(cache->provide(other, mortal_device(), Instant::max()));
  }
}

TEST_CASE("a compiler that calls abort or exit has crashed", "[cache]") {
  const int signal = GENERATE(SIGABRT, 0);
  const auto deadly = program("scale", true);
  deadly->on_build = [signal]() -> Result<void> {
    if (signal == 0) _exit(9);
    abort();
  };
  const Directory directory;
  REQUIRE(build_in_process(directory, deadly) == (signal == 0 ? 9 : SIGABRT));
  REQUIRE(build_in_process(directory, deadly) == 0);
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  const std::string by = signal == 0 ? "a call of exit" : "signal 6 (a call of abort)";
  CHECK(refusal(*cache).find("did nothing else, by " + by + ".") != std::string::npos);
}

TEST_CASE("ten processes that are killed in a build do not count against it", "[cache][no_sanitizer]") {
  const Directory directory;
  SECTION("the first is killed in its build, the others while a child process repeats it") {
    kill_ten(directory, [](pid_t) { return true; });
  }
  SECTION("each is killed in its own build, after a child process has repeated it") {
    kill_ten(directory, [](pid_t builder) { return getpid() == builder; });
  }
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  const auto ready = cache->provide(program("scale", true), mortal_device(), Instant::max());
  REQUIRE(ready);
  CHECK(ready->tier == CacheTier::built);
}

TEST_CASE("a build whose child process is killed fails in this process only", "[cache]") {
  const Directory directory;
  REQUIRE(build_in_process(directory, ended_by("scale", SIGKILL)) == SIGKILL);
  {
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    const auto failed = cache->provide(ended_by("scale", SIGKILL), mortal_device(), Instant::max());
    REQUIRE_FALSE(failed);
    CHECK(failed.error().sentence() ==
          "Kernel 'scale' was not built for 'double:0'. A child process was ended by signal 9, which another "
          "process or the system sent.");
  }
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  CHECK(cache->provide(program("scale", true), mortal_device(), Instant::max()));
}

TEST_CASE("a new driver gets another try, and the old driver stays refused", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  crash(directory, "scale");
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  CHECK(cache->provide(scale, mortal_device("doubles 1.1"), Instant::max()));
  // Its artefact is stored now. The old driver's code of it ended the process.
  CHECK_FALSE(cache->provide(scale, mortal_device(), Instant::max()));
}

TEST_CASE("clear allows another try of a build that ended its process", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  crash(directory, "scale");
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  const auto same = mortal_device();
  CHECK_FALSE(cache->provide(scale, same, Instant::max()));
  cache->clear();
  CHECK(cache->provide(scale, same, Instant::max()));
}

TEST_CASE("a process that waits for a dying builder asks a child process, and no second process dies",
          "[cache]") {
  const Directory directory;
  std::vector<pid_t> children;
  for (int i = 0; i < 5; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    signal(SIGSEGV, SIG_DFL);  // not the test runner's handler
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    const auto deadly = program("scale", true);
    deadly->on_build = []() -> Result<void> {
      usleep(50'000);  // in which the other processes begin to wait
      kill(getpid(), SIGSEGV);
      for (;;) pause();
    };
    const auto provided = cache->provide(deadly, mortal_device(), Instant::max());
    _exit(!provided && provided.error() == Errc::compile_failed ? 0 : 1);
  }
  int died = 0, refused = 0;
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    died += WIFSIGNALED(status);
    refused += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  CHECK(died == 1);
  CHECK(refused == 4);
}

namespace {

/// Returns a device whose driver crashes on each artefact, also if a child process opens it.
std::shared_ptr<DoubleDevice> crashing_device() {
  auto deadly = mortal_device();
  deadly->on_create = [] { kill(getpid(), SIGSEGV); };
  deadly->on_open_again = []() -> Result<std::shared_ptr<device::DeviceBase>> {
    return std::shared_ptr<device::DeviceBase>(crashing_device());
  };
  return deadly;
}

}  // namespace

TEST_CASE("a driver that crashes on a stored artefact is refused too", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  REQUIRE(cache::Cache::open({.directory = directory.cache()})
              .value()
              ->provide(scale, mortal_device(), Instant::max()));
  REQUIRE(build_in_process(directory, scale, crashing_device) == SIGSEGV);
  REQUIRE(build_in_process(directory, scale, crashing_device) == 0);
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  CHECK(refusal(*cache).find("by signal 11 (a segmentation fault)") != std::string::npos);
}

TEST_CASE("if no child process can use the driver, two deaths in a row are a pause, and no crash",
          "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  const auto deadly = [](int signal) {
    return [signal] {
      auto device = mortal_device();
      device->on_create = [signal] { kill(getpid(), signal); };
      return device;  // a child process does not find it
    };
  };
  // It may have crashed, or it was killed.
  REQUIRE(build_in_process(directory, scale, deadly(SIGSEGV)) == SIGSEGV);
  REQUIRE(build_in_process(directory, scale, deadly(SIGKILL)) == SIGKILL);
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  CHECK(
      refusal(*cache).starts_with("Building kernel 'scale' for 'double:0' ended 2 processes. Whether it "
                                  "crashed or they were killed is not "
                                  "known. The next try is 1 min after the last one."));
  CHECK(cache->explain(*scale, *mortal_device()).find("2 processes ended while making it ready") !=
        std::string::npos);
}

TEST_CASE("builds that fail leave no mark", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  scale->on_build = [] { return Result<void>(Error(Errc::out_of_memory, "No.")); };
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  for (int i = 0; i < 5; ++i)
    CHECK(cache->provide(scale, mortal_device(), Instant::max()).error() == Errc::out_of_memory);
  CHECK(metrics(*cache).deaths == 0);
}

namespace {
std::uint32_t minute = 0;  // the time of the marks' clock
}

TEST_CASE("a mark expires an hour after the last try", "[cache]") {
  const Directory directory;
  minute = 30'000'000;
  auto marks = cache::BuildMarks::open((directory.path() / "builds").string(), [] { return minute; }).value();
  const Digest what = Hasher().add("what").finish();
  CHECK(marks.settle(what).value() == cache::Deaths{});
  marks.reach(what, {}, 7);
  CHECK(marks.deaths(what).value() == cache::Deaths{.step = 7, .minute = minute});  // it may be in progress
  const cache::Deaths one{.interrupted = 1, .step = 7, .minute = minute};
  minute += 59;
  CHECK(marks.settle(what).value() == one);
  CHECK(marks.settle(what).value() == one);  // it is counted once
  ++minute;
  CHECK(marks.settle(what).value() == cache::Deaths{});
  cache::Deaths crashed = one;
  crashed.crash = base::Crash{11};
  marks.note_crash(what, crashed);
  minute += 59;
  CHECK(marks.settle(what).value().crash == base::Crash{11});
  ++minute;
  CHECK(marks.settle(what).value() == cache::Deaths{});
}

TEST_CASE("the pause after deaths that no child process can explain doubles up to an hour", "[cache]") {
  const Directory directory;
  minute = 30'000'000;
  auto marks = cache::BuildMarks::open((directory.path() / "builds").string(), [] { return minute; }).value();
  const Digest what = Hasher().add("what").finish();
  for (const unsigned pause : {0u, 1u, 2u, 4u, 8u, 16u, 32u, 60u, 60u}) {
    marks.reach(what, marks.settle(what).value(), 1);
    const cache::Deaths deaths = marks.settle(what).value();
    CHECK(deaths.pause() == pause);
    CHECK(marks.is_paused(deaths) == (pause != 0));
    minute += pause;
    CHECK(marks.is_paused(deaths) == (pause != 0));
    ++minute;
    CHECK_FALSE(marks.is_paused(deaths));
    minute -= pause + 1;
  }
}

TEST_CASE("no mark lives longer than two hours when the clock is set back", "[cache]") {
  const Directory directory;
  minute = 30'000'000;
  auto marks = cache::BuildMarks::open((directory.path() / "builds").string(), [] { return minute; }).value();
  const Digest what = Hasher().add("what").finish();
  marks.reach(what, {.interrupted = 1}, 1);
  REQUIRE(marks.settle(what).value().interrupted == 2);
  minute -= 59;
  CHECK(marks.deaths(what).value().interrupted == 2);
  CHECK_FALSE(marks.is_paused(marks.deaths(what).value()));
  minute -= 1;
  CHECK(marks.deaths(what).value() == cache::Deaths{});
  minute = 0;
  CHECK(marks.deaths(what).value() == cache::Deaths{});
}

TEST_CASE("a build that crashed is tried again after an hour", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  crash(directory, "scale");
  // The mark as it would be after an hour.
  const Digest what = cache::build_name(scale->key(*mortal_device()).value(), *mortal_device());
  {
    auto marks = cache::BuildMarks::open(cache::DirectoryStore::mark_file(directory.cache()), [] {
                   return base::minutes_since_1970() - cache::BuildMarks::minutes_kept;
                 }).value();
    marks.note_crash(what, {.interrupted = 1, .crash = base::Crash{SIGSEGV}});
  }
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  CHECK(cache->provide(scale, mortal_device(), Instant::max()));
}

TEST_CASE("damaged marks refuse no build", "[cache]") {
  const Directory directory;
  const std::string file = (directory.path() / "builds").string();
  auto marks = cache::BuildMarks::open(file).value();
  const Digest what = Hasher().add("what").finish();
  const cache::Deaths crashed{.interrupted = 1, .crash = base::Crash{11}, .step = 2};
  marks.note_crash(what, crashed);
  CHECK(marks.deaths(what).value().crash == base::Crash{11});
  const auto written = test::read(file);
  const auto mark = std::find(written.begin(), written.end(), 'w') - written.begin();
  for (std::ptrdiff_t at = mark; at < mark + 64; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto bytes = written;
      auto& byte = bytes[static_cast<std::size_t>(at)];
      byte = static_cast<std::decay_t<decltype(byte)>>(byte ^ 1 << bit);
      test::write(file, bytes);
      CHECK(marks.deaths(what).value() == cache::Deaths{});
    }
  }
  CHECK(marks.settle(what).value() == cache::Deaths{});
  marks.note_crash(what, crashed);
  marks.end(what);
  CHECK(marks.settle(what).value() == cache::Deaths{});
  CHECK(std::filesystem::file_size(file) <= 4096 * 64);
}
