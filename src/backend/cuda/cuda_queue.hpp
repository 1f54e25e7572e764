#pragma once
/// What waits to be given to the streams of a device.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/gate.hpp"
#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

class CudaDevice;
struct CudaStream;
class CudaTimeline;
struct CudaEvent;
struct Flight;

/// An event, and the value that is reached with it.
struct Mark {
  std::uint64_t value = 0;
  std::shared_ptr<CudaEvent> event;
  explicit operator bool() const noexcept { return event != nullptr; }
};

/// Keeps the order between lanes. A stream can wait for what another stream has been given, and for nothing else: waiting
/// for an event that nobody has recorded is no wait at all. So a submission that waits for a value nobody has submitted,
/// or for the host's, is parked here until it has come, and given to its stream by whoever brought it.
/// Threads: thread-safe. The lock is not held while the driver is called: who gives something to a stream says so first.
class CudaQueue {
 public:
  explicit CudaQueue(CudaDevice& device) : device_(device) {}

  /// Whether a submission with these waits may be given to its stream at once, by the thread of its lane.
  /// Errors: the failure of the lane, or of what it waits for.
  Result<bool> ready(const CudaStream& stream, std::span<const device::TimelinePoint> waits);
  /// Says that a flight of `stream` was given to it, and gives what waited for that.
  void given(CudaStream& stream, const Flight& flight);
  /// Parks a flight until it can be given, which may be at once.
  /// Errors: the failure of the lane; then nothing is parked.
  Result<void> park(std::shared_ptr<CudaStream> stream, Flight& flight);
  /// Fails a lane: no more values will come.
  void fail(CudaStream& stream, Error error);
  /// Moves a timeline of the host, and gives what waited for it.
  Result<void> signal(CudaTimeline& timeline, std::uint64_t value);
  /// Waits until `value` has been given to a stream, or reached where the host moves the timeline.
  Result<void> wait_scheduled(CudaTimeline& timeline, std::uint64_t value, Instant until);
  /// What is behind `value`, which was given; nothing where it has been reached.
  Mark mark_of(CudaTimeline& timeline, std::uint64_t value);
  /// The first mark that is not known to be reached; nothing where all are.
  Mark first_mark(CudaTimeline& timeline) noexcept;
  /// Says that a lane has ended, when nobody gives to its stream any more.
  void close(CudaStream& stream);
  /// Drops what is parked and wakes who waits: the device is lost.
  void give_up() noexcept;

 private:
  static bool scheduled(std::span<const device::TimelinePoint> waits);
  static const Error* hopeless(std::span<const device::TimelinePoint> waits);
  /// Notes that `flight` was given.
  void schedule(CudaStream& stream, const Flight& flight);
  static void drop_reached(CudaTimeline& timeline) noexcept;
  void fail_locked(CudaStream& stream, Error error);
  /// Gives whatever has become ready, as long as there is something. `lock` is released meanwhile.
  void advance(base::Lock& lock);

  CudaDevice& device_;
  std::mutex mutex_;
  base::Gate changed_;
  std::vector<std::shared_ptr<CudaStream>> parked_;  // streams with something parked
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
