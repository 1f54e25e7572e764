#pragma once
/// Numbers of jobs, leases, contexts and builds.
#include <wye/base/config.hpp>

#include <compare>
#include <cstdint>

namespace wye::inline v0 {

/// Identifies a job, a lease, a context or a build. No two of them in a process have the same id,
/// also not in different runtimes. Ids are not ordered by time.
struct Id {
  std::uint64_t number = 0;  ///< 0: no id
  constexpr explicit operator bool() const noexcept { return number != 0; }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

}  // namespace wye
