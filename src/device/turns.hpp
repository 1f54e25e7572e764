#pragma once
/// Who brings the values of a timeline that two devices have.
#include <wye/base/result.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace device {

/// What lanes of two devices have promised each other. A value comes when a lane of the other device gets to it; where that
/// device is lost, or the lane fails, it never does, and no driver tells who waits. So each value is promised by a point of the
/// lane that brings it, and who waits looks now and then whether the promises can still be kept. One that cannot is kept by the
/// host: it raises the timeline, and who went on because of that finds the reason here.
/// Threads: thread-safe.
class Turns {
 public:
  /// `timeline` can be raised by the host (`Timeline::signal`), and outlives this.
  explicit Turns(Timeline& timeline) : timeline_(timeline) {}
  Turns(const Turns&) = delete;
  /// Says that `value` comes when `by`, of a lane's own timeline, is reached.
  void promise(std::uint64_t value, TimelinePoint by);
  /// Whether a promise is still to be kept, after a look at all of them.
  bool open();
  /// Why `value` was brought by the host alone; nothing where it was not.
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
  /// Takes a promise off the list; whether it was still there.
  bool settle(std::uint64_t value, const Error* why);
  Timeline& timeline_;
  mutable std::mutex mutex_;
  std::vector<Promise> promises_;
  std::vector<Broken> broken_;
};

}  // namespace device
}  // namespace v0
}  // namespace wye
