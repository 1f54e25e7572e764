#pragma once
/// Replays a trace: in the cache itself, and in the plainest form of the policies to compare it
/// with. Each kernel takes one place. A request for a kernel that is not cached inserts it.
#include <wye/cache/shader_cache.hpp>

#include <cstdint>

#include "traces/trace.hpp"

namespace wye_bench {

/// How many requests were found.
struct Outcome {
  std::uint64_t hits = 0;
  std::uint64_t hits_after_start = 0;  ///< of the second half: it begins with what the first half has left
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// In percent of all requests, and of those of the second half.
double hit_rate(const Outcome& outcome, const Trace& trace);
double hit_rate_after_start(const Outcome& outcome, const Trace& trace);

/// A ShaderCache, on a device that does nothing.
Outcome in_cache(const Trace& trace, std::uint32_t room, wye::Eviction eviction);

/// What has been there longest goes.
Outcome in_fifo(const Trace& trace, std::uint32_t room);
/// What was used longest ago goes.
Outcome in_lru(const Trace& trace, std::uint32_t room);
/// Of what was used once, and then of what was used again, which has up to 80 % of the room, what
/// was used longest ago goes. What exceeds that share begins anew.
/// Source: Karedla, Love, Wherry: Caching Strategies to Improve Disk System Performance, IEEE
///         Computer 27 (3), 1994.
Outcome in_slru(const Trace& trace, std::uint32_t room);
/// What is needed again last goes: nobody who does not know the future finds more.
/// Source: Belady: A Study of Replacement Algorithms for a Virtual-Storage Computer, IBM Systems
///         Journal 5 (2), 1966.
Outcome in_belady(const Trace& trace, std::uint32_t room);

}  // namespace wye_bench
