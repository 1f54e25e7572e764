#include "device/checked.hpp"

#include <functional>

#include "device/doubles.hpp"
#include "device/lane.hpp"
#include "device/sequence.hpp"

namespace wye::test {
namespace {

/// A device with limits that cannot use host memory.
class NarrowDevice final : public DeviceBase {
 public:
  NarrowDevice() : DeviceBase(describe()) {}
  std::span<const std::string_view> languages() const noexcept override { return {}; }
  MemoryInfo memory() override { return {}; }
  const Error* ended_by() const noexcept override { return nullptr; }
  Result<std::shared_ptr<BufferBase>> create_buffer(const BufferRequest& request) override {
    struct NarrowBuffer final : BufferBase {
      NarrowBuffer(std::shared_ptr<DeviceBase> device, const BufferRequest& r)
          : BufferBase(std::move(device), r.bytes) {}
      std::uint64_t address() const noexcept override { return 0; }
      std::byte* host() const noexcept override { return nullptr; }
    };
    return std::shared_ptr<BufferBase>(std::make_shared<NarrowBuffer>(shared_from_this(), request));
  }
  Result<std::shared_ptr<ExecutableBase>> create_executable(const Artefact& artefact) override {
    struct NarrowExecutable final : ExecutableBase {
      NarrowExecutable(std::shared_ptr<DeviceBase> device, const Artefact& a)
          : ExecutableBase(std::move(device), a) {}
      Bytes bytes() const noexcept override { return {}; }
    };
    return std::shared_ptr<ExecutableBase>(std::make_shared<NarrowExecutable>(shared_from_this(), artefact));
  }
  Result<std::unique_ptr<LaneBase>> create_lane(const LaneOptions&) override {
    return std::unique_ptr<LaneBase>(std::make_unique<ScriptedLane>(shared_from_this()));
  }
  Result<std::shared_ptr<Timeline>> create_timeline() override {
    return std::shared_ptr<Timeline>(std::make_shared<HostTimeline>(this));
  }

 private:
  static AdapterInfo describe() {
    AdapterInfo info;
    info.id = "narrow:0";
    info.limits.groups = {10, 5, 3};
    info.limits.descriptor_range = 64_B;
    info.limits.offset_alignment = 16;
    info.limits.bound_buffers = 2;
    return info;
  }
};

/// A kernel with two buffers and a number, over workgroups of 8 items.
Artefact kernel(Passing::Kind passing) {
  Artefact artefact;
  artefact.kernel = "blend";
  artefact.schema = {
      {buffer_slot("from", Access::read), buffer_slot("to", Access::read_write), scalar_slot("by")}};
  artefact.passing = {{.kind = passing}, {.kind = passing}, {.kind = Passing::Kind::bytes}};
  artefact.tile = {8, 2, 2};
  return artefact;
}

struct CheckedFixture {
  std::shared_ptr<DeviceBase> device = std::make_shared<NarrowDevice>();
  std::shared_ptr<DeviceBase> other = null_device();
  std::shared_ptr<BufferBase> a = buffer_of(*device, 128_B), b = buffer_of(*device, 128_B);
  std::shared_ptr<BufferBase> foreign = buffer_of(*other, 128_B);
  std::shared_ptr<ExecutableBase> blend = device->create_executable(kernel(Passing::Kind::span)).value();
  std::shared_ptr<ExecutableBase> bound =
      device->create_executable(kernel(Passing::Kind::descriptor)).value();
  std::vector<std::byte> memory = std::vector<std::byte>(128);

  static Buffer words(const std::shared_ptr<BufferBase>& base) {
    return Buffer(base, ElementType::uint32, 4);
  }
  Operand part(const std::shared_ptr<BufferBase>& base, std::uint64_t first, std::uint64_t count) const {
    return words(base).operand(Access::read_write, first, count);
  }
  Result<void> check(const std::function<void(Recording&)>& record) const {
    Recording recording;
    record(recording);
    recording.close();
    return wye::device::check(recording, *device);
  }
  template <class... A>
  Result<void> dispatch(const std::shared_ptr<ExecutableBase>& executable, Extent3 items,
                        const A&... values) const {
    Arguments list;
    const auto operand = [](const auto& value) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Operand>)
        return value;
      else
        return wye::detail::argument(value);
    };
    (list.push_back(operand(values)), ...);
    return check([&](Recording& r) { r.dispatch(executable, list, items); });
  }
};

/// Checks that the result is an error whose sentence contains all of these words.
void refused(const Result<void>& answer, std::initializer_list<std::string_view> words,
             Errc code = Errc::invalid_argument) {
  REQUIRE_FALSE(answer);
  CHECK(answer.error() == code);
  for (std::string_view word : words) {
    INFO("'" << word << "' in: " << answer.error().sentence());
    CHECK(answer.error().sentence().find(word) != std::string::npos);
  }
  CHECK(answer.error().sentence().back() == '.');
}

}  // namespace

TEST_CASE("valid calls pass the checks", "[device]") {
  CheckedFixture f;
  CHECK(f.check([&](Recording& r) {
    r.upload(f.memory, range(f.a));
    r.copy(range(f.a, 0, 64), range(f.a, 64, 64));
    r.copy(range(f.a, 3, 5), range(f.b, 0, 5));
    r.fill(range(f.a, 4, 8), 1);
    r.fill(range(f.a, 128, 0), 1);
    r.download(range(f.a), f.memory);
    r.upload({}, range(f.a, 128, 0));
  }));
  CHECK(f.dispatch(f.blend, {80, 10, 6}, f.words(f.a), f.words(f.b), 7u));
  CHECK(f.dispatch(f.blend, {0, 10, 6}, f.words(f.a), f.words(f.b), 7u));
  CHECK(f.dispatch(f.blend, 8, f.part(f.a, 0, 16), f.part(f.a, 16, 16), 7u));
  CHECK(f.dispatch(f.bound, 8, f.part(f.a, 4, 16), f.part(f.b, 16, 16), 7u));
  CHECK(f.dispatch(f.blend, 8, Buffer(f.a, ElementType::opaque, 4), f.words(f.b), 7u));  // sizes agree
  CHECK(f.dispatch(f.blend, 8, f.words(f.a), f.words(f.b), Operand::of_bytes(std::span(f.memory).first(4))));
}

TEST_CASE("each invalid transfer is refused", "[device]") {
  CheckedFixture f;
  const auto half = std::span(f.memory).first(64);
  refused(f.check([&](Recording& r) { r.fill(range(nullptr, 0, 4), 1); }),
          {"fill", "no buffer", "'narrow:0'"});
  refused(f.check([&](Recording& r) { r.fill(range(f.foreign), 1); }), {"'null:0'", "'narrow:0'"});
  refused(f.check([&](Recording& r) { r.fill(range(f.a, 64, 68), 1); }),
          {"68 elements", "element 64", "128 bytes"});
  refused(f.check([&](Recording& r) { r.fill(range(f.a, ~std::uint64_t{0} - 3, 8), 1); }),
          {"exceeds", "128 bytes"});
  refused(f.check([&](Recording& r) { r.fill(range(f.a, 2, 4), 1); }), {"bytes 2 to 6", "4-byte"});
  refused(f.check([&](Recording& r) { r.fill(range(f.a, 4, 5), 1); }), {"bytes 4 to 9", "4-byte"});
  refused(f.check([&](Recording& r) { r.upload(half, range(f.a)); }), {"upload", "64 bytes", "128 bytes"});
  refused(f.check([&](Recording& r) { r.download(range(f.a), half); }),
          {"download", "64 bytes", "128 bytes"});
  refused(f.check([&](Recording& r) {
    r.upload({static_cast<std::byte*>(nullptr), 128}, range(f.a));
  }),
          {"null pointer"});
  refused(f.check([&](Recording& r) {
    r.download(range(f.a), {static_cast<std::byte*>(nullptr), 128});
  }),
          {"null pointer"});
  refused(f.check([&](Recording& r) { r.upload(f.memory, range(f.foreign)); }),
          {"Target of an upload", "'null:0'"});
  refused(f.check([&](Recording& r) { r.download(range(f.foreign), f.memory); }),
          {"Source of a download", "'null:0'"});
  refused(f.check([&](Recording& r) { r.copy(range(f.foreign), range(f.a)); }),
          {"Source of a copy", "'null:0'"});
  refused(f.check([&](Recording& r) { r.copy(range(f.a), range(f.foreign)); }),
          {"Target of a copy", "'null:0'"});
  refused(f.check([&](Recording& r) { r.copy(range(f.a, 0, 8), range(f.b, 0, 9)); }), {"8 bytes", "9 bytes"});
  refused(f.check([&](Recording& r) { r.copy(range(f.a, 0, 9), range(f.a, 8, 9)); }),
          {"bytes 0 to 9", "bytes 8 to 17"});
}

TEST_CASE("each invalid dispatch is refused", "[device]") {
  CheckedFixture f;
  const Buffer a = f.words(f.a), b = f.words(f.b);
  refused(f.dispatch(nullptr, 8, a, b, 1u), {"no executable", "'narrow:0'"});
  const auto theirs = f.other->create_executable(kernel(Passing::Kind::span)).value();
  refused(f.dispatch(theirs, 8, a, b, 1u), {"'blend'", "'null:0'", "'narrow:0'"});
  refused(f.dispatch(f.blend, 8, a, b), {"'blend'", "3 arguments", "2 were given", "scalar uint32 by"});
  refused(f.dispatch(f.blend, 8, a, b, 1u, 2u), {"3 arguments", "4 were given"});
  refused(f.dispatch(f.blend, 8, a, 1u, 1u), {"'to' (slot 1)", "a value", "a buffer"});
  refused(f.dispatch(f.blend, 8, a, b, b), {"'by' (slot 2)", "a buffer", "a scalar"});
  refused(f.dispatch(f.blend, 8, a, Operand{}, 1u), {"'to' (slot 1)", "nothing"});
  Operand scratch = Scratch<std::uint32_t>(8).operand(Access::read_write);
  refused(f.dispatch(f.blend, 8, a, scratch, 1u), {"'to' (slot 1)", "scratch memory"});
  refused(f.dispatch(f.blend, 8, a, b, 1.0f), {"'by' (slot 2)", "float32", "uint32"});
  refused(f.dispatch(f.blend, 8, a, b, std::uint64_t{1}), {"'by' (slot 2)", "8 bytes", "4 bytes"});
  refused(f.dispatch(f.blend, 8, Buffer(f.a, ElementType::float32, 4), b, 1u),
          {"'from' (slot 0)", "float32", "uint32"});
  refused(f.dispatch(f.blend, 8, Buffer(f.a, ElementType::opaque, 8), b, 1u),
          {"'from' (slot 0)", "8 bytes", "4 bytes"});
  refused(f.dispatch(f.blend, 8, a, b.operand(Access::read), 1u),
          {"'to' (slot 1)", "allows read", "read_write"});
  refused(f.dispatch(f.blend, 8, Buffer(nullptr, ElementType::uint32, 4), b, 1u),
          {"'from' (slot 0)", "no buffer"});
  refused(f.dispatch(f.blend, 8, f.words(f.foreign), b, 1u), {"'from' (slot 0)", "'null:0'", "'narrow:0'"});
  refused(f.dispatch(f.blend, 8, f.part(f.a, 20, 13), b, 1u),
          {"'from' (slot 0)", "13 elements", "element 20", "128 bytes"});
  refused(f.dispatch(f.blend, 8, f.part(f.a, 1, ~std::uint64_t{0} / 4 + 1), b, 1u),
          {"'from' (slot 0)", "exceeds"});
  refused(f.dispatch(f.blend, 8, a, a, 1u), {"'to' (slot 1)", "overlaps", "slot 0", "'blend'"});
  refused(f.dispatch(f.blend, 8, f.part(f.a, 0, 17), f.part(f.a, 16, 16), 1u), {"'to' (slot 1)", "overlaps"});
  std::vector<std::uint32_t> host(8);
  refused(f.dispatch(f.blend, 8, Operand::host_span(std::span(host), Access::read), b, 1u),
          {"'from' (slot 0)", "host memory", "'narrow:0'"}, Errc::unsupported);
}

TEST_CASE("a dispatch over any limit is refused", "[device]") {
  CheckedFixture f;
  const Buffer a = f.words(f.a), b = f.words(f.b);
  refused(f.dispatch(f.blend, {81, 1, 1}, a, b, 1u), {"'blend'", "in x", "11 workgroups", "(10)"},
          Errc::unsupported);
  refused(f.dispatch(f.blend, {1, 11, 1}, a, b, 1u), {"in y", "6 workgroups", "(5)"}, Errc::unsupported);
  refused(f.dispatch(f.blend, {1, 1, 7}, a, b, 1u), {"in z", "4 workgroups", "(3)"}, Errc::unsupported);
  refused(f.dispatch(f.bound, 8, a, f.part(f.b, 0, 8), 1u), {"'from' (slot 0)", "128 bytes", "64 bytes"},
          Errc::unsupported);
  refused(f.dispatch(f.bound, 8, f.part(f.a, 0, 8), f.part(f.b, 2, 8), 1u),
          {"'to' (slot 1)", "byte 8", "multiples of 16"}, Errc::unsupported);
  Artefact three = kernel(Passing::Kind::descriptor);
  three.schema.slots[2] = buffer_slot("mask", Access::read);
  three.passing[2].kind = Passing::Kind::descriptor;
  const auto wide = f.device->create_executable(three).value();
  refused(f.dispatch(wide, 8, f.part(f.a, 0, 8), f.part(f.b, 0, 8), f.part(f.a, 8, 8)),
          {"'blend'", "3 buffers", "bind 2"}, Errc::unsupported);
}

TEST_CASE("host memory is checked if the device can use it", "[device]") {
  const auto device = null_device();
  const auto add = device
                       ->create_executable(host_artefact(
                           "add", {{buffer_slot("x", Access::read), buffer_slot("y", Access::write)}}, {}))
                       .value();
  std::vector<std::uint32_t> host(16);
  const auto run = [&](std::span<std::uint32_t> x, std::span<std::uint32_t> y) {
    Recording recording;
    Arguments list;
    list.push_back(Operand::host_span(std::span<const std::uint32_t>(x), Access::read));
    list.push_back(Operand::host_span(y, Access::write));
    recording.dispatch(add, list, 8);
    recording.close();
    return check(recording, *device);
  };
  const std::span<std::uint32_t> all(host);
  CHECK(run(all.first(8), all.last(8)));
  refused(run(all.first(9), all.last(8)), {"'y' (slot 1)", "overlaps"});
  refused(run({static_cast<std::uint32_t*>(nullptr), 8}, all.last(8)), {"'x' (slot 0)", "null pointer"});
}

TEST_CASE("a recording that is open, or was changed after closing, is refused", "[device]") {
  CheckedFixture f;
  Recording recording;
  recording.fill(range(f.a), 1);
  refused(check(recording, *f.device), {"still open", "'narrow:0'"});
  recording.close();
  CHECK(check(recording, *f.device));
  recording.fill(range(f.a), 1);
  refused(check(recording, *f.device), {"changed after it was closed", "'narrow:0'"});
}

TEST_CASE("the checked lane refuses invalid calls and forwards valid ones", "[device]") {
  CheckedFixture f;
  auto* base = new ScriptedLane(f.device);
  const auto lane = checked(std::unique_ptr<LaneBase>(base));
  const auto own = f.device->create_timeline().value(), foreign = f.other->create_timeline().value();
  const auto recording = std::make_shared<Recording>();
  recording->fill(range(f.a), 1);
  recording->close();
  const auto submit = [&](std::shared_ptr<const Recording> what,
                          std::vector<TimelinePoint> waits) -> Result<void> {
    auto value = lane->submit({.recording = std::move(what), .waits = waits, .stop = {}});
    if (!value) return value.error();
    return {};
  };
  CHECK(lane->device() == f.device);
  CHECK(lane->timeline() == base->timeline());
  refused(submit(nullptr, {}), {"no recording", "'narrow:0'"});
  refused(submit(std::make_shared<Recording>(), {}), {"still open"});
  refused(submit(recording, {{nullptr, 1}}), {"null", "'narrow:0'"});
  refused(submit(recording, {{foreign, 1}}), {"another device", "'narrow:0'"});
  refused(submit(recording, {{lane->timeline(), 1}}), {"own lane (1)", "last: 0"});
  refused(lane->wait(1, Instant::max()), {"(1)", "not submitted", "last: 0"});
  for (const auto& timeline : {std::shared_ptr<Timeline>(), own, foreign}) {
    const TimelinePoint point{timeline, 1};
    Submission submission{.recording = recording, .waits = {}, .stop = {}};
    submission.signals = std::span(&point, 1);
    auto value = lane->submit(submission);
    REQUIRE_FALSE(value);
    refused(value.error(), {"signals", "not a foreign timeline", "'narrow:0'"});
  }
  CHECK(base->given.empty());
  CHECK(submit(recording, {{own, 9}}));
  CHECK(submit(recording, {{lane->timeline(), 1}}));
  REQUIRE(base->given.size() == 2);
  CHECK(base->given[0].waits == std::vector<std::uint64_t>{9});
  CHECK(lane->wait(2, Instant::max()));
  refused(lane->wait(3, Instant::max()), {"(3)", "last: 2"});
  lane->abandon();
  CHECK(base->abandoned == 1);
}

TEST_CASE("a lane of other rooms checks its submissions", "[device]") {
  CheckedFixture f;
  const auto lane = Lane::create(*f.device).value();
  lane->fill(range(f.foreign), 1);
  CHECK(lane->wait(Instant::max()).error() == Errc::invalid_argument);
}

TEST_CASE("an unchanged recording is checked once, and a changed one again", "[device]") {
  const auto device = null_device();
  const auto buffer = buffer_of(*device, 64_B);
  const auto lane = checked(std::make_unique<ScriptedLane>(device));
  SequenceState sequence(device);
  sequence.open().fill(range(buffer), 1);
  const Submission right = sequence.submission();
  REQUIRE(lane->submit(right));
  CHECK(right.replay->checked == right.recording->revision());
  REQUIRE(lane->submit(right));
  sequence.open().fill(range(buffer, 1, 4), 1);
  const Submission wrong = sequence.submission();
  auto refused = lane->submit(wrong);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::invalid_argument);
  CHECK(wrong.replay->checked == right.recording->revision());
}

}  // namespace wye::test
