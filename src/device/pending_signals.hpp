#pragma once
/// Pending signals of a timeline that two devices share.
#include <wye/base/result.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "device/timeline.hpp"

namespace wye::inline v0::device {

/// The pending signals of a timeline that lanes of two devices share. If the signaling device is
/// lost, or its lane fails, the driver of the waiting device does not report it. So each pending
/// signal has a point of the signaling lane, and waiting threads poll these points. If a point
/// fails, the host signals the timeline, and the waiting lane finds the failure here.
/// Threads: thread-safe.
class PendingSignals {
 public:
  /// The host can signal `timeline`, which outlives this object.
  explicit PendingSignals(Timeline& timeline) : timeline_(timeline) {}
  PendingSignals(const PendingSignals&) = delete;
  /// Adds the signal of `value`, which is made when `by`, a point of the signaling lane's own
  /// timeline, is reached.
  void add(std::uint64_t value, TimelinePoint by);
  /// Polls all signals, removes those whose points are reached or have failed, and makes failed
  /// signals from the host. Returns whether one is still pending.
  bool any_pending();
  /// Returns the failure because of which the host signaled `value`; nothing if a lane signaled it.
  std::optional<Error> failure_of(std::uint64_t value) const;

 private:
  struct Signal {
    std::uint64_t value = 0;
    TimelinePoint by;
  };
  struct Failed {
    std::uint64_t value = 0;
    Error failure;
  };
  /// Removes a signal, and keeps its failure if there is one. Returns whether it was pending.
  bool remove(std::uint64_t value, const Error* failure);
  Timeline& timeline_;
  mutable std::mutex mutex_;
  std::vector<Signal> signals_;
  std::vector<Failed> failed_;
};

}  // namespace wye::device
