#include <map>
#include <random>

#include "base/internals.hpp"
#include "cache/cache.hpp"
#include "doubles.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"

using namespace wye;
using namespace wye::literals;
using test::DoubleDevice;
using test::metrics;
using test::program;

namespace {

Executable get(cache::Cache& cache, const std::shared_ptr<test::CountingProgram>& what,
               const std::shared_ptr<DoubleDevice>& device) {
  return cache.provide(what, device, Instant::max()).value().executable;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("the least recently used kernel is evicted when there are too many", "[cache]") {
  const auto cache = cache::Cache::open({.kernels = 3}).value();
  const auto device = std::make_shared<DoubleDevice>("d");
  const auto a = program("a"), b = program("b"), c = program("c"), d = program("d");
  get(*cache, a, device), get(*cache, b, device), get(*cache, c, device);
  get(*cache, a, device);
  CHECK(cache->contents() == Names{"a@d", "c@d", "b@d"});
  get(*cache, d, device);
  CHECK(cache->contents() == Names{"d@d", "a@d", "c@d"});
  CHECK(metrics(*cache).evictions == 1);
  CHECK(*device->alive == 3);
  get(*cache, b, device);
  CHECK(b->builds == 2);
}

TEST_CASE("each kernel that is evicted is an event", "[cache]") {
  const auto cache = cache::Cache::open({.kernels = 2}).value();
  std::vector<std::string> evicted;
  auto events = cache->journal()->listen<base::Evicted>([&](const base::Evicted& event) {
    evicted.push_back(std::string(event.name) + " of " + std::string(event.device) + ", " +
                      to_string(event.bytes));
  });
  const auto device = std::make_shared<DoubleDevice>("d");
  for (const char* name : {"a@1", "b", "c", "d"}) get(*cache, program(name), device);
  CHECK(cache->journal()->flush());
  CHECK(evicted == Names{"a@1 of d, 100 bytes", "b of d, 100 bytes"});
  CHECK(metrics(*cache).evictions == 2);
}

TEST_CASE("bytes are bounded too", "[cache]") {
  const auto cache = cache::Cache::open({.memory = 250_B}).value();
  const auto device = std::make_shared<DoubleDevice>("d");
  get(*cache, program("a"), device), get(*cache, program("b"), device);
  CHECK(metrics(*cache).bytes == 200_B);
  device->executable_bytes = 140;
  get(*cache, program("c"), device);
  CHECK(cache->contents() == Names{"c@d", "b@d"});
  device->executable_bytes = 250;
  get(*cache, program("d"), device);
  CHECK(cache->contents() == Names{"d@d"});
  CHECK(metrics(*cache).bytes == 250_B);
  CHECK(metrics(*cache).evictions == 3);
}

TEST_CASE("executables in use are not evicted", "[cache]") {
  const auto cache = cache::Cache::open({.kernels = 2}).value();
  const auto device = std::make_shared<DoubleDevice>("d");
  const auto a = program("a"), b = program("b"), c = program("c");
  const Executable held = get(*cache, a, device);
  get(*cache, b, device);
  get(*cache, c, device);
  CHECK(cache->contents() == Names{"c@d", "a@d"});
  get(*cache, a, device);
  CHECK(a->builds == 1);
}

TEST_CASE("an executable in use beyond the bounds is found until its last user releases it", "[cache]") {
  const auto cache = cache::Cache::open({.kernels = 2}).value();
  const auto device = std::make_shared<DoubleDevice>("d");
  std::vector<std::shared_ptr<test::CountingProgram>> programs;
  std::vector<Executable> held;
  for (const char* name : {"a", "b", "c", "d"}) {
    programs.push_back(program(name));
    held.push_back(get(*cache, programs.back(), device));
  }
  CHECK(cache->contents() == Names{"d@d", "c@d", "b@d", "a@d"});
  CHECK(metrics(*cache).kernels == 4);
  for (const auto& one : programs) get(*cache, one, device);
  for (const auto& one : programs) CHECK(one->builds == 1);
  held.clear();
  // The two most recently used ones are still kept; the others ended with their users.
  CHECK(*device->alive == 2);
  CHECK(cache->contents() == Names{"d@d", "c@d"});
  CHECK(metrics(*cache).evictions == 2);
  get(*cache, programs[0], device);
  CHECK(programs[0]->builds == 2);
  CHECK(metrics(*cache).evictions == 3);
}

TEST_CASE("bounds of zero keep no executable after its use", "[cache]") {
  for (const CacheOptions& options : {CacheOptions{.kernels = 0}, CacheOptions{.memory = 0_B}}) {
    const auto cache = cache::Cache::open(options).value();
    const auto device = std::make_shared<DoubleDevice>("d");
    const auto a = program("a");
    Executable held = get(*cache, a, device);
    CHECK(base::state_of(get(*cache, a, device)) == base::state_of(held));
    CHECK(a->builds == 1);
    CHECK(metrics(*cache).hits == 1);
    held = {};
    CHECK(*device->alive == 0);
    CHECK(cache->contents().empty());
    get(*cache, a, device);
    CHECK(a->builds == 2);
    CHECK(*device->alive == 0);
  }
}

namespace {

/// The simplest model of the cache: a list, the last to be evicted first. For `slru` it has two
/// parts.
class Model {
 public:
  Model(Eviction eviction, std::uint32_t kernels, Bytes memory)
      : slru_(eviction == Eviction::slru), kernels_(kernels), memory_(memory) {}

  struct Entry {
    std::string name;
    Bytes bytes;
    bool kept = true;
    int holders = 0;
  };

  /// Returns whether the entry existed.
  bool use(const std::string& name, Bytes bytes, bool hold) {
    Entry entry{name, bytes, true, 0};
    const auto found = find(name);
    const bool hit = found != entries.end();
    bool trims = !hit;
    if (hit) {
      entry = *found;
      if (found - entries.begin() < static_cast<std::ptrdiff_t>(protected_)) --protected_;
      entries.erase(found);
      trims = !entry.kept;
      entry.kept = true;
    }
    ++entry.holders;  // the caller holds it while the cache makes room
    if (slru_ && hit) {
      entries.insert(entries.begin(), entry);
      ++protected_;
      while (too_protected()) --protected_;  // the last of the one part becomes the first of the other
    } else {
      entries.insert(entries.begin() + static_cast<std::ptrdiff_t>(protected_), entry);
    }
    if (trims) trim();
    if (!hold) release(name);
    return hit;
  }
  void release(const std::string& name) {
    const auto found = find(name);
    if (--found->holders == 0 && !found->kept) erase(found), ++evictions;
  }
  void clear() {
    for (std::size_t i = entries.size(); i-- > 0;)
      if (entries[i].holders == 0) erase(at(i));
  }
  Bytes reclaim(Bytes wanted) {
    Bytes freed;
    for (std::size_t i = entries.size(); i-- > 0 && freed < wanted;)
      if (entries[i].holders == 0) {
        freed += entries[i].bytes;
        erase(at(i));
        ++evictions;
      }
    return freed;
  }

  std::vector<Entry> entries;
  std::uint64_t evictions = 0;

 private:
  std::vector<Entry>::iterator at(std::size_t i) { return entries.begin() + static_cast<std::ptrdiff_t>(i); }
  std::vector<Entry>::iterator find(const std::string& name) {
    return std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.name == name; });
  }
  void erase(std::vector<Entry>::iterator which) {
    if (which - entries.begin() < static_cast<std::ptrdiff_t>(protected_)) --protected_;
    entries.erase(which);
  }
  bool too_protected() const {
    Bytes bytes;
    for (std::size_t i = 0; i < protected_; ++i) bytes += entries[i].bytes;
    return protected_ > kernels_ * 4 / 5 || bytes.count > memory_.count / 5 * 4;
  }
  bool exceeded(bool kept_only) const {
    std::uint64_t count = 0;
    Bytes bytes;
    for (const Entry& e : entries)
      if (e.kept || !kept_only) ++count, bytes += e.bytes;
    return count > kernels_ || bytes > memory_;
  }
  void trim() {
    for (std::size_t i = entries.size(); i-- > 0;)
      if (exceeded(false) && entries[i].holders == 0) {
        erase(at(i));
        ++evictions;
      }
    if (!exceeded(false)) return;
    for (std::size_t i = entries.size(); i-- > 0 && exceeded(true);) entries[i].kept = false;
  }

  bool slru_;
  std::uint32_t kernels_;
  Bytes memory_;
  std::size_t protected_ = 0;  ///< entries of the first part
};

}  // namespace

TEST_CASE("with slru, entries used once are evicted before entries used again", "[cache]") {
  const auto cache = cache::Cache::open({.kernels = 5, .eviction = Eviction::slru}).value();
  const auto device = std::make_shared<DoubleDevice>("d");
  std::map<char, std::shared_ptr<test::CountingProgram>> programs;
  for (char c = 'a'; c <= 'z'; ++c) programs[c] = program(std::string(1, c));
  const auto use = [&](std::string_view names) {
    for (const char c : names) get(*cache, programs[c], device);
  };
  use("aabb");
  CHECK(cache->contents() == Names{"b@d", "a@d"});
  use("cdefghij");  // many, once each
  CHECK(cache->contents() == Names{"b@d", "a@d", "j@d", "i@d", "h@d"});
  use("a");
  CHECK(cache->contents() == Names{"a@d", "b@d", "j@d", "i@d", "h@d"});
  use("hij");  // four places are for entries used again; b, the least recently used, loses its place
  CHECK(cache->contents() == Names{"j@d", "i@d", "h@d", "a@d", "b@d"});
  use("k");
  CHECK(cache->contents() == Names{"j@d", "i@d", "h@d", "a@d", "k@d"});
}

TEST_CASE("in a loop slightly larger than the cache, lru never hits and slru does", "[cache]") {
  constexpr int room = 20, working_set = 16, loop = 26, passes = 10;
  const auto hits_of = [&](Eviction eviction) {
    const auto cache = cache::Cache::open({.kernels = room, .eviction = eviction}).value();
    const auto device = std::make_shared<DoubleDevice>("d");
    std::vector<std::shared_ptr<test::CountingProgram>> programs;
    for (int i = 0; i < loop; ++i) programs.push_back(program("kernel " + std::to_string(i)));
    const auto pass = [&](int kernels) {
      for (int i = 0; i < kernels; ++i) get(*cache, programs[static_cast<std::size_t>(i)], device);
    };
    pass(working_set), pass(working_set);
    pass(loop);
    const std::uint64_t before = metrics(*cache).hits;
    for (int i = 0; i < passes; ++i) pass(loop);
    return metrics(*cache).hits - before;
  };
  CHECK(hits_of(Eviction::lru) == 0);
  CHECK(hits_of(Eviction::slru) == passes * working_set);
}

TEST_CASE("the cache behaves like a plain list for random requests", "[cache]") {
  const Eviction eviction = GENERATE(Eviction::lru, Eviction::slru);
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    const std::uint32_t kernels = below(12);
    const Bytes memory{seed % 3 == 0 ? 1u << 30 : below(1600)};
    Model model(eviction, kernels, memory);
    const auto cache =
        cache::Cache::open({.memory = memory, .kernels = kernels, .eviction = eviction}).value();
    const auto device = std::make_shared<DoubleDevice>("d");
    std::map<std::string, std::shared_ptr<test::CountingProgram>> programs;
    std::map<std::string, std::uint64_t> sizes;
    for (char c = 'a'; c < 'a' + 12; ++c) {
      programs[std::string(1, c)] = program(std::string(1, c));
      sizes[std::string(1, c)] = 50 + below(200);
    }
    std::vector<std::pair<std::string, Executable>> held;
    std::uint64_t hits = 0, misses = 0;
    for (int step = 0; step < 400; ++step) {
      const std::string name(1, static_cast<char>('a' + std::min(below(12), below(12))));
      switch (const unsigned what = below(20); what) {
        case 0: {
          model.clear();
          cache->clear();
          break;
        }
        case 1: {
          const Bytes wanted{below(500)};
          CHECK(model.reclaim(wanted) == cache->reclaim(*device, wanted));
          break;
        }
        case 2:
        case 3:
        case 4:
          if (!held.empty()) {
            const auto gone =
                held.begin() + static_cast<std::ptrdiff_t>(below(static_cast<unsigned>(held.size())));
            model.release(gone->first);
            held.erase(gone);
          }
          break;
        default: {
          const bool hold = what < 9;
          device->executable_bytes = sizes[name];
          const bool hit = model.use(name, Bytes{sizes[name]}, hold);
          (hit ? hits : misses) += 1;
          auto provided = cache->provide(programs[name], device, Instant::max());
          REQUIRE(provided);
          if ((provided->tier == CacheTier::memory) != hit) FAIL("seed " << seed << " step " << step);
          if (hold) held.emplace_back(name, provided->executable);
        }
      }
      Names expected;
      Bytes bytes;
      for (const Model::Entry& e : model.entries) expected.push_back(e.name + "@d"), bytes += e.bytes;
      const CacheMetrics counted = metrics(*cache);
      if (cache->contents() != expected || counted.bytes != bytes || counted.kernels != expected.size() ||
          counted.evictions != model.evictions || counted.hits != hits || counted.misses != misses ||
          *device->alive != static_cast<int>(expected.size())) {
        INFO("seed " << seed << " step " << step);
        CHECK(cache->contents() == expected);
        CHECK(counted.bytes == bytes);
        CHECK(counted.evictions == model.evictions);
        CHECK(counted.hits == hits);
        CHECK(counted.misses == misses);
        REQUIRE(*device->alive == static_cast<int>(expected.size()));
      }
    }
  }
}
