#pragma once
/// Evidence on a timeline.
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// One observation.
struct Evidence {
  float timestamp = 0;  ///< in the unit of `TimelineOptions::now`
  float importance = 0;
  std::uint32_t category = 0;
  float relevance = 0;
};

/// The place of an observation on the timeline, and its remaining importance.
struct TimelinePoint {
  float position = 0;    ///< its timestamp
  float importance = 0;  ///< its remaining importance
  float relevance = 0;
  std::uint32_t category = 0;
};

struct TimelineOptions {
  float now = 1.0f;    ///< the timestamp with undiminished importance
  float decay = 2.0f;  ///< per unit of time, zero or more
};

/// Places each piece of evidence: importance times exp(-decay |now - timestamp|), the rest as it is.
/// Shape:   as many points as pieces of evidence, any number.
/// Bound:   (4 + 4 x) 2^-23 of the importance's exact value, x being decay |now - timestamp|. If x > 87, the result is 0,
///          also for an infinite importance. A NaN timestamp or importance gives NaN.
/// Bits:    the same device gives the same bits.
/// Errors:  invalid_argument (sizes that differ; a decay that is negative, infinite or NaN; a now that is not finite).
WYE_API Job timeline(Read<Evidence> evidence, Write<TimelinePoint> points, TimelineOptions options = {});

namespace reference {
/// Returns the remaining importance of each observation, in float64, on the calling thread.
WYE_API std::vector<double> timeline(std::span<const Evidence> evidence, TimelineOptions options = {});
}  // namespace reference

}  // namespace wye::workloads
