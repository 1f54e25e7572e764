#pragma once
/// A device whose failures a test scripts. It runs host functions on memory of its own, so operands
/// are copied to it and back as they are for a GPU.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process.hpp"
#include "device/artefact.hpp"
#include "device/buffer.hpp"
#include "device/device.hpp"
#include "device/executable.hpp"
#include "device/host_timeline.hpp"
#include "device/lane_base.hpp"
#include "device/native.hpp"
#include "device/recording.hpp"
#include "device/stamps.hpp"

namespace wye::test {

class ScriptedDevice final : public device::DeviceBase {
 public:
  /// The calls that a script can fail, in the order in which a job makes them.
  enum class Step { create_executable, create_lane, create_buffer, submit, wait };
  static constexpr std::array steps{Step::create_executable, Step::create_lane, Step::create_buffer,
                                    Step::submit, Step::wait};
  using Script = std::function<std::optional<Error>(Step)>;

  /// `id` is "vulkan:0": the backend is the part before the colon.
  /// Devices with one `silicon`, unless it is 0, are on one processor. Without a `name` no two
  /// devices are equal.
  explicit ScriptedDevice(const std::string& id, AdapterType type = AdapterType::discrete,
                          Features features = {}, std::uint8_t silicon = 0, const std::string& name = {})
      : DeviceBase(adapter(id, type, features, silicon, name)),
        lost_(Errc::device_lost, "Device '" + id + "' was lost.") {}

  /// Sets what each step does first, on the thread that makes it; an error fails the step. Set
  /// before the device is used.
  void set_script(Script script) { script_ = std::move(script); }
  /// Fails every `step` with `code`.
  void fail_at(Step step, Errc code) {
    set_script([step, code](Step now) -> std::optional<Error> {
      if (now != step) return std::nullopt;
      return Error(code, "The script fails this step.");
    });
  }
  /// From now on submissions stay in flight until `release`. Commands run when they are submitted,
  /// as before.
  void hold() {
    const std::lock_guard lock(mutex_);
    holds_ = true;
  }
  /// The same, but the commands of a submission run when it is released, with the bytes that its
  /// uploads had before.
  void hold_commands() {
    const std::lock_guard lock(mutex_);
    holds_ = holds_commands_ = true;
  }
  /// Completes the first `count` submissions in flight, and holds later ones as before.
  void release_first(std::size_t count) {
    for (; count > 0; --count) (void)release_at(0);
  }
  /// Completes the submission in flight with an index in their order. Returns false, and changes
  /// nothing, while it waits for another one: the one before it on its lane, or that of a point.
  bool release_at(std::size_t index) {
    Held one;
    {
      const std::lock_guard lock(mutex_);
      if (!held_.at(index).may_run()) return false;
      one = std::move(held_[index]);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    one.complete();
    return true;
  }
  /// Returns how many submissions waited for others that were in flight when they were submitted.
  int waits_in_flight() const { return waits_in_flight_; }
  /// Completes the submissions in flight, in their order, on this thread, and holds no further one.
  /// Submissions that are made meanwhile follow them: a lane never completes the later one first.
  void release() {
    for (;;) {
      Held first;
      {
        const std::lock_guard lock(mutex_);
        if (held_.empty()) {
          holds_ = holds_commands_ = false;
          return;
        }
        first = std::move(held_.front());
        held_.erase(held_.begin());
      }
      first.complete();
    }
  }
  /// Returns how many submissions are in flight.
  std::size_t held() const {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  /// A planted mistake: once the device is lost, it does nothing and reports success.
  void hide_loss() { hides_loss_ = true; }
  /// Loses the device. Submissions in flight fail.
  void lose() {
    is_lost_ = true;
    if (hides_loss_) return release();
    std::vector<Held> held;
    {
      const std::lock_guard lock(mutex_);
      held.swap(held_);
    }
    for (const Held& one : held) one.timeline->fail(lost_);
  }
  /// Returns how often a step was made.
  int count(Step step) const { return counts_[static_cast<std::size_t>(step)]; }
  int steps_made() const {
    int sum = 0;
    for (const auto& count : counts_) sum += count;
    return sum;
  }
  int buffers_alive() const { return buffers_alive_; }
  int lanes_alive() const { return lanes_alive_; }
  /// Returns how many lanes were destroyed with work in flight on a device that was not lost.
  int lanes_cut_off() const { return lanes_cut_off_; }

  std::span<const std::string_view> languages() const noexcept override {
    static constexpr std::array<std::string_view, 1> host = {"host"};
    return host;
  }
  MemoryInfo memory() override { return {}; }
  /// From now on lanes of this device can copy from buffers of other devices. Set before the device
  /// is used.
  void reach_others() { peers_.emplace(); }
  device::NativeInterop* native_interop() noexcept override { return peers_ ? &*peers_ : nullptr; }
  /// Gives the device a clock, on which the commands between two stamps take `span`. Set before the
  /// device is used.
  void give_clock(Duration span) { span_ = span; }
  /// Returns how many stamps were created, also in vain.
  int stamps_asked() const { return stamps_asked_; }
  Result<std::shared_ptr<device::StampsBase>> create_stamps() override {
    ++stamps_asked_;
    if (!span_) return DeviceBase::create_stamps();
    return std::shared_ptr<device::StampsBase>(std::make_shared<Stamps>(shared_from_this(), *span_));
  }
  /// Sets the values that the monitor of the processor returns.
  void set_monitor(Monitoring values) {
    const std::lock_guard lock(mutex_);
    monitor_ = std::move(values);
  }
  Monitoring monitor() override {
    const std::lock_guard lock(mutex_);
    ++readings_;
    return monitor_;
  }
  /// Returns how often the monitor was read.
  int readings() const {
    const std::lock_guard lock(mutex_);
    return readings_;
  }
  Result<std::shared_ptr<device::BufferBase>> create_buffer(const device::BufferRequest& request) override {
    if (auto failed = make(Step::create_buffer)) return *failed;
    auto charge = this->charge(request);
    if (!charge) return std::move(charge).error();
    return std::shared_ptr<device::BufferBase>(
        std::make_shared<Buffer>(shared_from_this(), request.bytes, *std::move(charge), buffers_alive_));
  }
  Result<std::shared_ptr<device::ExecutableBase>> create_executable(
      const device::Artefact& artefact) override {
    if (auto failed = make(Step::create_executable)) return *failed;
    return std::shared_ptr<device::ExecutableBase>(
        std::make_shared<Executable>(shared_from_this(), artefact));
  }
  Result<std::unique_ptr<device::LaneBase>> create_lane(const device::LaneOptions&) override {
    if (auto failed = make(Step::create_lane)) return *failed;
    return std::unique_ptr<device::LaneBase>(std::make_unique<Lane>(*this));
  }
  Result<std::shared_ptr<device::Timeline>> create_timeline() override {
    return std::shared_ptr<device::Timeline>(std::make_shared<device::HostTimeline>(this));
  }

 private:
  class Buffer final : public device::BufferBase {
   public:
    Buffer(std::shared_ptr<DeviceBase> device, Bytes bytes, device::MemoryCharge charge,
           std::atomic<int>& alive)
        : BufferBase(std::move(device), bytes, std::move(charge)), memory_(bytes.count + 1), alive_(alive) {
      ++alive_;
    }
    ~Buffer() override { --alive_; }
    std::uint64_t address() const noexcept override { return 0; }
    std::byte* host() const noexcept override { return const_cast<std::byte*>(memory_.data()); }

   private:
    std::vector<std::byte> memory_;
    std::atomic<int>& alive_;  // the device's
  };

  class Stamps final : public device::StampsBase {
   public:
    Stamps(std::shared_ptr<DeviceBase> device, Duration span) : StampsBase(std::move(device)), span_(span) {}

   private:
    std::optional<device::StampedTimes> times() noexcept override {
      return device::StampedTimes{.begin = {}, .end = span_, .clock = device::StampClock::device};
    }
    const Duration span_;
  };

  /// Access to the buffers of other devices, and to nothing else.
  class Peers final : public device::NativeInterop {
   public:
    NativeDevice native_device() override { return {}; }
    NativeMemory native_memory(device::BufferBase&) override { return {}; }
    Result<NativePoint> native_point(device::Timeline&, std::uint64_t) override { return none(); }
    Result<void> follow(std::uint64_t, device::Timeline&, std::uint64_t) override { return none(); }
    Result<std::shared_ptr<device::BufferBase>> adopt_memory(const NativeMemory&, Release) override {
      return none();
    }
    Result<std::shared_ptr<device::Timeline>> adopt_timeline(const NativePoint&) override { return none(); }
    Result<device::SharedBufferBase> create_shared(Bytes) override { return none(); }
    Result<std::shared_ptr<device::BufferBase>> open_shared(device::SharedMemory&, Bytes) override {
      return none();
    }
    Result<device::SharedTimeline> create_shared_timeline() override { return none(); }
    Result<std::shared_ptr<device::Timeline>> open_shared_timeline(device::SharedTimeline&) override {
      return none();
    }
    bool reaches(const DeviceBase&) const noexcept override { return true; }

   private:
    static Error none() { return Error(Errc::unsupported, "A scripted device has no driver."); }
  };

  class Executable final : public device::ExecutableBase {
   public:
    Executable(std::shared_ptr<DeviceBase> device, device::Artefact artefact)
        : ExecutableBase(std::move(device), std::move(artefact)) {}
    Bytes bytes() const noexcept override { return {}; }
  };

  /// A submission in flight.
  struct Held {
    std::shared_ptr<device::HostTimeline> timeline;  // of its lane
    std::uint64_t value = 0;
    std::vector<device::TimelinePoint> waits;
    std::function<void()> run;  // null: its commands have run

    bool may_run() const {
      return timeline->reached() + 1 >= value &&
             std::all_of(waits.begin(), waits.end(),
                         [](const auto& point) { return point.timeline->reached() >= point.value; });
    }
    void complete() const {
      if (run) run();
      (void)timeline->reach(value).has_value();
    }
  };

  /// Runs a submission when it is submitted, but for its downloads: `wait` makes them.
  class Lane final : public device::LaneBase {
   public:
    explicit Lane(ScriptedDevice& device)
        : LaneBase(device.shared_from_this()),
          device_(device),
          reached_(std::make_shared<device::HostTimeline>(&device, device::HostTimeline::SignaledBy::lane)),
          timeline_(reached_) {
      ++device_.lanes_alive_;
    }
    ~Lane() override {
      device_.lanes_cut_off_ += !device_.is_lost_ && reached_->reached() < last_;
      reached_->fail(Error(Errc::closed, "A lane of a scripted device has ended."));
      --device_.lanes_alive_;
    }
    Result<std::uint64_t> submit(const device::Submission& submission) override {
      if (auto failed = device_.make(Step::submit)) return *failed;
      for (const device::TimelinePoint& point : submission.waits)
        device_.waits_in_flight_ += point.timeline->reached() < point.value;
      std::function<void()> late;
      if (device_.holds_commands_)
        late = run_later(submission);
      else if (!device_.only_pretends())
        for (const device::Command& command : submission.recording->commands())
          run(command, submission.recording->operands(command), command.source, submission.stop);
      pending_ = submission.recording;
      {
        const std::lock_guard lock(device_.mutex_);
        if (device_.ended_by()) return device_.lost_;  // `lose` has failed the submissions before this one
        if (device_.holds_) {
          device_.held_.push_back(
              {reached_, ++last_, {submission.waits.begin(), submission.waits.end()}, std::move(late)});
          return last_;
        }
      }
      if (late) late();
      if (auto moved = reached_->reach(++last_); !moved) return std::move(moved).error();
      return last_;
    }
    Result<void> wait(std::uint64_t value, Instant until) override {
      if (auto failed = device_.make(Step::wait)) return *failed;
      if (auto reached = reached_->wait(value, until); !reached) return reached;
      if (pending_ && !device_.only_pretends())
        for (const device::Command& command : pending_->commands())
          if (command.kind == device::Command::Kind::download)
            move(command.target, start_of(pending_->operands(command)[0]), command.host_bytes.count);
      pending_.reset();
      return {};
    }
    void abandon() noexcept override { pending_.reset(); }
    const std::shared_ptr<device::Timeline>& timeline() const noexcept override { return timeline_; }

   private:
    static std::byte* start_of(const Operand& operand) {
      return device::buffer_of(operand)->host() + operand.offset * operand.size;
    }
    static void move(std::byte* target, const std::byte* source, std::uint64_t bytes) {
      if (bytes != 0) std::memmove(target, source, bytes);
    }
    /// Returns a function that runs the commands of a submission. Host functions see no stop: their
    /// job may have ended.
    static std::function<void()> run_later(const device::Submission& submission) {
      std::vector<std::vector<std::byte>> uploads;
      for (const device::Command& command : submission.recording->commands())
        if (command.kind == device::Command::Kind::upload)
          uploads.emplace_back(command.source, command.source + command.host_bytes.count);
      return [recording = submission.recording, uploads = std::move(uploads)] {
        auto upload = uploads.begin();
        for (const device::Command& command : recording->commands())
          run(command, recording->operands(command),
              command.kind == device::Command::Kind::upload ? (upload++)->data() : nullptr, {});
      };
    }
    static void run(const device::Command& command, std::span<const Operand> operands,
                    const std::byte* source, const StopToken& stop) {
      using Kind = device::Command::Kind;
      if (command.kind == Kind::upload) move(start_of(operands[0]), source, command.host_bytes.count);
      if (command.kind == Kind::copy)
        move(start_of(operands[1]), start_of(operands[0]), operands[0].bytes().count);
      if (command.kind == Kind::fill)
        for (std::uint64_t at = 0; at < operands[0].bytes().count; at += 4)
          std::memcpy(start_of(operands[0]) + at, &command.pattern, 4);
      if (command.kind != Kind::dispatch) return;
      std::vector<Operand> in_place(operands.begin(), operands.end());
      for (Operand& operand : in_place) {
        if (operand.kind != Operand::Kind::buffer) continue;
        operand.data = start_of(operand);
        operand.kind = Operand::Kind::host;
        operand.object.reset();
      }
      command.executable->artefact().host->run(Range{0, command.items.count(), command.items}, in_place,
                                               stop);
    }

    ScriptedDevice& device_;
    std::shared_ptr<const device::Recording> pending_;
    std::shared_ptr<device::HostTimeline> reached_;
    std::shared_ptr<device::Timeline> timeline_;  // the same, as the contract names it
    std::uint64_t last_ = 0;
  };

  static AdapterInfo adapter(const std::string& id, AdapterType type, Features features, std::uint8_t silicon,
                             const std::string& name) {
    constexpr std::uint64_t any = ~std::uint64_t{0};
    AdapterInfo info;
    info.id = id;
    info.backend = id.substr(0, id.find(':'));
    info.name = name.empty() ? "scripted " + id : name;
    info.type = type;
    info.device_uuid.back() = silicon;
    info.limits = {.workgroup = {any, any, any},
                   .workgroup_invocations = any,
                   .groups = {any, any, any},
                   .buffer = Bytes{any},
                   .descriptor_range = Bytes{any},
                   .shared_memory = Bytes{any},
                   .parameter_bytes = Bytes{any},
                   .bound_buffers = ~std::uint32_t{0},
                   .offset_alignment = 1,
                   .subgroup_size = 1};
    info.features = features;
    info.usable = true;
    return info;
  }
  const Error* ended_by() const noexcept override { return is_lost_ && !hides_loss_ ? &lost_ : nullptr; }
  bool only_pretends() const noexcept { return is_lost_ && hides_loss_; }
  std::optional<Error> make(Step step) {
    ++counts_[static_cast<std::size_t>(step)];
    if (is_lost_ && !hides_loss_) return lost_;
    return script_ ? script_(step) : std::nullopt;
  }

  Script script_;
  std::optional<Peers> peers_;
  std::optional<Duration> span_;  // between stamps; nothing: no clock
  const Error lost_;
  std::atomic<bool> is_lost_{false}, hides_loss_{false};
  mutable std::mutex mutex_;
  bool holds_ = false;
  std::atomic<bool> holds_commands_{false};
  Monitoring monitor_;
  int readings_ = 0;
  std::vector<Held> held_;
  std::array<std::atomic<int>, steps.size()> counts_{};
  std::atomic<int> waits_in_flight_{0}, stamps_asked_{0};
  std::atomic<int> buffers_alive_{0}, lanes_alive_{0}, lanes_cut_off_{0};
};

}  // namespace wye::test
