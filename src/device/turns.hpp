#pragma once
/// Promises for the values of a timeline that two devices share.
#include <wye/base/result.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace device {

/// Promises between lanes of two devices. A lane of the other device reaches a value. If that device is lost, or the lane
/// fails, it never does, and no driver tells the waiting thread. So a point of the lane that reaches the value promises it,
/// and a thread that waits checks the promises from time to time. If a promise cannot be kept, the host signals the timeline,
/// and the lane that continues because of that finds the reason here.
/// Threads: thread-safe.
class Turns {
 public:
  /// `timeline` can be raised by the host (`Timeline::signal`), and outlives this.
  explicit Turns(Timeline& timeline) : timeline_(timeline) {}
  Turns(const Turns&) = delete;
  /// Promises that `value` is reached when `by`, a point of a lane's own timeline, is reached.
  void promise(std::uint64_t value, TimelinePoint by);
  /// Checks all promises. Returns whether one is still open.
  bool open();
  /// Returns why the host had to signal `value`; nothing if it did not.
  std::optional<Error> broken(std::uint64_t value) const;

 private:
  struct Promise {
    std::uint64_t value = 0;
    TimelinePoint by;
  };
  struct Broken {
    std::uint64_t value = 0;
    Error why;
  };
  /// Removes a promise. Returns whether it was there.
  bool settle(std::uint64_t value, const Error* why);
  Timeline& timeline_;
  mutable std::mutex mutex_;
  std::vector<Promise> promises_;
  std::vector<Broken> broken_;
};

}  // namespace device
}  // namespace v0
}  // namespace wye
