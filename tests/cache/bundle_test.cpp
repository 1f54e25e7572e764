// Artefacts shipped in a file, and the maintenance of a cache directory.
#include "cache/store/bundle.hpp"

#include <wye/cache/cache_directory.hpp>

#include <thread>

#include "cache/cache.hpp"
#include "cache/store/artefact_bytes.hpp"
#include "directory.hpp"
#include "doubles.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using cache::Bundle;
using test::Directory;
using test::DoubleDevice;
using test::metrics;
using test::program;
namespace fs = std::filesystem;

namespace {

/// A directory in which `names` were built, on a device whose driver generated code.
void fill_directory(const Directory& directory, const std::vector<std::string>& names) {
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  const auto device = std::make_shared<DoubleDevice>();
  device->code.assign(40, std::byte{3});
  for (const std::string& name : names) REQUIRE(cache->provide(program(name, true), device, Instant::max()));
}

Digest key_named(const std::string& name) { return program(name)->artefact().key; }

std::string pack(const Directory& directory, const std::vector<std::string>& names) {
  fill_directory(directory, names);
  std::string path = (directory.path() / "kernels.bundle").string();
  REQUIRE(bundle_cache(directory.cache(), path).value() == names.size());
  return path;
}

std::shared_ptr<cache::Cache> open_with(const std::string& bundle, std::string directory = {}) {
  return cache::Cache::open({.directory = std::move(directory), .bundles = {bundle}}).value();
}

CacheTier tier_of(cache::Cache& cache, const std::string& name) {
  return cache.provide(program(name, true), std::make_shared<DoubleDevice>(), Instant::max())->tier;
}

}  // namespace

TEST_CASE("a kernel in a bundle is not built, with and without a directory", "[cache]") {
  const Directory shipped, user;
  const std::string bundle = pack(shipped, {"a", "b", "c"});
  for (const std::string& directory : {std::string(), user.cache()}) {
    const auto cache = open_with(bundle, directory);
    CHECK(tier_of(*cache, "b") == CacheTier::bundle);
    CHECK(tier_of(*cache, "d") == CacheTier::built);
    const auto counted = metrics(*cache);
    CHECK(counted.bundle_hits == 1);
    CHECK(counted.misses == 1);
    CHECK(counted.disk_hits == 0);
    CHECK(cache->explain(*program("c", true), DoubleDevice()) ==
          "Kernel 'c' is not ready on 'double:0', and is not remembered to have been; its artefact is in the "
          "bundle '" +
              bundle + "'.");
  }
  CHECK(std::string(name(CacheTier::bundle)) == "bundle");
}

TEST_CASE("a bundle is searched before the directory, and its kernels are not stored again", "[cache]") {
  const Directory shipped, user;
  const std::string bundle = pack(shipped, {"a"});
  fill_directory(user, {"a"});
  CHECK(tier_of(*open_with(bundle, user.cache()), "a") == CacheTier::bundle);
  fs::remove_all(user.cache());
  CHECK(tier_of(*open_with(bundle, user.cache()), "a") == CacheTier::bundle);
  CHECK(user.files().empty());
}

TEST_CASE("the first of several bundles with a kernel provides it", "[cache]") {
  const Directory one, two;
  const std::string first = pack(one, {"a"}), second = pack(two, {"a", "b"});
  const auto cache = cache::Cache::open({.bundles = {first, second}}).value();
  CHECK(tier_of(*cache, "a") == CacheTier::bundle);
  CHECK(tier_of(*cache, "b") == CacheTier::bundle);
  CHECK(metrics(*cache).bundle_hits == 2);
}

TEST_CASE("only the damaged entry of a bundle is a miss", "[cache]") {
  const Directory directory;
  const std::string path = pack(directory, {"a", "b", "c"});
  auto bytes = test::read(path);
  const auto record = cache::encode(program("b")->artefact());
  const std::string_view all(bytes.data(), bytes.size());
  const std::size_t at =
      all.find(std::string_view(reinterpret_cast<const char*>(record.data()), record.size()));
  REQUIRE(at != all.npos);
  bytes[at + record.size() - 1] = static_cast<char>(bytes[at + record.size() - 1] ^ 1);
  test::write(path, bytes);
  const auto cache = open_with(path);
  CHECK(tier_of(*cache, "a") == CacheTier::bundle);
  CHECK(tier_of(*cache, "b") == CacheTier::built);
  CHECK(tier_of(*cache, "c") == CacheTier::bundle);
  CHECK(metrics(*cache).corrupt == 1);
  CHECK(metrics(*cache).misses_corrupt == 1);
}

TEST_CASE("an invalid, truncated, newer or missing bundle is refused", "[cache]") {
  const Directory directory;
  const std::string path = pack(directory, {"a", "b"});
  const auto whole = test::read(path);
  const auto refusal = [&](const std::vector<char>& bytes) {
    test::write(path, bytes);
    const auto opened = ShaderCache::open({.bundles = {path}});
    if (opened) FAIL("it was opened");
    CHECK(opened.error().sentence().find("Bundle '" + path + "'") == 0);
    return opened.error().code();
  };
  CHECK(ShaderCache::open({.bundles = {path + "s"}}).error() == Errc::not_found);
  CHECK(ShaderCache::open({.bundles = {directory.cache()}}).error() == Errc::io);
  for (const char version : {'\1', '\3'}) {
    std::vector<char> other = whole;
    other[10] = version;
    CHECK(refusal(other) == Errc::unsupported);
  }
  CHECK(refusal({}) == Errc::corrupt);
  for (std::size_t length = 0; length < whole.size(); length += 5)
    if (refusal({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}) != Errc::corrupt)
      FAIL("cut at " << length);
}

TEST_CASE("a changed bundle never yields other artefacts", "[cache]") {
  const Directory directory;
  const std::string path = pack(directory, {"a", "b"});
  const auto whole = test::read(path);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 8);
    test::write(path, bytes);
    const auto bundle = Bundle::open(path);
    if (!bundle) continue;
    int found = 0;
    for (const char* name : {"a", "b"})
      if (const auto one = bundle->find(key_named(name)).artefact) {
        ++found;
        if (one->kernel != name) FAIL("the wrong kernel");
      }
    if (found != 1) FAIL("damage at " << at << " left " << found);
  }
}

TEST_CASE("threads read one bundle at once", "[cache]") {
  const Directory directory;
  std::vector<std::string> names;
  for (int i = 0; i < 30; ++i) names.push_back("kernel " + std::to_string(i));
  const Bundle bundle = Bundle::open(pack(directory, names)).value();
  CHECK(bundle.size() == 30);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (const std::string& name : names) {
        const auto found = bundle.find(key_named(name));
        wrong += !found.artefact || found.artefact->kernel != name;
      }
      wrong += bundle.find(key_named("none")).artefact.has_value();
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a manifest selects the kernels of a bundle", "[cache]") {
  const Directory directory;
  fill_directory(directory, {"a", "b", "c"});
  const std::string path = (directory.path() / "kernels.bundle").string();
  Manifest only;
  only.entries = {{key_named("c"), "c", "double", "a double", 1, 1ms},
                  {key_named("c"), "c", "double", "another", 1, 1ms}};
  CHECK(bundle_cache(directory.cache(), path, &only).value() == 1);
  CHECK(Bundle::open(path)->find(key_named("c")).artefact);
  CHECK_FALSE(Bundle::open(path)->find(key_named("a")).artefact);
  only.entries.push_back({key_named("d"), "d", "double", "a double", 1, 1ms});
  const auto lacking = bundle_cache(directory.cache(), path, &only);
  REQUIRE_FALSE(lacking);
  CHECK(lacking.error() == Errc::not_found);
  CHECK(lacking.error().sentence() ==
        "Kernel 'd' of the manifest is not in directory '" + directory.cache() + "'.");
  CHECK(bundle_cache(directory.cache(), "/nowhere/at/all").error() == Errc::io);
  CHECK(bundle_cache("/nowhere/at/all", path).error() == Errc::not_found);
}

TEST_CASE("a cache directory is listed with the kind of each file", "[cache]") {
  const Directory directory;
  fill_directory(directory, {"a", "b"});
  const auto file_named = [&](const std::string& kernel) {
    const std::string hex = key_named(kernel).hex();
    return fs::path(directory.cache()) / hex.substr(0, 2) / hex;
  };
  test::make_older(file_named("b"), 5h);
  test::write(file_named("b").parent_path() / ".x.abc123.tmp", {'x'});
  test::write(file_named("b").parent_path() / "notes", {'x'});
  const auto files = list_cache(directory.cache()).value();
  REQUIRE(files.size() == 4);
  int kernels = 0, drivers = 0, temporaries = 0;
  for (const StoredFile& file : files) {
    CHECK(file.bytes.count == fs::file_size(fs::path(directory.cache()) / file.path));
    kernels += file.kind == StoredFile::Kind::kernel && file.made_for == "spirv";
    drivers +=
        file.kind == StoredFile::Kind::driver && file.name == "a double" && file.made_for == "doubles 1.0";
    temporaries += file.kind == StoredFile::Kind::temporary;
  }
  CHECK(kernels == 2);
  CHECK(drivers == 1);
  CHECK(temporaries == 1);
  CHECK(files.back().name == "b");
  CHECK(files.back().key == key_named("b"));
  CHECK(files.back().unused > 4h);
  CHECK(files.back().unused < 6h);

  auto bytes = test::read(file_named("a"));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  test::write(file_named("a"), bytes);
  const auto again = list_cache(directory.cache()).value();
  CHECK(std::count_if(again.begin(), again.end(),
                      [](const StoredFile& file) { return file.kind == StoredFile::Kind::damaged; }) == 1);
  CHECK(list_cache("/nowhere/at/all").error() == Errc::not_found);
  CHECK(list_cache(file_named("a").string()).error() == Errc::io);
}

TEST_CASE("trimming a cache directory keeps the most recently used files", "[cache]") {
  const Directory directory;
  fill_directory(directory, {"a", "b", "c", "d"});
  int hours = 10;
  for (const char* name : {"c", "a", "d", "b"}) {
    const std::string hex = key_named(name).hex();
    test::make_older(fs::path(directory.cache()) / hex.substr(0, 2) / hex, std::chrono::hours(hours--));
  }
  // The driver's code was written last.
  const auto gone = trim_cache(directory.cache(), 1_GiB, 3).value();
  CHECK(gone.files == 2);
  std::vector<std::string> left;
  for (const StoredFile& file : list_cache(directory.cache()).value()) left.push_back(file.name);
  CHECK(left == std::vector<std::string>{"a double", "b", "d"});
  CHECK(trim_cache(directory.cache(), 1_GiB, 3)->files == 0);
  CHECK(trim_cache(directory.cache(), 0_B, 3)->files == 3);
  CHECK(directory.files().empty());
}

TEST_CASE("a cache directory is cleared while a cache uses it", "[cache]") {
  const Directory directory;
  fill_directory(directory, {"a", "b"});
  const auto cache = cache::Cache::open({.directory = directory.cache()}).value();
  CHECK(tier_of(*cache, "a") == CacheTier::disk);
  CHECK(clear_cache(directory.cache())->files == 3);
  CHECK(directory.files().empty());
  CHECK(tier_of(*cache, "a") == CacheTier::built);
  CHECK(directory.files().size() == 1);
}
