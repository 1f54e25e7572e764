#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "base/file.hpp"
#include "base/internals.hpp"
#include "cache/cache.hpp"
#include "cache/store/artefact_bytes.hpp"
#include "cache/store/directory_store.hpp"
#include "directory.hpp"
#include "doubles.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::Directory;
using test::DoubleDevice;
using test::metrics;
using test::program;
namespace fs = std::filesystem;

namespace {

/// Counters that this process and its children share.
template <std::size_t N>
class Shared {
 public:
  Shared()
      : counters_(
            static_cast<std::atomic<int>*>(mmap(nullptr, sizeof(std::atomic<int>) * N, PROT_READ | PROT_WRITE,
                                                MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  Shared(const Shared&) = delete;  // one owner unmaps it
  ~Shared() { munmap(counters_, sizeof(std::atomic<int>) * N); }
  std::atomic<int>& operator[](std::size_t i) { return counters_[i]; }

 private:
  std::atomic<int>* counters_;
};

/// Runs `body` in a child process, whose status is the value that `body` returns.
template <class Body>
pid_t start(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  REQUIRE(child > 0);
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

std::string name_of(std::size_t i) { return "kernel " + std::to_string(i); }

/// Claims that look to the cache like claims of another process.
class Other {
 public:
  explicit Other(const Directory& directory)
      : store_(cache::DirectoryStore::open(directory.cache()).value(),
               cache::DirectoryStore::lock_file(directory.cache()), {}) {}
  cache::Claim claim(const test::CountingProgram& what) {
    return store_.claim(what.artefact().key, Instant{});
  }

 private:
  cache::ArtefactStore store_;
};

/// Waits until a build of `cache` waits for that of another process.
void await_joined(const cache::Cache& cache) {
  test::await([&] { return metrics(cache).joined_processes == 1; });
}

}  // namespace

namespace {

/// All processes request the same cold kernels at once, each in another order.
void ask_at_once(std::size_t processes, std::size_t users, std::size_t kernels, Duration build) {
  const Directory directory;
  Shared<256> counters;  // the builds of each kernel, and the running processes
  REQUIRE(kernels < 255);
  std::vector<pid_t> children;
  for (std::size_t p = 0; p < processes; ++p)
    children.push_back(start([&] {
      const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
      const auto device = std::make_shared<DoubleDevice>();
      std::vector<std::shared_ptr<test::CountingProgram>> programs;
      for (std::size_t k = 0; k < kernels; ++k) {
        programs.push_back(program(name_of(k), true));
        programs[k]->on_build = [&counters, k, build] {
          ++counters[k];
          std::this_thread::sleep_for(build);  // in which the others could build it too
          return Result<void>();
        };
      }
      ++counters[255];
      while (counters[255] < static_cast<int>(processes)) std::this_thread::yield();
      std::atomic<int> wrong{0};
      std::vector<std::thread> threads;
      for (std::size_t t = 0; t < users; ++t)
        threads.emplace_back([&, t] {
          for (std::size_t i = 0; i < kernels; ++i) {
            const auto& wanted = programs[(i * 7 + t * 4) % kernels];
            const auto provided = cache->provide(wanted, device, Instant::max());
            wrong += !provided || base::state_of(provided->executable)->artefact().kernel != wanted->name();
          }
        });
      for (auto& thread : threads) thread.join();
      return wrong.load() == 0 ? 0 : 1;
    }));
  for (const pid_t child : children) CHECK(wait_for(child) == 0);
  int builds = 0;
  for (std::size_t k = 0; k < kernels; ++k) {
    if (counters[k] != 1) FAIL(counters[k] << " builds of one kernel");
    ++builds;
  }
  CHECK(builds == static_cast<int>(kernels));
  CHECK(directory.files().size() == kernels);
}

}  // namespace

TEST_CASE("processes and threads that want the same kernels build each once", "[cache]") {
  ask_at_once(4, 3, 12, 5ms);
}

TEST_CASE("8 processes of 64 threads that ask for 200 cold kernels build 200", "[.][cache][proof]") {
  ask_at_once(8, 64, 200, 2ms);
}

TEST_CASE("a process waits for another one's build and loads it from disk", "[cache]") {
  const Directory directory;
  Shared<1> building;
  const auto scale = program("scale", true);
  const pid_t child = start([&] {
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    scale->on_build = [&] {
      ++building[0];
      while (building[0] < 2) std::this_thread::yield();  // for the other process, which waits then
      return Result<void>();
    };
    return cache->provide(scale, std::make_shared<DoubleDevice>(), Instant::max()) ? 0 : 1;
  });
  while (building[0] < 1) std::this_thread::yield();
  ManualClock clock;  // otherwise this process waits for 2 s only
  const auto cache = cache::Cache::open({.directory = directory.cache(), .clock = &clock}).value();
  std::optional<Result<device::Provided>> provided;
  std::thread waits(
      [&] { provided = cache->provide(scale, std::make_shared<DoubleDevice>(), Instant::max()); });
  await_joined(*cache);
  ++building[0];
  waits.join();
  CHECK(wait_for(child) == 0);
  REQUIRE(*provided);
  CHECK((*provided)->tier == CacheTier::disk);
  CHECK(scale->builds == 0);
  CHECK(metrics(*cache).joined_processes == 1);
  CHECK(metrics(*cache).disk_hits == 1);
}

TEST_CASE("no process waits for a killed builder", "[cache]") {
  const Directory directory;
  Shared<1> building;
  const auto scale = program("scale", true);
  const pid_t child = start([&] {
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    scale->on_build = [&]() -> Result<void> {
      ++building[0];
      for (;;) pause();
    };
    return cache->provide(scale, std::make_shared<DoubleDevice>(), Instant::max()) ? 0 : 1;
  });
  while (building[0] < 1) std::this_thread::yield();
  kill(child, SIGKILL);
  wait_for(child);
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  CHECK(cache->provide(scale, std::make_shared<DoubleDevice>(), Instant::max())->tier == CacheTier::built);
  CHECK(metrics(*cache).joined_processes == 0);
}

TEST_CASE("a wait for another process ends at the deadline", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  Other other(directory);
  ManualClock clock;
  const auto cache = cache::Cache::open({.directory = directory.cache(), .clock = &clock}).value();
  const auto device = std::make_shared<DoubleDevice>();
  {
    const cache::Claim claim = other.claim(*scale);
    REQUIRE(claim.lock);
    std::optional<Result<device::Provided>> waited;
    std::thread waits([&] { waited = cache->provide(scale, device, clock.now() + 1s); });
    await_joined(*cache);
    clock.advance(1s);  // less than the 2 s after which the build goes on without the other process
    waits.join();
    REQUIRE_FALSE(*waited);
    CHECK(waited->error().code() == Errc::timed_out);
    CHECK(waited->error().sentence() ==
          "Kernel 'scale' was still being built for 'double:0' when the deadline passed.");
    CHECK(scale->builds == 0);
    CHECK(metrics(*cache).failures == 0);
  }
  // The build goes on: it may be ready by now.
  REQUIRE(cache->provide(scale, device, Instant::max()));
  CHECK(scale->builds == 1);
}

TEST_CASE("a thread with a later deadline takes over from a thread that timed out", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  Other other(directory);
  ManualClock clock;
  const auto cache = cache::Cache::open({.directory = directory.cache(), .clock = &clock}).value();
  const auto device = std::make_shared<DoubleDevice>();
  std::optional<cache::Claim> claim = other.claim(*scale);
  std::optional<Result<device::Provided>> hasty, patient;
  std::thread first([&] { hasty = cache->provide(scale, device, clock.now() + 1s); });
  await_joined(*cache);
  std::thread second([&] { patient = cache->provide(scale, device, Instant::max()); });
  test::await([&] { return metrics(*cache).joined == 1; });
  clock.advance(1s);
  first.join();
  CHECK(hasty->error() == Errc::timed_out);
  CHECK(scale->builds == 0);
  claim.reset();
  second.join();
  REQUIRE(patient->has_value());
  CHECK(scale->builds == 1);
}

TEST_CASE("a process that waited too long builds itself", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  Other other(directory);
  const cache::Claim claim = other.claim(*scale);
  ManualClock clock;
  const auto cache = cache::Cache::open({.directory = directory.cache(), .clock = &clock}).value();
  std::optional<Result<device::Provided>> provided;
  std::thread waits(
      [&] { provided = cache->provide(scale, std::make_shared<DoubleDevice>(), Instant::max()); });
  await_joined(*cache);
  clock.advance(2s);
  waits.join();
  CHECK((*provided)->tier == CacheTier::built);
  CHECK(metrics(*cache).joined_processes == 1);
  CHECK(directory.files().size() == 1);
}

namespace {

/// Starts a process that builds and stores without end, and kills it at a random moment, in each
/// round.
void kill_at_any_moment(std::size_t rounds) {
  constexpr std::size_t kernels = 200;
  constexpr std::uint32_t files = 50;
  const Directory directory;
  const CacheOptions options{.directory = directory.cache(), .disk_kernels = files};
  std::mt19937 random(11);
  for (std::size_t round = 0; round < rounds; ++round) {
    Shared<1> working;
    const pid_t child = start([&] {
      const auto cache = cache::Cache::open(options).value();
      std::mt19937 which(static_cast<unsigned>(round));
      for (;;) {
        // Each has its own device, so nothing is found in memory.
        (void)cache
            ->provide(program(name_of(which() % kernels), true), std::make_shared<DoubleDevice>(),
                      Instant::max())
            .has_value();
        working[0] = 1;
      }
      return 0;
    });
    while (working[0] == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
    kill(child, SIGKILL);
    wait_for(child);
  }
  std::map<std::string, Digest> keys;
  for (std::size_t k = 0; k < kernels; ++k) {
    const Digest key = program(name_of(k))->artefact().key;
    keys[key.hex()] = key;
  }
  std::size_t whole = 0, temporary = 0;
  for (const fs::path& file : directory.files()) {
    const std::string name = file.filename().string();
    if (name.front() == '.') {
      ++temporary;
      test::make_older(file, 2h);
      continue;
    }
    const auto bytes = test::read(file);
    if (cache::decode(std::as_bytes(std::span(bytes)), keys.at(name)))
      ++whole;
    else
      FAIL("a file is not whole");
  }
  CHECK(whole > 0);
  CHECK(temporary <= rounds);
  const auto cache = cache::Cache::open(options).value();
  const auto device = std::make_shared<DoubleDevice>();
  const auto ready = [&](std::size_t k) {
    return cache->provide(program(name_of(k), true), device, Instant::max());
  };
  // The kernels in whose builds processes were killed are built, too.
  for (std::size_t k = 0; k < kernels; ++k)
    if (const auto provided = ready(k); !provided) FAIL(provided.error().sentence());
  cache->clear();
  for (std::size_t k = 0; k < kernels; ++k) CHECK(ready(k));
  CHECK(metrics(*cache).corrupt == 0);
  CHECK(metrics(*cache).joined_processes == 0);
  CHECK(directory.files().size() <= files);
  for (const fs::path& file : directory.files()) CHECK(file.filename().string().front() != '.');
  std::uint64_t others = 0;
  for (const auto& entry : fs::directory_iterator(directory.cache()))
    if (entry.is_regular_file()) others += entry.file_size();
  CHECK(others <= 4096 * 64);  // locks and marks
}

}  // namespace

TEST_CASE("processes killed at any moment leave no damaged file and no lock, and the directory does not grow",
          "[cache]") {
  kill_at_any_moment(40);
}

TEST_CASE("a thousand processes killed at any moment leave no damaged file and no lock",
          "[.][cache][proof]") {
  kill_at_any_moment(1000);
}
