#pragma once
/// The state behind public handles, for wye's own sources and tests.
#include <wye/base/config.hpp>

#include <utility>

namespace wye::inline v0 {

namespace detail {
struct Internals {
  template <class Handle>
  static const auto& state(const Handle& handle) noexcept {
    return handle.state_;
  }
  template <class Point>
  static auto value(const Point& point) noexcept {
    return point.value_;
  }
  template <class Callable>
  static const auto& programs(const Callable& callable) noexcept {
    return callable.programs_;
  }
  template <class Job, class Type>
  static void set_type(Job& job, Type type) noexcept {
    job.type_ = type;
  }
  template <class Job>
  static void release_arguments(Job& job) noexcept {
    job.release_arguments();
  }
  template <class Device, class... Arguments>
  static auto allocate(const Device& device, Arguments&&... arguments) {
    return device.allocate(std::forward<Arguments>(arguments)...);
  }
  template <class Handle, class... Arguments>
  static Handle make(Arguments&&... arguments) {
    return Handle(std::forward<Arguments>(arguments)...);
  }
};
}  // namespace detail

namespace base {

/// Returns the pointer to the state behind a handle: the DeviceBase of a Device, the Pool of a
/// ContextPool.
template <class Handle>
const auto& state_of(const Handle& handle) noexcept {
  return wye::detail::Internals::state(handle);
}
/// Allocates a buffer of an element type that is known at run time.
template <class Device, class... Arguments>
auto allocate(const Device& device, Arguments&&... arguments) {
  return wye::detail::Internals::allocate(device, std::forward<Arguments>(arguments)...);
}
/// Returns the value of a SyncPoint on its timeline.
template <class Point>
auto value_of(const Point& point) noexcept {
  return wye::detail::Internals::value(point);
}
/// Returns the programs of a kernel or call.
template <class Callable>
const auto& programs_of(const Callable& callable) noexcept {
  return wye::detail::Internals::programs(callable);
}
/// Sets the type of a job.
template <class Job, class Type>
void set_type(Job& job, Type type) noexcept {
  wye::detail::Internals::set_type(job, type);
}
/// Releases the objects that the arguments of a job keep alive.
template <class Job>
void release_arguments(Job& job) noexcept {
  wye::detail::Internals::release_arguments(job);
}
/// Returns the program of a kernel or call, without its variants.
template <class Callable>
const auto& program_of(const Callable& callable) noexcept {
  return wye::detail::Internals::programs(callable)[0];
}

}  // namespace base
}  // namespace wye
