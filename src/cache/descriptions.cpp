#include "cache/descriptions.hpp"

#include <iterator>
#include <utility>

#include "base/gate.hpp"
#include "base/internals.hpp"
#include "kernel/description.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

// `ShaderCache::find_or_build` documents both.
constexpr std::size_t most_kept = 256;
constexpr Bytes most_size{16ull << 20};

}  // namespace

std::shared_ptr<const device::Program> Descriptions::find(const KernelDescription& description,
                                                          std::uint64_t sample) {
  const auto [first, last] = by_sample_.equal_range(sample);
  for (auto one = first; one != last; ++one) {
    if (!kernel::equal(*one->second->description, description)) continue;
    kept_.splice(kept_.begin(), kept_, one->second);
    return one->second->program;
  }
  return nullptr;
}

void Descriptions::drop_oldest(List& dropped) {
  const auto oldest = std::prev(kept_.end());
  const auto [first, last] = by_sample_.equal_range(oldest->sample);
  for (auto one = first; one != last; ++one)
    if (one->second == oldest) {
      by_sample_.erase(one);
      break;
    }
  size_ -= oldest->size;
  dropped.splice(dropped.end(), kept_, oldest);
}

Result<std::shared_ptr<const device::Program>> Descriptions::find_or_make(
    const KernelDescription& description) {
  const bool complete = kernel::is_complete(description);
  const std::uint64_t sample = complete ? kernel::sample(description) : 0;
  if (complete) {
    const base::Lock lock(mutex_);
    if (auto found = find(description, sample)) return found;
  }
  auto made = AnyKernel::make(description);
  if (!made) return std::move(made).error();
  if (!complete) return base::program_of(*made);
  List added, dropped;
  added.push_back({sample, std::make_unique<const KernelDescription>(description), base::program_of(*made),
                   kernel::size_of(description)});

  const base::Lock lock(mutex_);
  if (auto other = find(description, sample)) return other;  // another thread has made it meanwhile
  by_sample_.emplace(sample, added.begin());
  size_ += added.front().size;
  kept_.splice(kept_.begin(), added);
  while (kept_.size() > most_kept || size_ > most_size) drop_oldest(dropped);
  return base::program_of(*made);
}

void Descriptions::clear() {
  List dropped;
  const base::Lock lock(mutex_);
  dropped.swap(kept_);
  by_sample_.clear();
  size_ = {};
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
