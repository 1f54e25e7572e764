// Driver code, stored between processes.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache/cache.hpp"
#include "cache/store/artefact_bytes.hpp"
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

using Code = std::vector<std::byte>;

Code made_code(int i) { return Code(100, static_cast<std::byte>(i)); }

std::shared_ptr<DoubleDevice> driven_device(std::string driver = "doubles 1.0") {
  return std::make_shared<DoubleDevice>("double:0", std::vector<std::string_view>{"spirv"}, Features{},
                                        std::string(), std::move(driver));
}

std::shared_ptr<cache::Cache> open_cache(const Directory& directory) {
  return cache::Cache::open({.directory = directory.cache()}).value();
}

/// One run of a process: builds a kernel on a device whose driver then has generated `made`.
std::shared_ptr<DoubleDevice> run_once(const Directory& directory, const Code& made,
                                       CacheMetrics* counted = nullptr,
                                       const std::string& driver = "doubles 1.0") {
  const auto one = driven_device(driver);
  const auto cache = open_cache(directory);
  REQUIRE(cache->provide(program("scale", true), one, Instant::max()));
  one->code = made;
  if (counted) *counted = metrics(*cache);
  return one;
}

std::filesystem::path driver_record(const Directory& directory) {
  for (const auto& file : directory.files()) {
    const auto bytes = test::read(file);
    if (std::string(bytes.begin(), bytes.begin() + 10) == "wye driver") return file;
  }
  return {};
}

}  // namespace

TEST_CASE("a driver begins with its code of an earlier process", "[cache]") {
  const Directory directory;
  CacheMetrics counted;
  CHECK(run_once(directory, made_code(1), &counted)->preloaded.empty());
  CHECK(counted.driver_loads == 0);
  CHECK(run_once(directory, made_code(2), &counted)->preloaded == made_code(1));
  CHECK(counted.driver_loads == 1);
  CHECK(run_once(directory, {})->preloaded == made_code(2));
  CHECK(run_once(directory, {})->preloaded == made_code(2));  // a driver without code removes nothing
}

TEST_CASE("another build of a driver begins without code", "[cache]") {
  const Directory directory;
  run_once(directory, made_code(1));
  CacheMetrics counted;
  CHECK(run_once(directory, made_code(2), &counted, "doubles 1.1")->preloaded.empty());
  CHECK(counted.driver_loads == 0);
  CHECK(counted.corrupt == 0);
  CHECK(run_once(directory, {}, nullptr, "doubles 1.1")->preloaded == made_code(2));
  CHECK(run_once(directory, {})->preloaded == made_code(1));
}

TEST_CASE("a damaged record never reaches the driver, and is removed", "[cache]") {
  const Directory directory;
  run_once(directory, made_code(1));
  const auto file = driver_record(directory);
  const auto whole = test::read(file);
  for (std::size_t at = 0; at < whole.size(); at += 7)
    for (const bool cut : {false, true}) {
      auto bytes = whole;
      if (cut)
        bytes.resize(at);
      else
        bytes[at] = static_cast<char>(bytes[at] ^ 16);
      test::write(file, bytes);
      CacheMetrics counted;
      if (!run_once(directory, {}, &counted)->preloaded.empty()) FAIL("it was given to the driver");
      if (counted.corrupt != 1) FAIL("it was not counted");
      if (std::filesystem::exists(file)) FAIL("it was not removed");
    }
}

TEST_CASE("the record of another driver is not loaded", "[cache]") {
  const Directory directory;
  run_once(directory, made_code(1));
  const auto first = driver_record(directory);
  const auto bytes = test::read(first);
  std::filesystem::remove(first);
  run_once(directory, made_code(2), nullptr, "doubles 1.1");
  test::write(driver_record(directory), bytes);
  CacheMetrics counted;
  CHECK(run_once(directory, {}, &counted, "doubles 1.1")->preloaded.empty());
  CHECK(counted.corrupt == 1);
}

TEST_CASE("a record that the device refuses is removed", "[cache]") {
  const Directory directory;
  run_once(directory, made_code(1));
  const auto file = driver_record(directory);
  const auto picky = driven_device();
  picky->refuse_preload = Error(Errc::corrupt, "No.");
  const auto cache = open_cache(directory);
  CHECK(cache->provide(program("scale", true), picky, Instant::max()));
  CHECK(metrics(*cache).corrupt == 1);
  CHECK(metrics(*cache).driver_loads == 0);
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("a driver that crashed twice on its code begins without code", "[cache]") {
  const Directory directory;
  run_once(directory, made_code(1));
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const auto deadly = driven_device();
      deadly->on_preload = [] { kill(getpid(), SIGKILL); };
      _exit(open_cache(directory)->provide(program("scale", true), deadly, Instant::max()) ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
  }
  CHECK(run_once(directory, made_code(3))->preloaded.empty());
  CHECK(run_once(directory, {})->preloaded == made_code(3));
}

TEST_CASE("driver code is stored when it doubles, and at the end", "[cache]") {
  const Directory directory;
  const auto one = driven_device();
  one->code = made_code(1);
  auto cache = open_cache(directory);
  const auto build = [&](int from, int to) {
    for (int i = from; i < to; ++i)
      REQUIRE(cache->provide(program("kernel " + std::to_string(i), true), one, Instant::max()));
  };
  build(0, 7);
  CHECK(driver_record(directory).empty());
  build(7, 8);
  CHECK_FALSE(driver_record(directory).empty());
  one->code = made_code(2);
  build(8, 15);
  CHECK(run_once(directory, {})->preloaded == made_code(1));
  build(15, 16);
  CHECK(run_once(directory, {})->preloaded == made_code(2));
  one->code = made_code(3);
  build(16, 17);
  cache.reset();
  CHECK(run_once(directory, {})->preloaded == made_code(3));
}

TEST_CASE("a device that is lost stores nothing", "[cache]") {
  const Directory directory;
  const auto one = driven_device();
  one->code = made_code(1);
  {
    const auto cache = open_cache(directory);
    REQUIRE(cache->provide(program("scale", true), one, Instant::max()));
    one->lose();
  }
  CHECK(driver_record(directory).empty());
}
