// The cost of finding a kernel that is ready: by its handle, by its text, and on disk.
#include <benchmark/benchmark.h>
#include <wye/cache/cache_directory.hpp>
#include <wye/wye.hpp>

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "glsl.hpp"
#include "processes.hpp"

namespace {

using Scale = wye::Kernel<wye::ReadWrite<float>, float>;

std::vector<Scale> kernels(std::size_t n) {
  std::vector<Scale> made;
  for (std::size_t i = 0; i < n; ++i)
    made.push_back(Scale::make({.name = "scale",
                                .sources = {wye::host([](wye::Range range, std::span<float> x, float s) {
                                  for (std::uint64_t k : range) x[k] *= s;
                                })}})
                       .value());
  return made;
}

/// A cache of 64 kernels, for all threads of a benchmark.
struct Wye {
  wye::ContextPool pool = wye::ContextPool::open({.backends = {"cpu"}}).value();
  wye::ShaderCache cache = wye::ShaderCache::open().value();
  wye::Device device = pool.devices()[0];
  std::vector<Scale> all = kernels(64);

  static Wye& shared() {
    static Wye one;
    return one;
  }
  auto find(std::size_t i) { return cache.find_or_build(all[i], device); }
};

/// By handles, which each thread has of its own.
struct WyeByHandle {
  static WyeByHandle& shared() {
    static WyeByHandle one;
    return one;
  }
  wye::Result<const wye::Executable*> find(std::size_t i) {
    thread_local std::vector<wye::KernelHandle> handles;
    while (handles.size() <= i)
      handles.push_back(
          Wye::shared().cache.handle(Wye::shared().all[handles.size()], Wye::shared().device).value());
    return handles[i].find_or_build();
  }
};

/// The least that a host would write by itself: it returns handles and knows the least recently
/// used one.
struct MutexAroundAMap {
  using Key = const void*;  // of a kernel, on the only device
  struct Entry {
    std::shared_ptr<int> executable;
    std::list<Key>::iterator place;
  };
  std::mutex mutex;
  std::unordered_map<Key, Entry> map;
  std::list<Key> order;
  std::vector<int> all = std::vector<int>(64);

  static MutexAroundAMap& shared() {
    static MutexAroundAMap one;
    return one;
  }
  std::shared_ptr<int> find(std::size_t i) {
    const std::lock_guard lock(mutex);
    const auto [found, is_new] = map.try_emplace(&all[i]);
    if (is_new) {
      order.push_front(&all[i]);
      found->second = {std::make_shared<int>(), order.begin()};
    }
    order.splice(order.begin(), order, found->second.place);
    return found->second.executable;
  }
};

/// Nothing is found: a handle is copied and dropped, which every answer by value costs.
struct Handle {
  std::shared_ptr<int> executable = std::make_shared<int>();
  static Handle& shared() {
    static Handle one;
    return one;
  }
  std::shared_ptr<int> find(std::size_t) { return executable; }
};

/// Whether an answer matches the request; handles always do.
template <class Answer>
bool found(const Answer& answer) {
  if constexpr (requires { answer.has_value(); }) return answer.has_value();
  return true;
}

/// Every thread uses `Count` kernels in turns, beginning at a place of its own.
template <class Who, std::size_t Count, bool Apart>
void hit(benchmark::State& state) {
  Who& who = Who::shared();
  const std::size_t first = Apart ? static_cast<std::size_t>(state.thread_index()) * 8 : 0;
  for (std::size_t i = 0; i < Count; ++i)
    if (!found(who.find(first + i)))
      state.SkipWithError("nothing is found; this build may have no GLSL compiler");
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(who.find(first + i));
    i = i + 1 == Count ? 0 : i + 1;
  }
}

// By a handle: the same kernel again, four in turns, two threads with one each.
BENCHMARK(hit<WyeByHandle, 1, false>)->Name("cache_handle/wye")->UseRealTime()->MinTime(0.1);
BENCHMARK(hit<MutexAroundAMap, 1, false>)
    ->Name("cache_handle/mutex_around_a_map")
    ->UseRealTime()
    ->MinTime(0.1);
BENCHMARK(hit<WyeByHandle, 4, false>)->Name("cache_handle_in_turns/wye")->UseRealTime()->MinTime(0.1);
BENCHMARK(hit<MutexAroundAMap, 4, false>)
    ->Name("cache_handle_in_turns/mutex_around_a_map")
    ->UseRealTime()
    ->MinTime(0.1);
BENCHMARK(hit<WyeByHandle, 1, false>)
    ->Name("cache_handle_2_threads/wye")
    ->Threads(2)
    ->UseRealTime()
    ->MinTime(0.1);
BENCHMARK(hit<MutexAroundAMap, 1, false>)
    ->Name("cache_handle_2_threads/mutex_around_a_map")
    ->Threads(2)
    ->UseRealTime()
    ->MinTime(0.1);

// By the kernel: one thread: the same kernel again; four in turns.
BENCHMARK(hit<Wye, 1, false>)->Name("cache_hit/wye")->UseRealTime()->MinTime(0.1);
BENCHMARK(hit<MutexAroundAMap, 1, false>)->Name("cache_hit/mutex_around_a_map")->UseRealTime()->MinTime(0.1);
BENCHMARK(hit<Handle, 1, false>)->Name("cache_hit/copied_handle")->UseRealTime()->MinTime(0.1);
BENCHMARK(hit<Wye, 4, false>)->Name("cache_hit_in_turns/wye")->UseRealTime()->MinTime(0.1);
BENCHMARK(hit<MutexAroundAMap, 4, false>)
    ->Name("cache_hit_in_turns/mutex_around_a_map")
    ->UseRealTime()
    ->MinTime(0.1);

// Two threads: the same kernel; one each; four each.
BENCHMARK(hit<Wye, 1, false>)->Name("cache_hit_2_threads/wye")->Threads(2)->UseRealTime()->MinTime(0.1);
BENCHMARK(hit<MutexAroundAMap, 1, false>)
    ->Name("cache_hit_2_threads/mutex_around_a_map")
    ->Threads(2)
    ->UseRealTime()
    ->MinTime(0.1);
BENCHMARK(hit<Handle, 1, false>)
    ->Name("cache_hit_2_threads/copied_handle")
    ->Threads(2)
    ->UseRealTime()
    ->MinTime(0.1);
BENCHMARK(hit<Wye, 1, true>)->Name("cache_hit_2_threads_apart/wye")->Threads(2)->UseRealTime()->MinTime(0.1);
BENCHMARK(hit<MutexAroundAMap, 1, true>)
    ->Name("cache_hit_2_threads_apart/mutex_around_a_map")
    ->Threads(2)
    ->UseRealTime()
    ->MinTime(0.1);
BENCHMARK(hit<Wye, 4, true>)
    ->Name("cache_hit_2_threads_in_turns/wye")
    ->Threads(2)
    ->UseRealTime()
    ->MinTime(0.1);
BENCHMARK(hit<MutexAroundAMap, 4, true>)
    ->Name("cache_hit_2_threads_in_turns/mutex_around_a_map")
    ->Threads(2)
    ->UseRealTime()
    ->MinTime(0.1);

// Eight threads that meet.
BENCHMARK(hit<Wye, 1, false>)->Name("cache_hit_8_threads/wye")->Threads(8)->UseRealTime()->MinTime(0.1);
BENCHMARK(hit<MutexAroundAMap, 1, false>)
    ->Name("cache_hit_8_threads/mutex_around_a_map")
    ->Threads(8)
    ->UseRealTime()
    ->MinTime(0.1);

// 4 KiB of source text: a kernel is found by its text. The descriptions are other ones than those
// it was made of; or they are made of the text each time.

struct WyeByText {
  std::string text = wye_bench::glsl_4KiB(0);
  wye::ContextPool pool = wye::ContextPool::open({.backends = {"null"}}).value();
  wye::ShaderCache cache = wye::ShaderCache::open().value();
  wye::Device device = pool.devices()[0];
  std::vector<wye::detail::KernelDescription> asked;

  wye::detail::KernelDescription describe() const {
    return Scale::describe({.name = "scale", .sources = {wye::Glsl{.text = text}}});
  }
  WyeByText() {
    (void)cache.find_or_build(describe(), device).has_value();
    for (int i = 0; i < 4; ++i) asked.push_back(describe());
  }
  static WyeByText& shared() {
    static WyeByText one;
    return one;
  }
  auto find(std::size_t i) { return cache.find_or_build(asked[i], device); }
};

struct WyeDescribed {
  static WyeDescribed& shared() {
    static WyeDescribed one;
    return one;
  }
  auto find(std::size_t) {
    WyeByText& wye = WyeByText::shared();
    return wye.cache.find_or_build(wye.describe(), wye.device);
  }
};

/// As run-time compilers of one process keep what they compiled: by a hash of the text and the text
/// itself.
struct MutexAroundAMapOfTexts {
  std::string text = wye_bench::glsl_4KiB(0);
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<int>> map;

  static MutexAroundAMapOfTexts& shared() {
    static MutexAroundAMapOfTexts one;
    return one;
  }
  std::shared_ptr<int> find(std::size_t) {
    const std::lock_guard lock(mutex);
    auto& executable = map[text];
    if (!executable) executable = std::make_shared<int>();
    return executable;
  }
};

BENCHMARK(hit<WyeByText, 4, false>)->Name("cache_hit_text_4KiB/wye")->UseRealTime()->MinTime(0.1);
BENCHMARK(hit<WyeDescribed, 1, false>)
    ->Name("cache_hit_text_4KiB/wye_described")
    ->UseRealTime()
    ->MinTime(0.1);
BENCHMARK(hit<MutexAroundAMapOfTexts, 1, false>)
    ->Name("cache_hit_text_4KiB/mutex_around_a_map")
    ->UseRealTime()
    ->MinTime(0.1);
BENCHMARK(hit<WyeByText, 4, false>)
    ->Name("cache_hit_text_4KiB_2_threads/wye")
    ->Threads(2)
    ->UseRealTime()
    ->MinTime(0.1);
BENCHMARK(hit<MutexAroundAMapOfTexts, 1, false>)
    ->Name("cache_hit_text_4KiB_2_threads/mutex_around_a_map")
    ->Threads(2)
    ->UseRealTime()
    ->MinTime(0.1);

// Kernels that are stored and no longer in memory, on a device that makes nothing of them: claim,
// mark, read and check.

struct WyeOnDisk {
  wye_bench::Folder folder;
  wye::ContextPool pool = wye::ContextPool::open({.backends = {"null"}}).value();
  wye::ShaderCache cache =
      wye::ShaderCache::open({.directory = (folder.path() / "cache").string(), .kernels = 0}).value();
  wye::Device device = pool.devices()[0];
  std::vector<Scale> all;
  std::vector<std::string> files;

  WyeOnDisk() {
    for (unsigned i = 0; i < 16; ++i) {
      const std::string name = "scale " + std::to_string(i);
      all.push_back(
          Scale::make({.name = name, .sources = {wye::Glsl{.text = wye_bench::glsl_4KiB(i)}}}).value());
      (void)cache.find_or_build(all.back(), device).has_value();
    }
    const auto stored = wye::list_cache((folder.path() / "cache").string());
    if (!stored) return;
    for (const wye::StoredFile& file : *stored)
      files.push_back((folder.path() / "cache" / file.path).string());
  }
  static WyeOnDisk& shared() {
    static WyeOnDisk one;
    return one;
  }
  auto find(std::size_t i) { return cache.find_or_build(all[i], device); }
};

/// The bytes of the same files, unchecked.
struct ReadFile {
  static ReadFile& shared() {
    static ReadFile one;
    return one;
  }
  std::optional<std::string> find(std::size_t i) {
    const std::vector<std::string>& files = WyeOnDisk::shared().files;
    if (i >= files.size()) return std::nullopt;
    return wye_bench::read_file(files[i]);
  }
};

BENCHMARK(hit<WyeOnDisk, 4, true>)->Name("cache_disk_hit/wye")->UseRealTime()->MinTime(0.1);
BENCHMARK(hit<ReadFile, 4, true>)->Name("cache_disk_hit/read_file")->UseRealTime()->MinTime(0.1);
BENCHMARK(hit<WyeOnDisk, 4, true>)
    ->Name("cache_disk_hit_2_threads/wye")
    ->Threads(2)
    ->UseRealTime()
    ->MinTime(0.1);
BENCHMARK(hit<ReadFile, 4, true>)
    ->Name("cache_disk_hit_2_threads/read_file")
    ->Threads(2)
    ->UseRealTime()
    ->MinTime(0.1);

}  // namespace
