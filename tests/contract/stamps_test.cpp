// Begin and end stamps: the times at which a device ran parts of recordings.
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "base/gate.hpp"
#include "base/worker.hpp"
#include "contract/suite.hpp"
#include "device/stamps.hpp"

namespace wye::test {
namespace {

using Stamps = std::shared_ptr<StampsBase>;

/// Returns stamps of the device; null if it has no clock, which only a GPU may lack.
Stamps stamps_of(const Subject& subject) {
  auto made = subject.device->create_stamps();
  if (made) return *made;
  const std::string& backend = subject.info().backend;
  expect(made.error() == Errc::unsupported && backend == "vulkan", made.error().describe());
  return nullptr;
}

std::vector<Stamps> stamps_of(const Subject& subject, std::size_t count) {
  std::vector<Stamps> all;
  while (all.size() < count) {
    all.push_back(stamps_of(subject));
    if (!all.back()) return {};
  }
  return all;
}

StampedTimes times_of(const Stamps& stamps) {
  const auto times = stamps->read();
  expect(times.has_value(), "completed stamps have no times");
  expect(times->begin <= times->end, "the end is before the begin");
  return *times;
}

/// The rounding of a device's clock: the driver of CUDA gives times as floats.
constexpr Duration rounding = 2us;

/// The items of a kernel that takes much longer than one over `few` items.
constexpr std::size_t few = 64;
std::size_t many(const Subject& subject) {
  return subject.note.empty() ? std::size_t{1} << 21 : std::size_t{1} << 15;  // the stand-in is slow
}

/// Returns the shortest of five runs of a kernel over `count` items.
Duration shortest(const Subject& subject, std::size_t count) {
  const auto buffer = subject.buffer(std::vector<Word>(count, 1));
  const auto add = subject.kernel("add");
  const Stamps stamps = stamps_of(subject);
  auto lane = subject.lane();
  Duration least = Duration::max();
  for (int i = 0; i < 5; ++i) {
    lane->stamp_begin(stamps);
    lane->dispatch(add, arguments_of(argument(buffer), Word{1}), count);
    lane->stamp_end(stamps);
    subject.settle(*lane);
    least = std::min(least, times_of(stamps).duration());
  }
  return least;
}

}  // namespace

CONTRACT_CASE("stamps around commands have a begin and an end", {}) {
  const Stamps stamps = stamps_of(subject);
  if (!stamps) return;
  const auto buffer = subject.words(usual_length);
  auto lane = subject.lane();
  const Instant before = Clock::steady().now();
  lane->stamp_begin(stamps);
  lane->dispatch(subject.kernel("add"), arguments_of(argument(buffer), Word{1}), usual_length);
  lane->fill(range(buffer), 3);
  lane->stamp_end(stamps);
  subject.settle(*lane);
  const Instant after = Clock::steady().now();
  const StampedTimes times = times_of(stamps);
  CHECK(times.duration() <= after - before + rounding);
  if (times.clock == StampClock::host) {
    CHECK(times.begin >= before.time_since_epoch());
    CHECK(times.end <= after.time_since_epoch());
  }
  const StampedTimes again = times_of(stamps);
  CHECK(again.begin == times.begin);
  CHECK(again.end == times.end);
  CHECK((times.clock == StampClock::host) ==
        (subject.info().backend == "cpu" || subject.info().backend == "null"));
}

CONTRACT_CASE("more work has a longer span", {Ability::data}) {
  if (!stamps_of(subject)) return;
  CHECK(shortest(subject, few) < shortest(subject, many(subject)));
}

CONTRACT_CASE("spans of one lane are in order and do not overlap", {Ability::data}) {
  const auto all = stamps_of(subject, 12);
  if (all.empty()) return;
  const std::size_t count = many(subject) / 4;
  const auto add = subject.kernel("add");
  const auto one = subject.buffer(std::vector<Word>(count, 1)),
             two = subject.buffer(std::vector<Word>(count, 1));
  auto lane = subject.lane();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& buffer = i % 2 == 0 ? one : two;  // no memory orders them
    lane->stamp_begin(all[i]);
    lane->dispatch(add, arguments_of(argument(buffer), Word{1}), i % 3 == 0 ? few : count);
    lane->stamp_end(all[i]);
    if (i % 4 == 3) lane->submit();  // four spans in each submission
  }
  subject.settle(*lane);
  for (std::size_t i = 1; i < all.size(); ++i) {
    INFO("span " << i);
    CHECK(times_of(all[i - 1]).end <= times_of(all[i]).begin + rounding);
    CHECK(times_of(all[i - 1]).begin <= times_of(all[i]).begin);
  }
  CHECK(subject.read(one) == [&] {
    std::vector<Word> wanted(count, 1 + 4);  // 2, 4, 8, 10
    std::fill_n(wanted.begin(), few, 1 + 6);
    return wanted;
  }());
}

CONTRACT_CASE("spans may enclose others", {}) {
  const auto all = stamps_of(subject, 3);
  if (all.empty()) return;
  const auto buffer = subject.words(usual_length);
  const auto add = subject.kernel("add");
  auto lane = subject.lane();
  lane->stamp_begin(all[0]);
  for (std::size_t i = 1; i < 3; ++i) {
    lane->stamp_begin(all[i]);
    lane->dispatch(add, arguments_of(argument(buffer), Word{1}), usual_length);
    lane->stamp_end(all[i]);
  }
  lane->stamp_end(all[0]);
  subject.settle(*lane);
  const StampedTimes outer = times_of(all[0]), first = times_of(all[1]), second = times_of(all[2]);
  CHECK(outer.begin <= first.begin + rounding);
  CHECK(first.end <= second.begin + rounding);
  CHECK(second.end <= outer.end + rounding);
}

CONTRACT_CASE("many spans of one submission are read after it, and used again", {}) {
  const auto all = stamps_of(subject, 150);
  if (all.empty()) return;
  const auto buffer = subject.words(usual_length);
  auto lane = subject.lane();
  for (int round = 0; round < 3; ++round) {
    for (const Stamps& stamps : all) {
      lane->stamp_begin(stamps);
      lane->fill(range(buffer), 1);
      lane->stamp_end(stamps);
    }
    subject.settle(*lane);
    for (std::size_t i = 1; i < all.size(); ++i)
      REQUIRE(times_of(all[i - 1]).begin <= times_of(all[i]).begin);
  }
}

CONTRACT_CASE("a span without commands is empty or short, and one without a submission has no times", {}) {
  const auto all = stamps_of(subject, 2);
  if (all.empty()) return;
  auto lane = subject.lane();
  CHECK_FALSE(all[0]->read());
  lane->stamp_begin(all[0]);
  lane->stamp_end(all[0]);
  subject.settle(*lane);
  (void)times_of(all[0]);
  lane->stamp_begin(all[1]);
  lane->stamp_end(all[1]);
  lane->discard();
  subject.settle(*lane);
  CHECK_FALSE(all[1]->read());
  (void)times_of(all[0]);
}

CONTRACT_CASE("a span has no times until its submission has completed", {Ability::data, Ability::order}) {
  const Stamps stamps = stamps_of(subject);
  if (!stamps) return;
  const auto buffer = subject.words(usual_length);
  auto lane = subject.lane();
  std::optional<StampedTimes> before;
  const auto gate = subject.timeline();
  for (std::uint64_t round = 1; round <= 3; ++round) {
    lane->wait_for({gate, round});
    lane->stamp_begin(stamps);
    lane->fill(range(buffer), 1);
    lane->stamp_end(stamps);
    lane->submit();
    CHECK_FALSE(stamps->read());  // also of the round before
    REQUIRE(gate->signal(round));
    subject.settle(*lane);
    const StampedTimes times = times_of(stamps);
    if (before) CHECK(before->end <= times.begin + rounding);
    before = times;
  }
}

CONTRACT_CASE("each run of a sequence replaces the times of the run before", {Ability::data}) {
  for (Twin twin : twins(*subject.device)) {
    const auto all = stamps_of(subject, 2);
    if (all.empty()) return;
    const auto add = subject.kernel("add", twin), mix = subject.kernel("mix", twin);
    const auto a = subject.buffer(std::vector<Word>(usual_length, 1)),
               b = subject.buffer(std::vector<Word>(usual_length, 1)),
               c = subject.buffer(std::vector<Word>(usual_length, 1));
    SequenceState sequence(subject.device);
    Recording& recording = sequence.open();
    recording.stamp_begin(all[0]);
    recording.dispatch(add, arguments_of(argument(a), Word{1}), usual_length);
    recording.dispatch(add, arguments_of(argument(c), Word{1}), usual_length);  // beside it
    recording.stamp_end(all[0]);
    recording.stamp_begin(all[1]);
    recording.dispatch(mix, arguments_of(argument(a), argument(b), Word{7}), usual_length);
    recording.stamp_end(all[1]);
    auto lane = subject.lane();
    Word x = 1, y = 1, z = 1;
    Duration last{};
    for (int round = 0; round < 6; ++round) {
      for (int runs = 0; runs < (round == 3 ? 4 : 1); ++runs) {  // also with several in flight
        lane->submit(sequence);
        z += 1;
        x += round < 2 ? 1u : 5u;
        y = y * 3 + x + 7;
      }
      subject.settle(*lane);
      const StampedTimes first = times_of(all[0]), second = times_of(all[1]);
      CHECK(last <= first.begin + rounding);
      CHECK(first.end <= second.begin + rounding);
      last = second.end;
      if (round == 1) REQUIRE(sequence.open().set(1, 1, argument(Word{5})));
    }
    CHECK(subject.read(a) == std::vector<Word>(usual_length, x));
    CHECK(subject.read(b) == std::vector<Word>(usual_length, y));
    CHECK(subject.read(c) == std::vector<Word>(usual_length, z));
  }
}

CONTRACT_CASE("a sequence may get other stamps between its runs", {Ability::data}) {
  const auto all = stamps_of(subject, 2);
  if (all.empty()) return;
  const auto add = subject.kernel("add");
  const auto a = subject.buffer(std::vector<Word>(usual_length, 1));
  SequenceState sequence(subject.device);
  auto lane = subject.lane();
  for (const Stamps& stamps : all) {
    Recording& recording = sequence.open();
    recording.clear();
    recording.stamp_begin(stamps);
    recording.dispatch(add, arguments_of(argument(a), Word{1}), usual_length);
    recording.stamp_end(stamps);
    lane->submit(sequence);
    subject.settle(*lane);
  }
  CHECK(times_of(all[0]).end <= times_of(all[1]).begin + rounding);
  CHECK(subject.read(a) == std::vector<Word>(usual_length, 3));
}

CONTRACT_CASE("spans include transfers of any size", {Ability::data}) {
  const Stamps stamps = stamps_of(subject);
  if (!stamps) return;
  std::mt19937_64 random(5);
  const std::vector<Word> words = random_words(random, 5u << 20);
  std::vector<Word> got(words.size());
  const auto from = subject.words(words.size()), to = subject.words(words.size());
  auto lane = subject.lane();
  lane->stamp_begin(stamps);
  lane->upload(bytes_of(words), range(from));
  lane->copy(range(from), range(to));
  lane->download(range(to), writable_bytes_of(got));
  lane->stamp_end(stamps);
  subject.settle(*lane);
  (void)times_of(stamps);
  CHECK(got == words);
}

CONTRACT_CASE("any thread reads a span, in the callback of its submission or later", {}) {
  const auto all = stamps_of(subject, 8);
  if (all.empty()) return;
  const auto buffer = subject.words(usual_length);
  auto lane = subject.lane();
  std::mutex mutex;
  base::Gate changed;
  std::size_t called = 0, with_times = 0;
  for (const Stamps& stamps : all) {
    lane->stamp_begin(stamps);
    lane->fill(range(buffer), 1);
    lane->stamp_end(stamps);
    const TimelinePoint point = lane->submit();
    REQUIRE(point.timeline->when(point.value, [&, stamps](const Error* failure) {
      const bool has_times = !failure && stamps->read();
      const base::Lock lock(mutex);
      ++called;
      with_times += has_times;
      changed.wake_all();
    }));
  }
  base::Lock lock(mutex);
  REQUIRE(changed.wait(lock, subject.patience(), [&] { return called == all.size(); }));
  CHECK(with_times == all.size());
  lock.unlock();
  in_threads(3, [&](unsigned) {
    for (const Stamps& stamps : all) (void)times_of(stamps);
  });
  subject.settle(*lane);
}

CONTRACT_CASE("threads use spans on their own lanes at the same time", {}) {
  if (!stamps_of(subject)) return;
  in_threads(4, [&](unsigned i) {
    const auto buffer = subject.words(usual_length);
    auto lane = subject.lane();
    for (int round = 0; round < 20; ++round) {
      const Stamps stamps = stamps_of(subject);
      lane->stamp_begin(stamps);
      lane->fill(range(buffer), i);
      lane->stamp_end(stamps);
      if (round % 2 == 0) subject.settle(*lane);
      if (round % 2 == 0) (void)times_of(stamps);
    }
    subject.settle(*lane);
  });
}

CONTRACT_CASE("a thread may read while another submits the same span again", {}) {
  const Stamps stamps = stamps_of(subject);
  if (!stamps) return;
  const auto buffer = subject.words(usual_length);
  std::atomic<bool> is_done{false};
  in_threads(2, [&](unsigned i) {
    if (i == 1) {
      while (!is_done) {
        const auto times = stamps->read();
        expect(!times || times->begin <= times->end, "the end is before the begin");
      }
      return;
    }
    const std::shared_ptr<void> done(nullptr, [&](void*) { is_done = true; });  // also if it fails
    auto lane = subject.lane();
    for (Word round = 0; round < 50; ++round) {
      lane->stamp_begin(stamps);
      lane->fill(range(buffer), round);
      lane->stamp_end(stamps);
      lane->submit();
      if (round % 5 == 0) subject.settle(*lane);
    }
  });
}

CONTRACT_CASE("stamps may be dropped in flight, and outlive their lane", {}) {
  Subject own = subject;
  own.device = subject.open_another();
  const std::weak_ptr<DeviceBase> watched = own.device;
  Stamps kept = stamps_of(own);
  if (!kept) return;
  {
    auto lane = own.lane();
    auto buffer = own.words(usual_length);
    for (int i = 0; i < 40; ++i) {
      const Stamps dropped = stamps_of(own);
      lane->stamp_begin(dropped);
      lane->fill(range(buffer), 1);
      lane->stamp_end(dropped);
      if (i == 20) lane->stamp_begin(kept), lane->stamp_end(kept);
      lane->submit();
    }
  }
  own.device.reset();
  REQUIRE_FALSE(watched.expired());
  (void)times_of(kept);
  kept.reset();
  CHECK(watched.expired());
}

CONTRACT_CASE("a failed lane has no times for its last submission", {Ability::functions}) {
  const auto all = stamps_of(subject, 2);
  const auto buffer = subject.words(10);
  auto failing = subject.device->create_executable(host_artefact(
      "failing", ParamSchema{{buffer_slot("x", Access::read_write)}},
      [](Range, std::span<const Operand>, const StopToken&) { throw std::runtime_error("x"); }));
  REQUIRE(failing);
  auto lane = subject.lane();
  for (const Stamps& stamps : all) {
    lane->stamp_begin(stamps);
    lane->fill(range(buffer), 1);
    if (stamps == all[1]) lane->dispatch(*failing, arguments_of(argument(buffer)), 10);
    lane->stamp_end(stamps);
    lane->submit();
  }
  CHECK_FALSE(lane->wait(subject.patience()));
  (void)times_of(all[0]);
  CHECK_FALSE(all[1]->read());
  lane->stamp_begin(all[0]);
  lane->stamp_end(all[0]);
  lane->submit();
  (void)times_of(all[0]);  // a failed lane records nothing
}

CONTRACT_CASE("null stamps add no command", {Ability::data}) {
  const auto buffer = subject.buffer(std::vector<Word>(usual_length, 1));
  Recording recording;
  recording.stamp_begin(nullptr);
  recording.stamp_end(nullptr);
  CHECK(recording.empty());
  auto lane = subject.lane();
  lane->stamp_begin(nullptr);
  lane->fill(range(buffer), 2);
  lane->stamp_end(nullptr);
  subject.settle(*lane);
  CHECK(subject.read(buffer) == std::vector<Word>(usual_length, 2));
}

CONTRACT_CASE("stamps that are not in pairs or of another device are refused", {Ability::checks}) {
  const auto all = stamps_of(subject, 2);
  if (all.empty()) return;
  const auto another = subject.open_another();
  const Stamps foreign = *another->create_stamps();
  const auto refused = [&](const std::function<void(Recording&)>& record) {
    auto recording = std::make_shared<Recording>();
    record(*recording);
    recording->close();
    auto lane = subject.lane_base();
    const auto value = lane->submit({.recording = recording, .waits = {}, .stop = {}});
    return !value && value.error() == Errc::invalid_argument;
  };
  CHECK(refused([&](Recording& r) { r.stamp_begin(all[0]); }));
  CHECK(refused([&](Recording& r) { r.stamp_end(all[0]); }));
  CHECK(refused([&](Recording& r) { r.stamp_end(all[0]), r.stamp_begin(all[0]); }));
  CHECK(refused([&](Recording& r) {
    r.stamp_begin(all[0]), r.stamp_begin(all[0]), r.stamp_end(all[0]), r.stamp_end(all[0]);
  }));
  CHECK(refused([&](Recording& r) { r.stamp_begin(all[0]), r.stamp_end(all[1]); }));
  CHECK(refused([&](Recording& r) { r.stamp_begin(foreign), r.stamp_end(foreign); }));
  CHECK_FALSE(refused([&](Recording& r) {  // one after the other, and crossed
    r.stamp_begin(all[0]), r.stamp_begin(all[1]), r.stamp_end(all[0]), r.stamp_end(all[1]);
    r.stamp_begin(all[0]), r.stamp_end(all[0]);
  }));
}

}  // namespace wye::test
