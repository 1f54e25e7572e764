#include "scheduler/trials.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "device/provider.hpp"

namespace wye::inline v0::scheduler {
namespace {

constexpr std::uint32_t runs_each = 3, runs_to_compare = 2;
constexpr std::size_t most_trials = 4096;

std::string in_milliseconds(Duration d) {
  return base::text("{:.3g} ms", std::chrono::duration<double, std::milli>(d).count());
}

}  // namespace

std::uint32_t size_class(std::uint64_t n) noexcept {
  if (n < 2) return 0;
  const auto octave = static_cast<std::uint32_t>(std::bit_width(n)) - 1;
  const std::uint64_t two_bits = octave < 2 ? n << (2 - octave) : n >> (octave - 2);
  return octave * 4 + static_cast<std::uint32_t>(two_bits & 3);
}

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

Trial::Trial(const detail::Programs& programs, const device::DeviceBase& device) {
  for (const std::size_t i : variants_on(device, programs))
    variants_.push_back({.program = i, .name = std::string(programs[i]->name())});
}

Trial::Measured& Trial::variant_of(std::size_t program) {
  return *std::find_if(variants_.begin(), variants_.end(),
                       [&](const Measured& variant) { return variant.program == program; });
}

std::size_t Trial::usable() const {
  return static_cast<std::size_t>(
      std::count_if(variants_.begin(), variants_.end(), [](const Measured& v) { return !v.why; }));
}

/// Returns whether a variant that is not excluded has a run left.
bool Trial::has_run_left(const Measured& variant) const {
  if (variant.selected >= runs_each) return false;
  if (variant.runs < runs_to_compare) return true;
  return std::none_of(variants_.begin(), variants_.end(), [&](const Measured& other) {
    return !other.why && other.runs >= runs_to_compare && other.best < variant.best / 2;
  });
}

/// Returns whether a variant has a run left.
bool Trial::is_open() const {
  return usable() > 1 && std::any_of(variants_.begin(), variants_.end(),
                                     [&](const Measured& v) { return !v.why && has_run_left(v); });
}

Trial::Selection Trial::select(bool may_try) {
  const std::lock_guard lock(mutex_);
  if (usable() == 0)
    for (Measured& variant : variants_) variant.why.reset();
  const bool tries = may_try && is_open();
  Measured* next = nullptr;
  for (Measured& variant : variants_) {
    if (variant.why || (tries && !has_run_left(variant))) continue;
    const bool before = !next || (tries ? variant.selected < next->selected : variant.best < next->best);
    if (before) next = &variant;
  }
  next->selected += tries ? 1 : 0;
  return Selection{next->program, tries};
}

void Trial::record(std::size_t program, Duration time) {
  const std::lock_guard lock(mutex_);
  Measured& variant = variant_of(program);
  ++variant.runs;
  variant.best = std::min(variant.best, time);
}

void Trial::exclude(std::size_t program, Error why) {
  const std::lock_guard lock(mutex_);
  variant_of(program).why = std::move(why);
}

VariantChoice Trial::choice(std::size_t program) const {
  const std::lock_guard lock(mutex_);
  VariantChoice choice;
  choice.is_measuring = is_open();
  for (const Measured& variant : variants_)
    choice.variants.push_back({.kernel = variant.name,
                               .selected = variant.program == program,
                               .runs = variant.runs,
                               .least_time = variant.runs > 0 ? std::optional(variant.best) : std::nullopt,
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

std::shared_ptr<Trial> Trials::of(const Call& call, std::size_t device, const device::DeviceBase& base) {
  const detail::Programs& programs = base::programs_of(call);
  Key key{device, programs.size()};
  key.reserve(key.size() + programs.size() + 1 + call.arguments().size());
  for (std::size_t i = 0; i < programs.size(); ++i) key.push_back(programs[i]->id());
  key.push_back(size_class(call.items().count()));
  for (std::size_t i = 0; i < call.arguments().size(); ++i)
    key.push_back(size_class(call.arguments()[i].bytes().count));
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = trials_.find(key); found != trials_.end()) return found->second;
  }
  auto trial = std::make_shared<Trial>(programs, base);  // may open a compiler
  const std::lock_guard lock(mutex_);
  if (trials_.size() >= most_trials) trials_.clear();
  return trials_.try_emplace(std::move(key), std::move(trial)).first->second;
}

}  // namespace wye::scheduler
