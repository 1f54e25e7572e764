// Builds that end their process: compilers and drivers that crash.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache/cache.hpp"
#include "cache/store/build_marks.hpp"
#include "directory.hpp"
#include "doubles.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"

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

/// Builds in a child process that dies of the build. Returns its signal.
int die_building(const Directory& directory, const std::string& name, int signal) {
  const pid_t child = fork();
  if (child == 0) {
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    const auto deadly = program(name, true);
    deadly->on_build = [&]() -> Result<void> {
      kill(getpid(), signal);
      for (;;) pause();
    };
    _exit(cache->provide(deadly, mortal_device(), Instant::max()) ? 0 : 1);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("a build that ended its process once is tried again, and a success clears its deaths", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(die_building(directory, "scale", SIGKILL) == SIGKILL);
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    const auto ready = cache->provide(scale, mortal_device(), Instant::max());
    REQUIRE(ready);
    CHECK(ready->tier == CacheTier::built);
    CHECK(metrics(*cache).deaths == 1);
    for (const auto& file : directory.files()) std::filesystem::remove(file);
  }
}

TEST_CASE("a build that ended its process twice is refused", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true), other = program("other", true);
  REQUIRE(die_building(directory, "scale", SIGKILL) == SIGKILL);
  REQUIRE(die_building(directory, "scale", SIGUSR1) == SIGUSR1);
  for (int i = 0; i < 2; ++i) {
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    const auto refused = cache->provide(scale, mortal_device(), Instant::max());
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == Errc::compile_failed);
    const std::string& sentence = refused.error().sentence();
    CHECK(sentence.starts_with("Building kernel 'scale' for 'double:0' ended its process 2 times."));
    CHECK(sentence.find("(doubles 1.0)") != std::string::npos);
    CHECK(sentence.ends_with("ShaderCache::clear or 'wyec cache clear'."));
    CHECK(cache->explain(*scale, *mortal_device()).find("ended 2 processes") != std::string::npos);
    CHECK(scale->builds == 0);
    CHECK(metrics(*cache).deaths == 1);
    CHECK(cache->provide(other, mortal_device(), Instant::max()));
  }
}

TEST_CASE("a new driver gets another try, and the old driver stays refused", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  for (int i = 0; i < 2; ++i) REQUIRE(die_building(directory, "scale", SIGKILL) == SIGKILL);
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  CHECK(cache->provide(scale, mortal_device("doubles 1.1"), Instant::max()));
  // Its artefact is stored now. The old driver's code of it ended the process.
  CHECK_FALSE(cache->provide(scale, mortal_device(), Instant::max()));
}

TEST_CASE("clear allows another try of a build that ended its process", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  for (int i = 0; i < 2; ++i) REQUIRE(die_building(directory, "scale", SIGKILL) == SIGKILL);
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  const auto same = mortal_device();
  CHECK_FALSE(cache->provide(scale, same, Instant::max()));
  cache->clear();
  CHECK(cache->provide(scale, same, Instant::max()));
}

TEST_CASE("a process that waits for a dying builder builds, and no third process dies", "[cache]") {
  const Directory directory;
  std::vector<pid_t> children;
  for (int i = 0; i < 5; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    const auto deadly = program("scale", true);
    deadly->on_build = []() -> Result<void> {
      usleep(50'000);  // in which the other processes begin to wait
      kill(getpid(), SIGKILL);
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
  CHECK(died == 2);
  CHECK(refused == 3);
}

TEST_CASE("a driver that crashes on a stored artefact is refused too", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  REQUIRE(cache::Cache::open({.directory = directory.cache()})
              .value()
              ->provide(scale, mortal_device(), Instant::max()));
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
      const auto deadly = mortal_device();
      deadly->on_create = [] { kill(getpid(), SIGKILL); };
      _exit(cache->provide(scale, deadly, Instant::max()) ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
  }
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  const auto refused = cache->provide(scale, mortal_device(), Instant::max());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().sentence().find("ended its process 2 times") != std::string::npos);
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

TEST_CASE("a mark expires an hour after the last try, and refusals do not prolong it", "[cache]") {
  const Directory directory;
  const std::string file = (directory.path() / "builds").string();
  minute = 30'000'000;
  auto marks = cache::BuildMarks::open(file, [] { return minute; }).value();
  const Digest what = Hasher().add("what").finish();
  CHECK(marks.begin(what).value() == 0);
  minute += 59;
  CHECK(marks.begin(what).value() == 1);
  for (int i = 0; i < 59; ++i) {
    CHECK(marks.begin(what).value() == 2);
    ++minute;
  }
  CHECK(marks.deaths(what).value() == 2);
  ++minute;
  CHECK(marks.deaths(what).value() == 0);
  CHECK(marks.begin(what).value() == 0);  // it is tried again, and may fail again
  CHECK(marks.begin(what).value() == 1);
}

TEST_CASE("no mark lives longer than two hours when the clock is set back", "[cache]") {
  const Directory directory;
  minute = 30'000'000;
  auto marks = cache::BuildMarks::open((directory.path() / "builds").string(), [] { return minute; }).value();
  const Digest what = Hasher().add("what").finish();
  for (unsigned i = 0; i < 3; ++i) CHECK(marks.begin(what).value() == i);
  minute -= 59;
  CHECK(marks.deaths(what).value() == 2);
  minute -= 1;
  CHECK(marks.deaths(what).value() == 0);
  minute = 0;
  CHECK(marks.deaths(what).value() == 0);
}

TEST_CASE("a build that ended its process twice is tried again after an hour", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  for (int i = 0; i < 2; ++i) REQUIRE(die_building(directory, "scale", SIGKILL) == SIGKILL);
  // The marks of the two builds, as they would be after an hour.
  const Digest what = cache::build_name(scale->key(*mortal_device()).value(), *mortal_device());
  {
    auto marks = cache::BuildMarks::open(cache::DirectoryStore::mark_file(directory.cache()), [] {
                   return base::minutes_since_1970() - cache::BuildMarks::minutes_kept;
                 }).value();
    marks.end(what);
    for (unsigned i = 0; i < 3; ++i) REQUIRE(marks.begin(what).value() == i);
  }
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  CHECK(cache->provide(scale, mortal_device(), Instant::max()));
}

TEST_CASE("damaged marks refuse no build", "[cache]") {
  const Directory directory;
  const std::string file = (directory.path() / "builds").string();
  auto marks = cache::BuildMarks::open(file).value();
  const Digest what = Hasher().add("what").finish();
  CHECK(marks.begin(what).value() == 0);
  CHECK(marks.begin(what).value() == 1);
  CHECK(marks.begin(what).value() == 2);
  CHECK(marks.begin(what).value() == 2);  // it was not tried
  CHECK(marks.deaths(what).value() == 2);
  const auto written = test::read(file);
  const auto mark = std::find(written.begin(), written.end(), 'w') - written.begin();
  for (std::ptrdiff_t at = mark; at < mark + 64; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto bytes = written;
      auto& byte = bytes[static_cast<std::size_t>(at)];
      byte = static_cast<std::decay_t<decltype(byte)>>(byte ^ 1 << bit);
      test::write(file, bytes);
      CHECK(marks.deaths(what).value() == 0);
    }
  }
  CHECK(marks.begin(what).value() == 0);
  marks.end(what);
  CHECK(marks.begin(what).value() == 0);
  CHECK(std::filesystem::file_size(file) <= 4096 * 64);
}
