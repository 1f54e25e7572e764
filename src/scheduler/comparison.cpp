#include "scheduler/comparison.hpp"

#include <algorithm>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "device/provider.hpp"

namespace wye::inline v0::scheduler {
namespace {

constexpr std::uint32_t runs_each = 3, runs_to_compare = 2;
constexpr std::size_t most_comparisons = 4096;

std::string in_milliseconds(Duration d) {
  return base::text("{:.3g} ms", std::chrono::duration<double, std::milli>(d).count());
}

}  // namespace

std::vector<std::size_t> variants_on(const device::DeviceBase& device, const detail::Programs& programs) {
  std::vector<std::size_t> variants;
  for (std::size_t i = 0; i < programs.size(); ++i)
    if (programs[i]->current().runs_on(device)) variants.push_back(i);
  std::stable_partition(variants.begin(), variants.end(),
                        [&](std::size_t i) { return programs[i]->current().names_adapters(); });
  if (variants.empty()) variants.push_back(0);
  return variants;
}

std::optional<std::size_t> only_variant_on(const device::DeviceBase& device,
                                           const detail::Programs& programs) {
  if (programs.size() == 1) return 0;
  std::optional<std::size_t> only;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (!programs[i]->current().runs_on(device)) continue;
    if (only) return std::nullopt;
    only = i;
  }
  return only;
}

Comparison::Comparison(const detail::Programs& programs, const device::DeviceBase& device,
                       const TimeBook::Key& kind, TimeBook& times)
    : times_(times) {
  for (const std::size_t i : variants_on(device, programs)) {
    Measured& variant = variants_.emplace_back();
    variant.program = i;
    variant.name = programs[i]->name();
    // Variants may be made of the same sources, with functions of one type.
    const auto number_of = [&](std::uint64_t kernel) { return combine(combine(kernel, i), kind.kernels); };
    variant.kind = {kind, number_of(stored_number_of_kernel(*programs[i]))};
    variant.kind.key.kernels = number_of(number_of_kernel(*programs[i]));
  }
  read_times();
}

void Comparison::read_times() noexcept {
  for (Measured& variant : variants_) variant.times = times_.find_call(variant.kind);
}

Comparison::Measured& Comparison::variant_of(std::size_t program) {
  return *std::find_if(variants_.begin(), variants_.end(),
                       [&](const Measured& variant) { return variant.program == program; });
}

std::size_t Comparison::usable() const {
  return static_cast<std::size_t>(
      std::count_if(variants_.begin(), variants_.end(), [](const Measured& v) { return !v.why; }));
}

/// Returns whether a variant that is not excluded has a run left.
bool Comparison::has_run_left(const Measured& variant) const {
  if (std::max(variant.selected, variant.times.count) >= runs_each) return false;
  if (variant.times.count < runs_to_compare) return true;
  return std::none_of(variants_.begin(), variants_.end(), [&](const Measured& other) {
    return !other.why && other.times.count >= runs_to_compare && other.best() < variant.best() / 2;
  });
}

/// Returns whether a variant has a run left.
bool Comparison::is_open() const {
  return usable() > 1 && std::any_of(variants_.begin(), variants_.end(),
                                     [&](const Measured& v) { return !v.why && has_run_left(v); });
}

Comparison::Selection Comparison::select(bool may_try) {
  const std::lock_guard lock(mutex_);
  if (usable() == 0)
    for (Measured& variant : variants_) variant.why.reset();
  read_times();
  const bool tries = may_try && is_open();
  Measured* next = nullptr;
  for (Measured& variant : variants_) {
    if (variant.why || (tries && !has_run_left(variant))) continue;
    const bool before = !next || (tries ? variant.selected < next->selected : variant.best() < next->best());
    if (before) next = &variant;
  }
  next->selected += tries ? 1 : 0;
  return Selection{next->program, tries};
}

void Comparison::record(std::size_t program, Duration time) {
  const std::lock_guard lock(mutex_);
  times_.note_call(variant_of(program).kind, time);
  read_times();
}

void Comparison::exclude(std::size_t program, Error why) {
  const std::lock_guard lock(mutex_);
  variant_of(program).why = std::move(why);
}

VariantChoice Comparison::choice(std::size_t program) const {
  const std::lock_guard lock(mutex_);
  VariantChoice choice;
  choice.is_measuring = is_open();
  for (const Measured& variant : variants_)
    choice.variants.push_back(
        {.kernel = variant.name,
         .selected = variant.program == program,
         .runs = variant.times.count,
         .least_time = variant.times.count > 0 ? std::optional(variant.best()) : std::nullopt,
         .excluded = variant.why});
  return choice;
}

std::string text(const VariantChoice& choice) {
  std::string taken, times, excluded;
  std::size_t usable = 0;
  for (const Variant& variant : choice.variants) {
    if (variant.selected) taken = variant.kernel;
    usable += variant.excluded ? 0u : 1u;
    if (variant.excluded)
      excluded += base::text(" Kernel '{}' is not used: {}", variant.kernel, variant.excluded->sentence());
    else if (variant.least_time)
      times += base::text("{}'{}' {}", times.empty() ? "" : ", ", variant.kernel,
                          in_milliseconds(*variant.least_time));
  }
  if (usable < 2) return excluded;
  return base::text(" Kernel '{}' was selected from {} variants{}: {}.", taken, usable,
                    choice.is_measuring ? ", which are still being measured" : "",
                    times.empty() ? "none was measured yet" : "minimum times are " + times) +
         excluded;
}

std::shared_ptr<Comparison> Comparisons::of(const Call& call, std::size_t device, std::uint16_t group,
                                            const device::DeviceBase& base) {
  const detail::Programs& programs = base::programs_of(call);
  Key key{device, programs.size()};
  key.reserve(key.size() + programs.size() + 1 + call.arguments().size());
  for (std::size_t i = 0; i < programs.size(); ++i) key.push_back(number_of_kernel(*programs[i]));
  key.push_back(size_class(call.items().count()));
  Bytes bytes;
  for (std::size_t i = 0; i < call.arguments().size(); ++i) {
    const Bytes operand = call.arguments()[i].bytes();
    key.push_back(size_class(operand.count));
    bytes += operand;
  }
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = comparisons_.find(key); found != comparisons_.end()) return found->second;
  }
  TimeBook::Key kind{.size_class = static_cast<std::uint16_t>(size_class(bytes.count)), .group = group};
  for (std::size_t i = 2 + programs.size(); i < key.size(); ++i) kind.kernels = combine(kind.kernels, key[i]);
  auto comparison = std::make_shared<Comparison>(programs, base, kind, times_);  // may open a compiler
  const std::lock_guard lock(mutex_);
  if (comparisons_.size() >= most_comparisons) {
    comparisons_.clear();
    times_.forget_calls();
  }
  return comparisons_.try_emplace(std::move(key), std::move(comparison)).first->second;
}

}  // namespace wye::scheduler
