#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cache/artefact_bytes.hpp"
#include "cache/cache.hpp"
#include "cache/directory_store.hpp"
#include "doubles.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"

using namespace wye;
using test::DoubleDevice;
using test::MemoryStore;
using test::program;
namespace fs = std::filesystem;

namespace {

/// A directory that goes when the test does.
class Directory {
 public:
  Directory() {
    std::string name = (fs::temp_directory_path() / "wye_cache_XXXXXX").string();
    if (mkdtemp(name.data())) path_ = name;
  }
  ~Directory() {
    std::error_code ignored;
    fs::permissions(path_, fs::perms::owner_all, ignored);
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  std::string cache() const { return (path_ / "cache").string(); }
  /// All files below `cache`.
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(cache()))
      if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }

 private:
  fs::path path_;
};

CacheMetrics metrics(const cache::Cache& cache) {
  const auto still = cache.freeze();
  return cache.metrics_locked();
}

device::Provided get(cache::Cache& cache, const std::shared_ptr<const device::Program>& what) {
  auto provided = cache.provide(what, std::make_shared<DoubleDevice>(), Instant::max());
  if (!provided) FAIL(provided.error().describe());
  return *provided;
}

/// Warnings of a cache, counted.
struct Said {
  int times = 0;
  std::string last;
  LogSink sink() {
    return [this](const LogRecord& record) {
      if (record.level == LogLevel::warning) ++times, last = record.text;
    };
  }
};

std::vector<char> read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const fs::path& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

TEST_CASE("a second cache finds on disk what the first one built", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  {
    const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
    CHECK(get(*cache, scale).tier == CacheTier::built);
  }
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  const auto found = get(*cache, scale);
  CHECK(found.tier == CacheTier::disk);
  CHECK(found.executable.base()->artefact().kernel == "scale");
  CHECK(scale->builds == 1);
  const CacheMetrics counted = metrics(*cache);
  CHECK(counted.disk_hits == 1);
  CHECK(counted.misses == 0);
  CHECK(counted.build_time == Duration{});
}

TEST_CASE("what is evicted from memory is found on disk", "[cache]") {
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

TEST_CASE("stored kernels lie in directories by two digits, for their owner only", "[cache]") {
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

TEST_CASE("code of the process itself is not stored", "[cache]") {
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

TEST_CASE("a file in the place of another is not taken for it", "[cache]") {
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
  CHECK(get(*cache, a).executable.base()->artefact().kernel == "a");
  CHECK(get(*cache, b).executable.base()->artefact().kernel == "b");
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

TEST_CASE("a directory where a file should be costs its use only", "[cache]") {
  const Directory directory;
  const auto scale = program("scale", true);
  const std::string key = scale->artefact().key.hex();
  fs::create_directories(fs::path(directory.cache()) / key.substr(0, 2) / key);
  fs::permissions(directory.cache(), fs::perms::owner_all);
  Said said;
  const auto cache = cache::Cache::open({.directory = directory.cache(), .log = said.sink()}).value();
  CHECK(get(*cache, scale).tier == CacheTier::built);
  CHECK(said.times == 1);
}

TEST_CASE("a directory that cannot be made, or that others may write to, is refused at once", "[cache]") {
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

TEST_CASE("a directory that vanishes is made again", "[cache]") {
  const Directory directory;
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  fs::remove_all(directory.cache());
  CHECK(get(*cache, program("a", true)).tier == CacheTier::built);
  CHECK(directory.files().size() == 1);
}

TEST_CASE("a directory that becomes something else is done without, and that is said once", "[cache]") {
  const Directory directory;
  Said said;
  const auto cache = cache::Cache::open({.directory = directory.cache(), .log = said.sink()}).value();
  fs::remove_all(directory.cache());
  write(directory.cache(), {'x'});
  for (int i = 0; i < 5; ++i)
    CHECK(get(*cache, program(std::string(1, static_cast<char>('a' + i)), true)).tier == CacheTier::built);
  CHECK(said.times == 1);
  CHECK(said.last.find("Going on without stored kernels") == 0);
  CHECK(said.last.find(directory.cache()) != std::string::npos);
}

TEST_CASE("a read-only directory is read, and not being able to write is said once", "[cache]") {
  if (geteuid() == 0) return;  // nothing is read-only for root; the next case does it with a store
  const Directory directory;
  const auto scale = program("scale", true);
  get(*cache::Cache::open({.directory = directory.cache()}).value(), scale);
  fs::permissions(directory.cache(), fs::perms::owner_read | fs::perms::owner_exec);
  Said said;
  const auto cache = cache::Cache::open({.directory = directory.cache(), .log = said.sink()}).value();
  CHECK(get(*cache, scale).tier == CacheTier::disk);
  CHECK(get(*cache, program("a", true)).tier == CacheTier::built);
  CHECK(get(*cache, program("b", true)).tier == CacheTier::built);
  CHECK(said.times == 1);
  fs::permissions(directory.cache(), fs::perms::owner_all);
}

TEST_CASE("a store that cannot be written is read, and said once", "[cache]") {
  const auto store = std::make_shared<MemoryStore>();
  const auto scale = program("scale", true);
  store->blobs[scale->artefact().key] = cache::encode(scale->artefact());
  store->put_error = Error(Errc::io, "No space left on device.");
  Said said;
  const auto cache = cache::Cache::open({.log = said.sink()}, store).value();
  CHECK(get(*cache, scale).tier == CacheTier::disk);
  for (const char* name : {"a", "b", "c"}) CHECK(get(*cache, program(name, true)).tier == CacheTier::built);
  CHECK(store->puts == 3);
  CHECK(said.times == 1);
  CHECK(said.last ==
        "Going on without stored kernels where they cannot be reached: No space left on device.");
}

TEST_CASE("a store that cannot be read, or not be cleaned, changes no answer", "[cache]") {
  const auto store = std::make_shared<MemoryStore>();
  const auto scale = program("scale", true);
  Said said;
  store->get_error = Error(Errc::io, "Input/output error.");
  CHECK(get(*cache::Cache::open({.log = said.sink()}, store).value(), scale).tier == CacheTier::built);
  CHECK(said.times == 1);
  store->get_error.reset();
  store->blobs[scale->artefact().key] = {std::byte{1}};
  store->remove_error = store->put_error = Error(Errc::io, "Read-only file system.");
  const auto cache = cache::Cache::open({.log = said.sink()}, store).value();
  CHECK(get(*cache, scale).tier == CacheTier::built);
  CHECK(metrics(*cache).corrupt == 1);
  CHECK(said.times == 2);
}

TEST_CASE("nobody waits for a kernel to be stored", "[cache]") {
  const auto store = std::make_shared<MemoryStore>();
  const auto cache = cache::Cache::open({}, store).value();
  const auto scale = program("scale", true);
  get(*cache, scale);
  CHECK(store->gets == 1);
  CHECK(store->puts == 1);
  const auto device = std::make_shared<DoubleDevice>();
  REQUIRE(cache->provide(scale, device, Instant::max()));
  REQUIRE(cache->provide(scale, device, Instant::max()));
  CHECK(store->gets == 2);  // once per device, never on a hit
  CHECK(store->puts == 1);
}

TEST_CASE("what another process built is found", "[cache]") {
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

TEST_CASE("processes that store and read one key at once never see half of it", "[cache]") {
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
  int bad = 0, status = 0, read = 0;
  while (waitpid(child, &status, WNOHANG) == 0 || read < 50) {
    auto blob = store->get(key);
    if (!blob || !*blob || !cache::decode(**blob, key)) ++bad;
    ++read;
  }
  CHECK(bad == 0);
  CHECK(status == 0);
  CHECK(directory.files().size() == 1);
}
