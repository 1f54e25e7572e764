#pragma once
/// A device that creates objects, and a lane that a test controls.
#include <wye/device/buffer.hpp>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "device/backend.hpp"
#include "device/host_timeline.hpp"
#include "support/catch.hpp"
#include "support/device/test_kernels.hpp"

namespace wye::test {

using namespace device;
using namespace literals;

/// The null device: its buffers have sizes and numbers, and cost nothing.
inline std::shared_ptr<DeviceBase> null_device() {
  for (const BackendEntry& entry : backend_table())
    if (entry.name == "null") return entry.make()->discover({}).front().adapter->open().value();
  FAIL("there is no null backend");
  return nullptr;
}

inline std::shared_ptr<BufferBase> buffer_of(DeviceBase& device, Bytes bytes) {
  return device.create_buffer({.bytes = bytes, .account = nullptr}).value();
}

inline BufferRange range(const std::shared_ptr<BufferBase>& buffer, std::uint64_t offset,
                         std::uint64_t size) {
  return {buffer, Bytes{offset}, Bytes{size}};
}
inline BufferRange range(const std::shared_ptr<BufferBase>& buffer) {
  return {buffer, Bytes{}, buffer->bytes()};
}

/// A lane that keeps its submissions and completes them on request.
class ScriptedLane final : public LaneBase {
 public:
  explicit ScriptedLane(std::shared_ptr<DeviceBase> device)
      : LaneBase(std::move(device)),
        reached(std::make_shared<HostTimeline>(this->device().get())),
        timeline_(reached) {}

  struct Given {
    std::shared_ptr<const Recording> recording;
    std::size_t commands;
    std::vector<std::uint64_t> waits;
    bool caller_waits;
  };
  std::vector<Given> given;
  std::optional<Error> refuse;  ///< the answer to the next submission
  std::optional<Error> answer;  ///< to every wait
  std::uint64_t abandoned = 0;
  std::shared_ptr<HostTimeline> reached;

  /// Finishes the first `count` submissions that are in flight.
  void finish(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) given[finished_ + i].recording.reset();
    finished_ += count;
    REQUIRE(reached->signal(finished_));
  }

  Result<std::uint64_t> submit(const Submission& submission) override {
    if (refuse) return *std::exchange(refuse, std::nullopt);
    Given one{submission.recording, submission.recording->commands().size(), {}, submission.caller_waits};
    for (const TimelinePoint& point : submission.waits) one.waits.push_back(point.value);
    given.push_back(std::move(one));
    return given.size();
  }
  Result<void> wait(std::uint64_t value, Instant) override {
    if (answer) return *answer;
    if (finished_ < value) finish(value - finished_);
    return {};
  }
  void abandon() noexcept override { ++abandoned; }
  const std::shared_ptr<Timeline>& timeline() const noexcept override { return timeline_; }

 private:
  std::shared_ptr<Timeline> timeline_;
  std::size_t finished_ = 0;
};

}  // namespace wye::test
