#include "cache/descriptions.hpp"

#include <algorithm>
#include <utility>

#include "base/gate.hpp"
#include "base/internals.hpp"
#include "kernel/description.hpp"

namespace wye::inline v0::cache {

namespace {

// `ShaderCache::find_or_build` documents both.
constexpr std::size_t most_kept = 256;
constexpr Bytes most_size{16ull << 20};

}  // namespace

std::shared_ptr<const device::Program> Descriptions::find(const KernelDescription& description,
                                                          std::uint64_t sample) {
  const auto [first, last] = kept_.equal_range(sample);
  for (auto one = first; one != last; ++one) {
    if (!kernel::equal(one->second.description, description)) continue;
    one->second.used = ++uses_;
    return one->second.program;
  }
  return nullptr;
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
  BySample added, dropped;  // both end without the lock
  added.emplace(sample, Kept{description, base::program_of(*made), kernel::size_of(description)});

  const base::Lock lock(mutex_);
  if (auto other = find(description, sample)) return other;  // another thread has made it meanwhile
  Kept& newest = added.begin()->second;
  kept_.merge(added);
  newest.used = ++uses_;
  size_ += newest.size;
  while (kept_.size() > most_kept || size_ > most_size) {
    const auto oldest = std::min_element(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) {
      return a.second.used < b.second.used;
    });
    size_ -= oldest->second.size;
    dropped.insert(kept_.extract(oldest));
  }
  return base::program_of(*made);
}

void Descriptions::clear() {
  BySample dropped;
  const base::Lock lock(mutex_);
  dropped.swap(kept_);
  size_ = {};
}

}  // namespace wye::cache
