#pragma once
/// A device whose memory a test sets. Its buffers are memory of the host, and its lanes copy and
/// fill at once.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "device/host_timeline.hpp"

namespace wye::test {

class MemoryDevice final : public device::DeviceBase {
 public:
  /// `silicon` is the last byte of its UUID; with 0 the device has a silicon of its own.
  explicit MemoryDevice(std::string id, Bytes memory = Bytes{1ull << 30}, std::uint8_t silicon = 0)
      : DeviceBase(describe(std::move(id), memory, silicon)) {}

  std::atomic<int> refuse_buffers{0};  ///< as many buffers are refused for want of memory
  std::atomic<int> refuse_lanes{0};    ///< as many lanes are not made
  std::atomic<int> attempts{0};        ///< times that a buffer was asked for
  std::atomic<bool> is_lost{false};
  std::atomic<Bytes> others{};            ///< memory that other programs use
  std::function<void()> after_copy = {};  ///< called after each copy from buffer to buffer

  std::span<const std::string_view> languages() const noexcept override { return {}; }
  MemoryInfo memory() override {
    const Bytes held = silicon()->account()->held(), used = held + others.load();
    return {
        .total = info().memory, .in_use = held, .available = info().memory - std::min(info().memory, used)};
  }
  const Error* ended_by() const noexcept override { return is_lost.load() ? &lost_ : nullptr; }

  Result<std::shared_ptr<device::BufferBase>> create_buffer(const device::BufferRequest& request) override {
    ++attempts;
    if (auto fitting = device::fits(request.bytes, info()); !fitting) return std::move(fitting).error();
    auto charge = this->charge(request);
    if (!charge) return std::move(charge).error();
    if (refuse_buffers > 0) {
      --refuse_buffers;
      return Error(Errc::out_of_memory, "The script has no memory now.");
    }
    return std::shared_ptr<device::BufferBase>(
        std::make_shared<Memory>(shared_from_this(), request.bytes, *std::move(charge)));
  }
  /// Has all buffers moved.
  Bytes empty_allocations(const std::function<void()>& move) noexcept override {
    is_moving_ = true;
    move();
    is_moving_ = false;
    return {};
  }
  Result<std::shared_ptr<device::ExecutableBase>> create_executable(const device::Artefact&) override {
    return Error(Errc::unsupported, "A scripted device runs no kernels.");
  }
  Result<std::unique_ptr<device::LaneBase>> create_lane(const device::LaneOptions&) override {
    if (refuse_lanes > 0) {
      --refuse_lanes;
      return Error(Errc::out_of_memory, "The script has no lane now.");
    }
    return std::unique_ptr<device::LaneBase>(std::make_unique<CopyLane>(shared_from_this()));
  }
  Result<std::shared_ptr<device::Timeline>> create_timeline() override {
    return std::shared_ptr<device::Timeline>(std::make_shared<device::HostTimeline>(this));
  }

 private:
  class Memory final : public device::BufferBase {
   public:
    Memory(std::shared_ptr<DeviceBase> device, Bytes bytes, device::MemoryCharge charge)
        : BufferBase(std::move(device), bytes, std::move(charge)), memory_(bytes.count) {}
    std::uint64_t address() const noexcept override { return 0; }
    std::byte* host() const noexcept override { return const_cast<std::byte*>(memory_.data()); }
    bool is_to_move() const noexcept override {
      return static_cast<const MemoryDevice&>(*device()).is_moving_;
    }

   private:
    std::vector<std::byte> memory_;
  };

  class CopyLane final : public device::LaneBase {
   public:
    explicit CopyLane(std::shared_ptr<DeviceBase> device)
        : LaneBase(std::move(device)),
          reached_(std::make_shared<device::HostTimeline>(this->device().get(),
                                                          device::HostTimeline::SignaledBy::lane)),
          timeline_(reached_) {}
    Result<std::uint64_t> submit(const device::Submission& submission) override {
      if (const Error* lost = device()->lost()) return *lost;
      using Kind = device::Command::Kind;
      for (const device::Command& command : submission.recording->commands()) {
        const auto operands = submission.recording->operands(command);
        const auto at = [&](std::size_t i) {
          auto& buffer = static_cast<device::BufferBase&>(*operands[i].object);
          return buffer.host() + operands[i].offset * operands[i].size;
        };
        const std::uint64_t bytes = operands[0].count * operands[0].size;
        if (command.kind == Kind::upload) std::memcpy(at(0), command.source, bytes);
        if (command.kind == Kind::download) std::memcpy(command.target, at(0), bytes);
        if (command.kind == Kind::copy) {
          std::memcpy(at(1), at(0), bytes);
          const auto& after = static_cast<MemoryDevice&>(*this->device()).after_copy;
          if (after) after();
        }
        if (command.kind == Kind::fill)
          for (std::uint64_t i = 0; i < bytes; i += 4) std::memcpy(at(0) + i, &command.pattern, 4);
      }
      if (auto raised = reached_->reach(++last_); !raised) return std::move(raised).error();
      return last_;
    }
    Result<void> wait(std::uint64_t value, Instant until) override { return reached_->wait(value, until); }
    void abandon() noexcept override {}
    const std::shared_ptr<device::Timeline>& timeline() const noexcept override { return timeline_; }

   private:
    std::shared_ptr<device::HostTimeline> reached_;
    std::shared_ptr<device::Timeline> timeline_;  // the same, as the contract names it
    std::uint64_t last_ = 0;
  };

  static AdapterInfo describe(std::string id, Bytes memory, std::uint8_t silicon) {
    AdapterInfo info;
    info.backend = id.substr(0, id.find(':'));
    info.name = "scripted " + id;
    info.id = std::move(id);
    info.memory = info.limits.buffer = memory;
    info.device_uuid.back() = silicon;
    info.usable = true;
    return info;
  }

  std::atomic<bool> is_moving_{false};
  const Error lost_{Errc::device_lost, "The scripted device was lost."};
};

/// Gives back what a test says, and counts the calls.
class ScriptedReclaimable final : public device::Reclaimable {
 public:
  IdleMemory kind() const noexcept override { return IdleMemory::executables; }
  Bytes reclaim(const device::DeviceBase&, Bytes wanted) override {
    ++calls;
    asked = wanted;
    held.clear();
    return std::exchange(gives, Bytes{});
  }
  std::atomic<int> calls{0};
  Bytes asked;
  Bytes gives;                                            ///< the answer to the next call
  std::vector<std::shared_ptr<device::BufferBase>> held;  ///< freed by it
};

}  // namespace wye::test
