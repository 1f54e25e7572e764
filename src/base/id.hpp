#pragma once
/// The numbers of objects and threads.
#include <wye/base/detail/id.hpp>

#include <cstdint>

namespace wye::inline v0::base {

/// Returns an id that no other call in the process returns.
/// Threads: thread-safe.
/// Cost:    no allocation; one shared counter is changed once for 64 calls of a thread.
Id next_id() noexcept;

/// A base class of objects with an id of their own. Copies have another id.
struct Identified {
  Identified() noexcept = default;
  Identified(const Identified&) noexcept {}
  Identified& operator=(const Identified&) = delete;

  const Id id = next_id();
};

/// Returns a number of the calling thread that no other thread of the process has had, from 1.
std::uint64_t this_thread() noexcept;

}  // namespace wye::base
