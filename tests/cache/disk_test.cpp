#include <wye/cache/cache_directory.hpp>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.hpp"
#include "base/internals.hpp"
#include "cache/cache.hpp"
#include "cache/store/artefact_bytes.hpp"
#include "cache/store/directory_store.hpp"
#include "directory.hpp"
#include "doubles.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::Directory;
using test::DoubleDevice;
using test::make_older;
using test::MemoryStore;
using test::metrics;
using test::program;
using test::read;
using test::write;
namespace fs = std::filesystem;

namespace {

device::Provided get(cache::Cache& cache, const std::shared_ptr<const device::Program>& what) {
  auto provided = cache.provide(what, std::make_shared<DoubleDevice>(), Instant::max());
  if (!provided) FAIL(provided.error().describe());
  return *provided;
}

/// Warnings of a cache, counted.
struct Warnings {
  int times = 0;
  std::string last;
  LogSink sink() {
    return [this](const LogRecord& record) {
      if (record.level == LogLevel::warning) ++times, last = record.text;
    };
  }
};

}  // namespace

TEST_CASE("a second cache finds the kernels of the first one on disk", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  {
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    CHECK(get(*cache, scale).tier == CacheTier::built);
  }
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  const auto found = get(*cache, scale);
  CHECK(found.tier == CacheTier::disk);
  CHECK(base::state_of(found.executable)->artefact().kernel == "scale");
  CHECK(scale->builds == 1);
  const CacheMetrics counted = metrics(*cache);
  CHECK(counted.disk_hits == 1);
  CHECK(counted.misses == 0);
  CHECK(counted.build_time == Duration{});
}

TEST_CASE("a kernel evicted from memory is found on disk", "[cache]") {
  const Directory directory;
  const auto cache = cache::Cache::open({.directory = directory.cache(), .kernels = 1}).value();
  const auto device = std::make_shared<DoubleDevice>();
  const auto a = program("a", true), b = program("b", true);
  for (int i = 0; i < 3; ++i)
    for (const auto& one : {a, b}) REQUIRE(cache->provide(one, device, Instant::max()));
  CHECK(a->builds == 1);
  CHECK(b->builds == 1);
  CHECK(metrics(*cache).disk_hits == 4);
}

TEST_CASE("stored kernels lie in directories by two digits, with owner-only permissions", "[cache]") {
  const Directory directory;
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  const auto scale = program("scale", true);
  get(*cache, scale);
  const std::string key = scale->artefact().key.hex();
  const auto files = directory.files();
  REQUIRE(files.size() == 1);
  CHECK(files[0] == fs::path(directory.cache()) / key.substr(0, 2) / key);
  CHECK((fs::status(files[0]).permissions() & fs::perms(077)) == fs::perms::none);
  CHECK((fs::status(directory.cache()).permissions() & fs::perms(077)) == fs::perms::none);
}

TEST_CASE("host functions are not stored", "[cache]") {
  const Directory directory;
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  get(*cache, program("host function", false));
  CHECK(directory.files().empty());
}

TEST_CASE("a failed build leaves nothing on disk", "[cache]") {
  const Directory directory;
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  const auto device = std::make_shared<DoubleDevice>();
  const auto scale = program("scale", true);
  device->refuse = Error(Errc::unsupported, "No.");
  CHECK_FALSE(cache->provide(scale, device, Instant::max()));
  CHECK(directory.files().empty());
}

TEST_CASE("damaged files are counted, removed and built again", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  get(*cache::Cache::open({.directory = directory.cache()}).value(), scale);
  const fs::path file = directory.files().at(0);
  const std::vector<char> whole = read(file);
  std::vector<std::vector<char>> damaged{{}, {'x'}};
  for (std::size_t at = 0; at < whole.size(); at += 11) {
    damaged.emplace_back(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at));
    damaged.push_back(whole);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 4);
  }
  int builds = scale->builds;
  for (const auto& bytes : damaged) {
    write(file, bytes);
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    const auto provided = get(*cache, scale);
    if (provided.tier != CacheTier::built || metrics(*cache).corrupt != 1) FAIL("a damaged file was taken");
    if (read(file) != whole) FAIL("the file was not put right");
    ++builds;
  }
  CHECK(scale->builds == builds);
}

TEST_CASE("a file of another key is not loaded", "[cache]") {
  const Directory directory;
  const auto a = program("a", true), b = program("b", true);
  {
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    get(*cache, a), get(*cache, b);
  }
  const auto files = directory.files();
  REQUIRE(files.size() == 2);
  const auto first = read(files[0]), second = read(files[1]);
  write(files[0], second);
  write(files[1], first);
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  CHECK(base::state_of(get(*cache, a).executable)->artefact().kernel == "a");
  CHECK(base::state_of(get(*cache, b).executable)->artefact().kernel == "b");
  CHECK(metrics(*cache).corrupt == 2);
}

TEST_CASE("a file too large to be a kernel is removed unread", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  get(*cache::Cache::open({.directory = directory.cache()}).value(), scale);
  const fs::path file = directory.files().at(0);
  fs::resize_file(file, 1ull << 40);
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  CHECK(get(*cache, scale).tier == CacheTier::built);
  CHECK(metrics(*cache).corrupt == 1);
  CHECK(fs::file_size(file) < 1 << 20);
}

TEST_CASE("a directory at the place of a file only disables that file", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  const std::string key = scale->artefact().key.hex();
  fs::create_directories(fs::path(directory.cache()) / key.substr(0, 2) / key);
  fs::permissions(directory.cache(), fs::perms::owner_all);
  Warnings warnings;
  const auto cache = cache::Cache::open({.directory = directory.cache(), .log = warnings.sink()}).value();
  CHECK(get(*cache, scale).tier == CacheTier::built);
  CHECK(warnings.times == 1);
}

TEST_CASE("a directory that cannot be created, or that others may write to, is refused at once", "[cache]") {
  const Directory directory;
  write(directory.path() / "file", {'x'});
  const auto blocked = ShaderCache::open({.directory = (directory.path() / "file" / "cache").string()});
  REQUIRE_FALSE(blocked);
  CHECK(blocked.error().code() == Errc::io);
  CHECK(blocked.error().sentence().find("file") != std::string::npos);

  fs::create_directory(directory.cache());
  fs::permissions(directory.cache(), fs::perms::all);
  CHECK(ShaderCache::open({.directory = directory.cache()}).error() == Errc::io);
  fs::permissions(directory.cache(), fs::perms::owner_all);
  CHECK(ShaderCache::open({.directory = directory.cache()}));
}

TEST_CASE("a directory that vanishes is created again", "[cache]") {
  const Directory directory;
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  fs::remove_all(directory.cache());
  CHECK(get(*cache, program("a", true)).tier == CacheTier::built);
  CHECK(directory.files().size() == 1);
}

TEST_CASE("the cache continues without a directory that became a file, and logs that once", "[cache]") {
  const Directory directory;
  Warnings warnings;
  const auto cache = cache::Cache::open({.directory = directory.cache(), .log = warnings.sink()}).value();
  fs::remove_all(directory.cache());
  write(directory.cache(), {'x'});
  for (int i = 0; i < 5; ++i)
    CHECK(get(*cache, program(std::string(1, static_cast<char>('a' + i)), true)).tier == CacheTier::built);
  CHECK(warnings.times == 1);
  CHECK(warnings.last.find("The cache continues without the stored kernels") == 0);
  CHECK(warnings.last.find(directory.cache()) != std::string::npos);
}

TEST_CASE("a read-only directory is read, and the failed write is logged once", "[cache]") {
  // The next case tests the same with a store.
  if (geteuid() == 0) return wye::test::skip("no directory is read-only for root");
  const Directory directory;
  const auto scale = program("scale", true);
  get(*cache::Cache::open({.directory = directory.cache()}).value(), scale);
  fs::permissions(directory.cache(), fs::perms::owner_read | fs::perms::owner_exec);
  Warnings warnings;
  const auto cache = cache::Cache::open({.directory = directory.cache(), .log = warnings.sink()}).value();
  CHECK(get(*cache, scale).tier == CacheTier::disk);
  CHECK(get(*cache, program("a", true)).tier == CacheTier::built);
  CHECK(get(*cache, program("b", true)).tier == CacheTier::built);
  CHECK(warnings.times == 1);
  fs::permissions(directory.cache(), fs::perms::owner_all);
}

TEST_CASE("a store that cannot be written is read, and that is logged once", "[cache]") {
  const auto store = std::make_shared<MemoryStore>();
  const auto scale = program("scale", true);
  store->blobs[scale->artefact().key] = cache::encode(scale->artefact());
  store->put_error = Error(Errc::io, "No space left on device.");
  Warnings warnings;
  const auto cache = cache::Cache::open({.store = store, .log = warnings.sink()}).value();
  CHECK(get(*cache, scale).tier == CacheTier::disk);
  for (const char* name : {"a", "b", "c"}) CHECK(get(*cache, program(name, true)).tier == CacheTier::built);
  CHECK(store->puts == 3);
  CHECK(warnings.times == 1);
  CHECK(warnings.last ==
        "The cache continues without the stored kernels that it cannot reach: No space left on device.");
}

TEST_CASE("a store that cannot be read or cleaned changes no result", "[cache]") {
  const auto store = std::make_shared<MemoryStore>();
  const auto scale = program("scale", true);
  Warnings warnings;
  store->get_error = Error(Errc::io, "Input/output error.");
  CHECK(get(*cache::Cache::open({.store = store, .log = warnings.sink()}).value(), scale).tier ==
        CacheTier::built);
  CHECK(warnings.times == 1);
  store->get_error.reset();
  store->blobs[scale->artefact().key] = {std::byte{1}};
  store->remove_error = store->put_error = Error(Errc::io, "Read-only file system.");
  const auto cache = cache::Cache::open({.store = store, .log = warnings.sink()}).value();
  CHECK(get(*cache, scale).tier == CacheTier::built);
  CHECK(metrics(*cache).corrupt == 1);
  CHECK(warnings.times == 2);
}

TEST_CASE("no caller waits until a kernel is stored", "[cache]") {
  const auto store = std::make_shared<MemoryStore>();
  const auto cache = cache::Cache::open({.store = store}).value();
  const auto scale = program("scale", true);
  get(*cache, scale);
  CHECK(store->gets == 2);  // and the driver's code
  CHECK(store->puts == 1);
  const auto device = std::make_shared<DoubleDevice>();
  REQUIRE(cache->provide(scale, device, Instant::max()));
  REQUIRE(cache->provide(scale, device, Instant::max()));
  CHECK(store->gets == 4);  // once per device, never on a hit
  CHECK(store->puts == 1);
}

TEST_CASE("a kernel that another process built is found", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  const pid_t child = fork();
  if (child == 0) {
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    const auto provided = cache->provide(scale, std::make_shared<DoubleDevice>(), Instant::max());
    _exit(provided && provided->tier == CacheTier::built ? 0 : 1);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  CHECK(get(*cache, scale).tier == CacheTier::disk);
  CHECK(scale->builds == 0);
}

TEST_CASE("processes that store and read one key at once never see a partial file", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  const auto store = cache::DirectoryStore::open(directory.cache()).value();
  const auto bytes = cache::encode(scale->artefact());
  const Digest key = scale->artefact().key;
  REQUIRE(store->put(key, bytes));
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 300; ++i)
      if (!store->put(key, bytes)) _exit(1);
    _exit(0);
  }
  REQUIRE(child > 0);
  int bad = 0, status = 0, reads = 0;
  while (waitpid(child, &status, WNOHANG) == 0 || reads < 50) {
    auto blob = store->get(key);
    if (!blob || !*blob || !cache::decode(**blob, key)) ++bad;
    ++reads;
  }
  CHECK(bad == 0);
  CHECK(status == 0);
  CHECK(directory.files().size() == 1);
}

namespace {

Digest key_of(int i) { return Hasher().add("key " + std::to_string(i)).finish(); }

fs::path file_of(const Directory& directory, const Digest& key) {
  return fs::path(directory.cache()) / key.hex().substr(0, 2) / key.hex();
}

std::shared_ptr<cache::DirectoryStore> open_store(const Directory& directory,
                                                  cache::DirectoryStore::Bounds bounds = {}) {
  return cache::DirectoryStore::open(directory.cache(), bounds).value();
}

const std::vector<std::byte> thousand(1000, std::byte{7});

}  // namespace

TEST_CASE("a store within its bounds keeps everything", "[cache]") {
  const Directory directory;
  const auto store = open_store(directory, {10'000_B, 10});
  for (int i = 0; i < 10; ++i) REQUIRE(store->put(key_of(i), thousand));
  for (int i = 0; i < 10; ++i) REQUIRE(store->put(key_of(i), thousand));  // a repeated put takes no more room
  CHECK(directory.files().size() == 10);
  CHECK(store->displaced() == 0);
}

TEST_CASE("a store beyond a bound removes the least recently used files, down to 90 %", "[cache]") {
  for (const auto& bounds : {cache::DirectoryStore::Bounds{20'000_B, 1000}, {1_GiB, 20}}) {
    const Directory directory;
    const auto store = open_store(directory, bounds);
    for (int i = 0; i < 20; ++i) {
      REQUIRE(store->put(key_of(i), thousand));
      make_older(file_of(directory, key_of(i)), std::chrono::minutes(100 - i));
    }
    CHECK(directory.files().size() == 20);
    REQUIRE(store->put(key_of(20), thousand));
    CHECK(store->displaced() == 3);
    for (int i = 0; i <= 20; ++i) CHECK(fs::exists(file_of(directory, key_of(i))) == (i >= 3));
  }
}

TEST_CASE("a lookup counts as a use for the order of removal", "[cache]") {
  const Directory directory;
  const auto store = open_store(directory, {1_GiB, 10});
  for (int i = 0; i < 10; ++i) {
    REQUIRE(store->put(key_of(i), thousand));
    make_older(file_of(directory, key_of(i)), std::chrono::hours(100 - i));
  }
  REQUIRE(store->get(key_of(0)).value());
  REQUIRE(store->put(key_of(10), thousand));
  CHECK(store->get(key_of(0)).value());
  CHECK_FALSE(store->get(key_of(1)).value());
  CHECK_FALSE(store->get(key_of(2)).value());
  CHECK(store->get(key_of(3)).value());
}

TEST_CASE("a file is freshened once an hour, and its time of access stays", "[cache]") {
  const Directory directory;
  const auto store = open_store(directory);
  REQUIRE(store->put(key_of(0), thousand));
  const fs::path file = file_of(directory, key_of(0));
  make_older(file, 50min);
  const auto before = fs::last_write_time(file);
  REQUIRE(store->get(key_of(0)).value());
  CHECK(fs::last_write_time(file) == before);
  make_older(file, 70min);
  REQUIRE(store->get(key_of(0)).value());
  CHECK(fs::last_write_time(file) > before);
}

TEST_CASE("a large store is bounded too", "[cache]") {
  // 64 groups: each lists only a part of the directories.
  const Directory directory;
  const cache::DirectoryStore::Bounds bounds{1_GiB, 64 * 400};
  std::vector<std::shared_ptr<cache::DirectoryStore>> stores;
  for (int i = 0; i < 3; ++i) stores.push_back(open_store(directory, bounds));
  // All in one group, like three processes that do not see each other's writes.
  int put = 0;
  for (int i = 0; put < 700; ++i) {
    Digest key = key_of(i);
    key.bytes[0] = static_cast<std::byte>(i % 4);
    REQUIRE(stores[static_cast<std::size_t>(i) % 3]->put(key, std::span(thousand).first(10)));
    ++put;
  }
  const std::size_t files = directory.files().size();
  CHECK(files <= 400 + 3 * 400 / 16);
  CHECK(files >= 360);
}

TEST_CASE("a blob larger than all bounds is not stored, and one blob is always kept", "[cache]") {
  const Directory directory;
  const auto store = open_store(directory, {2'000_B, 100});
  REQUIRE(store->put(key_of(0), std::vector<std::byte>(2001)));
  CHECK(directory.files().empty());
  REQUIRE(store->put(key_of(1), std::vector<std::byte>(2000)));
  CHECK(directory.files().size() == 1);
  REQUIRE(store->put(key_of(2), std::vector<std::byte>(1999)));
  CHECK(store->get(key_of(2)).value());
  CHECK(directory.files().size() == 1);
}

TEST_CASE("no room on disk means that nothing is stored", "[cache]") {
  for (const CacheOptions& bounds : {CacheOptions{.disk = 0_B}, CacheOptions{.disk_kernels = 0}}) {
    const Directory directory;
    CacheOptions options = bounds;
    options.directory = directory.cache();
    const auto cache = cache::Cache::open(options).value();
    get(*cache, program("scale", true));
    CHECK(directory.files().empty());
  }
}

TEST_CASE("the cache bounds its directory and counts the removed files", "[cache]") {
  const Directory directory;
  const auto cache = cache::Cache::open({.directory = directory.cache(), .disk_kernels = 5}).value();
  for (int i = 0; i < 50; ++i) get(*cache, program("kernel " + std::to_string(i), true));
  CHECK(directory.files().size() == 5);
  CHECK(metrics(*cache).disk_evictions == 45);
  CHECK(metrics(*cache).evictions == 0);
}

TEST_CASE("kernels do not displace the report of a device's checks, and it takes no room of theirs",
          "[cache]") {
  const Directory directory;
  const CacheOptions options{.directory = directory.cache(), .disk = 300_KiB, .disk_kernels = 5};
  const auto cache = cache::Cache::open(options).value();
  const std::vector<std::byte> report(3000, std::byte{7});
  const Digest key = Hasher().add("checks").finish();
  REQUIRE(cache->store()->put_report(key, report));
  for (const fs::path& file : directory.files()) make_older(file, 24h);
  for (int i = 0; i < 50; ++i) get(*cache, program("kernel " + std::to_string(i), true));
  CHECK(cache->store()->get_report(key) == report);
  CHECK(directory.files().size() == 6);
  CHECK(cache::Cache::open(options).value()->store()->get_report(key) == report);
  const auto listed = list_cache(directory.cache()).value();
  CHECK(listed.size() == 6);
  CHECK(std::count_if(listed.begin(), listed.end(), [&](const StoredFile& file) {
          return file.path.starts_with("checks/") && file.key == key &&
                 fs::exists(directory.cache() + "/" + file.path);
        }) == 1);
  REQUIRE(trim_cache(directory.cache(), 300_KiB, 1));
  CHECK(directory.files().size() == 1);
  CHECK(cache->store()->get_report(key) == report);
  REQUIRE(clear_cache(directory.cache()));
  CHECK_FALSE(cache->store()->get_report(key));
  // A store that keeps nothing keeps no report either.
  const auto none = cache::Cache::open({.directory = directory.cache(), .disk = 0_B}).value();
  (void)none->store()->put_report(key, report);
  CHECK_FALSE(none->store()->get_report(key));
}

TEST_CASE("reports of checks have bounds of their own", "[cache]") {
  const Directory directory;
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  const std::vector<std::byte> report(3000, std::byte{7});
  for (int i = 0; i < 400; ++i)
    REQUIRE(cache->store()->put_report(Hasher().add(std::to_string(i)).finish(), report));
  CHECK(directory.files().size() <= 256);
  CHECK(directory.bytes() <= 1ull << 20);
}

TEST_CASE("temporary files of dead writers are removed after an hour, others are not", "[cache]") {
  const Directory directory;
  const auto store = open_store(directory, {1_GiB, 10});
  REQUIRE(store->put(key_of(0), thousand));
  const fs::path shard = file_of(directory, key_of(0)).parent_path();
  const fs::path stale = shard / ".abc.XyZ123.tmp", fresh = shard / ".abc.XyZ124.tmp",
                 foreign = shard / "notes";
  for (const auto& path : {stale, fresh, foreign}) {
    write(path, {'x'});
    make_older(path, path == fresh ? 59min : 61min);
  }
  REQUIRE(store->put(key_of(0), thousand));
  CHECK_FALSE(fs::exists(stale));
  CHECK(fs::exists(fresh));
  CHECK(fs::exists(foreign));
}

TEST_CASE("no process waits while another one trims", "[cache]") {
  const Directory directory;
  const auto store = open_store(directory, {1_GiB, 5});
  {
    const auto busy =
        base::FileLock::acquire(cache::DirectoryStore::lock_file(directory.cache()), 1ull << 62, {});
    REQUIRE(busy);
    for (int i = 0; i < 8; ++i) REQUIRE(store->put(key_of(i), thousand));
    CHECK(directory.files().size() == 8);
  }
  REQUIRE(store->put(key_of(8), thousand));
  CHECK(directory.files().size() == 5);
}

TEST_CASE("without locks the store is still bounded, and the missing locks are logged once", "[cache]") {
  const Directory directory;
  fs::create_directories(
      cache::DirectoryStore::lock_file(directory.cache()));  // a directory cannot be locked
  fs::permissions(directory.cache(), fs::perms::owner_all);
  Warnings warnings;
  const auto cache =
      cache::Cache::open({.directory = directory.cache(), .disk_kernels = 5, .log = warnings.sink()}).value();
  for (int i = 0; i < 9; ++i)
    CHECK(get(*cache, program("kernel " + std::to_string(i), true)).tier == CacheTier::built);
  CHECK(directory.files().size() == 5);
  CHECK(warnings.times == 1);
  CHECK(warnings.last == "The cache continues without waiting for builds of other processes: File '" +
                             cache::DirectoryStore::lock_file(directory.cache()) +
                             "' cannot be opened: Is a directory.");
}

TEST_CASE("a full disk only disables the store, leaves no files, and is logged once", "[cache]") {
  const Directory directory;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit none{100, 100};  // every longer file fails half-way, as on a full disk
    setrlimit(RLIMIT_FSIZE, &none);
    Warnings warnings;
    const auto cache = cache::Cache::open({.directory = directory.cache(), .log = warnings.sink()}).value();
    int built = 0;
    for (int i = 0; i < 5; ++i) {
      const auto provided = cache->provide(program("kernel " + std::to_string(i), true),
                                           std::make_shared<DoubleDevice>(), Instant::max());
      built += provided && provided->tier == CacheTier::built;
    }
    _exit(built == 5 && warnings.times == 1 ? 0 : 1);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(directory.files().empty());
}
