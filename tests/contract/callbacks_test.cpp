// Callbacks of timelines: `Timeline::when`.
#include <functional>
#include <mutex>

#include "base/gate.hpp"
#include "base/worker.hpp"
#include "contract/suite.hpp"

namespace wye::test {
namespace {

/// Collects calls from any thread.
class Calls {
 public:
  TimelineCallback note(int name) {
    return [this, name](const Error* failure) {
      const base::Lock lock(mutex_);
      names_.push_back(name);
      if (failure) failures_.push_back(failure->code());
      changed_.wake_all();
    };
  }
  /// Waits for `count` calls.
  bool wait(std::size_t count) {
    base::Lock lock(mutex_);
    return changed_.wait(lock, Clock::steady().now() + 60s, [&] { return names_.size() >= count; });
  }
  std::vector<int> names() {
    const base::Lock lock(mutex_);
    return names_;
  }
  std::vector<Errc> failures() {
    const base::Lock lock(mutex_);
    return failures_;
  }

 private:
  std::mutex mutex_;
  base::Gate changed_;
  std::vector<int> names_;
  std::vector<Errc> failures_;
};

TimelinePoint submit_fill(Lane& lane, const std::shared_ptr<BufferBase>& buffer) {
  lane.fill(range(buffer), 1);
  return lane.submit();
}

}  // namespace

CONTRACT_CASE("a timeline of a lane calls back once per request when its value is reached", {}) {
  const auto buffer = subject.words(usual_length);
  auto lane = subject.lane();
  Calls calls;
  const TimelinePoint first = submit_fill(*lane, buffer), second = submit_fill(*lane, buffer);
  REQUIRE(second.timeline->when(second.value, calls.note(2)));
  REQUIRE(first.timeline->when(first.value, calls.note(1)));
  REQUIRE(first.timeline->when(0, calls.note(0)));
  REQUIRE(calls.wait(3));
  subject.settle(*lane);
  REQUIRE(second.timeline->when(second.value, calls.note(3)));
  CHECK(calls.names().back() == 3);  // before `when` returned
  CHECK(calls.names().size() == 4);
  CHECK(calls.failures().empty());
}

CONTRACT_CASE("a callback may be added before its value is submitted", {}) {
  const auto buffer = subject.words(usual_length);
  auto lane = subject.lane();
  const TimelinePoint first = submit_fill(*lane, buffer);
  Calls calls;
  for (int i = 5; i > 0; --i)
    REQUIRE(first.timeline->when(first.value + static_cast<unsigned>(i), calls.note(i)));
  for (int i = 0; i < 5; ++i) submit_fill(*lane, buffer);
  subject.settle(*lane);
  REQUIRE(calls.wait(5));
  CHECK(calls.names() == std::vector<int>{1, 2, 3, 4, 5});
  CHECK(calls.failures().empty());
}

CONTRACT_CASE("a timeline of the host calls back in the order of its values", {}) {
  Calls calls;
  auto timeline = subject.timeline();
  REQUIRE(timeline->when(3, calls.note(3)));
  REQUIRE(timeline->when(1, calls.note(1)));
  REQUIRE(timeline->when(2, calls.note(2)));
  REQUIRE(timeline->when(9, calls.note(9)));
  REQUIRE(timeline->signal(1));
  REQUIRE(calls.wait(1));
  CHECK(calls.names() == std::vector<int>{1});
  REQUIRE(timeline->signal(5));
  REQUIRE(calls.wait(3));
  CHECK(calls.names() == std::vector<int>{1, 2, 3});
  timeline.reset();
  REQUIRE(calls.wait(4));  // the waiter thread may run the destructor
  CHECK(calls.names() == std::vector<int>{1, 2, 3, 9});
  CHECK(calls.failures() == std::vector<Errc>{Errc::closed});
}

CONTRACT_CASE("callbacks for values that a lane has not submitted when it ends get the error closed", {}) {
  Calls calls;
  std::shared_ptr<Timeline> timeline;
  {
    const auto buffer = subject.words(usual_length);
    auto lane = subject.lane();
    const TimelinePoint point = submit_fill(*lane, buffer);
    timeline = point.timeline;
    REQUIRE(timeline->when(point.value, calls.note(1)));
    REQUIRE(timeline->when(point.value + 1, calls.note(2)));
    REQUIRE(timeline->when(point.value + 9, calls.note(3)));
  }
  REQUIRE(calls.wait(3));
  CHECK(calls.names() == std::vector<int>{1, 2, 3});
  CHECK(calls.failures() == std::vector<Errc>(2, Errc::closed));
  REQUIRE(timeline->when(1000, calls.note(4)));
  REQUIRE(calls.wait(4));
  CHECK(calls.failures().size() == 3);
}

CONTRACT_CASE("callbacks for values of a kernel that fails get its error", {Ability::functions}) {
  auto lane = subject.lane();
  Calls calls;
  const auto gate = subject.timeline();
  lane->wait_for({gate, 1});
  const auto kernel = subject.device->create_executable(host_artefact(
      "failing", {{buffer_slot("x", Access::read_write)}},
      [](Range, std::span<const Operand>, const StopToken&) { throw 1; }, whole));
  REQUIRE(kernel);
  lane->dispatch(*kernel, arguments_of(argument(subject.words(100))), 100);
  const TimelinePoint point = lane->submit();
  REQUIRE(point.timeline->when(point.value, calls.note(1)));
  REQUIRE(gate->signal(1));
  REQUIRE(calls.wait(1));
  CHECK(calls.failures() == std::vector<Errc>{Errc::kernel_failed});
  CHECK_FALSE(lane->wait(subject.patience()));
}

CONTRACT_CASE("the end of a timeline of the host calls its pending callbacks with the error closed", {}) {
  Calls calls;
  REQUIRE(subject.timeline()->when(1, calls.note(1)));
  REQUIRE(calls.wait(1));
  CHECK(calls.failures() == std::vector<Errc>{Errc::closed});
}

CONTRACT_CASE("dropped callbacks are not called; later ones are", {Ability::order}) {
  auto lane = subject.lane();
  const auto gate = subject.timeline();
  lane->wait_for({gate, 1});
  const TimelinePoint point = submit_fill(*lane, subject.words(usual_length));
  Calls calls;
  REQUIRE(point.timeline->when(point.value, calls.note(1)));
  REQUIRE(point.timeline->when(point.value + 1, calls.note(2)));
  CHECK(point.timeline->drop_callbacks());
  CHECK_FALSE(point.timeline->drop_callbacks());
  REQUIRE(point.timeline->when(point.value, calls.note(3)));
  REQUIRE(gate->signal(1));
  REQUIRE(calls.wait(1));
  submit_fill(*lane, subject.words(usual_length));
  subject.settle(*lane);
  CHECK(calls.names() == std::vector<int>{3});
  CHECK(calls.failures().empty());
}

CONTRACT_CASE("a thousand pending callbacks need one thread at most", {Ability::order}) {
  std::vector<std::unique_ptr<Lane>> lanes;
  for (int i = 0; i < 10; ++i) lanes.push_back(subject.lane());
  for (const auto& lane : lanes) {
    submit_fill(*lane, subject.words(100));
    subject.settle(*lane);
  }
  const auto gate = subject.timeline();
  const int before = base::Worker::alive();
  Calls calls;
  for (const auto& lane : lanes) {
    lane->wait_for({gate, 1});
    const TimelinePoint point = submit_fill(*lane, subject.words(100));
    for (int i = 0; i < 100; ++i) REQUIRE(point.timeline->when(point.value, calls.note(i)));
  }
  CHECK(base::Worker::alive() <= before + 1);
  CHECK(calls.names().empty());
  REQUIRE(gate->signal(1));
  REQUIRE(calls.wait(1000));
  CHECK(base::Worker::alive() <= before + 1);
  for (const auto& lane : lanes) subject.settle(*lane);
  CHECK(calls.names().size() == 1000);
  CHECK(calls.failures().empty());
}

CONTRACT_CASE("callbacks are added by several threads while others complete", {}) {
  Calls calls;
  in_threads(4, [&](unsigned) {
    const auto buffer = subject.words(100);
    auto lane = subject.lane();
    for (int i = 0; i < 50; ++i) {
      const TimelinePoint point = submit_fill(*lane, buffer);
      expect(bool(point.timeline->when(point.value, calls.note(i))), "a callback is taken");
    }
    subject.settle(*lane);
  });
  REQUIRE(calls.wait(200));
  CHECK(calls.names().size() == 200);
  CHECK(calls.failures().empty());
}

CONTRACT_CASE("a callback submits more work", {}) {
  const auto buffer = subject.words(usual_length);
  auto lane = subject.lane();
  Calls calls;
  std::function<void(int)> submit = [&](int rest) {
    const TimelinePoint point = submit_fill(*lane, buffer);
    const auto then = [&, rest](const Error* failure) {
      if (rest == 0 || failure)
        calls.note(failure ? 1 : 0)(failure);
      else
        submit(rest - 1);
    };
    if (auto taken = point.timeline->when(point.value, then); !taken) calls.note(1)(&taken.error());
  };
  submit(100);
  REQUIRE(calls.wait(1));
  subject.settle(*lane);
  CHECK(calls.names() == std::vector<int>{0});
}

CONTRACT_CASE("a callback that throws disturbs no other callback", {}) {
  const auto buffer = subject.words(usual_length);
  auto lane = subject.lane();
  Calls calls;
  const TimelinePoint point = submit_fill(*lane, buffer);
  REQUIRE(point.timeline->when(point.value, [](const Error*) { throw 1; }));
  REQUIRE(point.timeline->when(point.value, calls.note(1)));
  REQUIRE(calls.wait(1));
  subject.settle(*lane);
  CHECK(calls.failures().empty());
}

}  // namespace wye::test
