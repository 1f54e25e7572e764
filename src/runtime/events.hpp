#pragma once
/// The events of the journal, as those of the application.
#include <wye/runtime/event.hpp>

#include <chrono>
#include <memory>
#include <string_view>

#include "base/journal.hpp"

namespace wye::inline v0::runtime {

struct Subscribed {
  std::shared_ptr<base::Journal> journal;
  base::Subscription subscription;
};

inline double milliseconds(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }
/// Returns "high".
std::string_view name_of(MemoryPressure::Level level) noexcept;

/// Returns an event as the application sees it. It has views of `event`.
Event shown(const base::Event& event) noexcept;

}  // namespace wye::runtime
