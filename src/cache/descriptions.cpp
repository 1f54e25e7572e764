#include "cache/descriptions.hpp"

#include <algorithm>
#include <utility>

#include "base/gate.hpp"
#include "kernel/description.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

// What `ShaderCache::find_or_build` says is kept.
constexpr std::size_t most_kept = 256;
constexpr Bytes most_size{16ull << 20};

}  // namespace

Descriptions::List::iterator Descriptions::find(const KernelDescription& description, std::uint64_t sample) {
  return std::find_if(kept_.begin(), kept_.end(), [&](const Kept& one) {
    return one.described.sample == sample && kernel::say_the_same(*one.described.description, description);
  });
}

Result<Described> Descriptions::find_or_make(const KernelDescription& description, std::uint64_t sample) {
  {
    const base::Lock lock(mutex_);
    if (const auto found = find(description, sample); found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return found->described;
    }
  }
  auto made = AnyKernel::make(description);
  if (!made) return std::move(made).error();
  const Bytes size = kernel::size_of(description);
  List leaving, entering;
  entering.push_back(
      {{sample, std::make_shared<const KernelDescription>(description), made->program()}, size});
  Described described = entering.front().described;

  const base::Lock lock(mutex_);
  if (const auto other = find(description, sample); other != kept_.end())
    return other->described;  // another thread was faster
  kept_.splice(kept_.begin(), entering);
  size_ += size;
  while (kept_.size() > most_kept || size_ > most_size) {
    size_ -= kept_.back().size;
    leaving.splice(leaving.end(), kept_, std::prev(kept_.end()));
  }
  return described;
}

void Descriptions::clear() {
  List leaving;
  const base::Lock lock(mutex_);
  leaving.swap(kept_);
  size_ = {};
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
