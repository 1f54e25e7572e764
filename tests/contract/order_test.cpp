// Order within a lane, across lanes, and by timelines.
#include <algorithm>
#include <functional>

#include "contract/suite.hpp"

namespace wye::test {
namespace {

/// Buffers of words with a model of their contents. Each step is recorded on a lane and applied to
/// the model.
class Program {
 public:
  Program(const Subject& subject, Twin twin, std::uint64_t seed)
      : random_(seed),
        mix_(subject.kernel("mix", twin)),
        add_(subject.kernel("add", twin)),
        iota_(subject.kernel("iota", twin)) {
    for (int i = 0; i < 4; ++i) {
      model_.push_back(random_words(random_, usual_length));
      buffers_.push_back(subject.buffer(model_.back()));
    }
  }

  void step(Lane& lane) {
    const std::size_t a = random_() % 4, b = (a + 1 + random_() % 3) % 4;
    const auto number = static_cast<Word>(random_());
    switch (random_() % 8) {
      case 0:
      case 1:
        lane.dispatch(mix_, arguments_of(argument(buffers_[a]), argument(buffers_[b]), number), usual_length);
        for (std::size_t i = 0; i < usual_length; ++i)
          model_[b][i] = model_[b][i] * 3 + model_[a][i] + number;
        break;
      case 2:
        lane.dispatch(add_, arguments_of(argument(buffers_[a]), number), usual_length);
        for (Word& word : model_[a]) word += number;
        break;
      case 3:
        lane.dispatch(iota_, arguments_of(argument(buffers_[a]), number), usual_length);
        for (Word i = 0; i < usual_length; ++i) model_[a][i] = number + i;
        break;
      case 4:
        lane.copy(range(buffers_[a]), range(buffers_[b]));
        model_[b] = model_[a];
        break;
      case 5: {
        const std::size_t first = random_() % usual_length, count = random_() % (usual_length - first);
        lane.fill(range(buffers_[a], first * 4, count * 4), number);
        std::fill_n(model_[a].begin() + static_cast<std::ptrdiff_t>(first), count, number);
        break;
      }
      case 6: {
        const std::size_t first = random_() % usual_length;
        const std::vector<Word> words = random_words(random_, random_() % (usual_length - first) + 1);
        lane.upload(bytes_of(words), range(buffers_[a], first * 4, words.size() * 4));
        lane.submit();  // before `words` ends
        std::copy(words.begin(), words.end(), model_[a].begin() + static_cast<std::ptrdiff_t>(first));
        break;
      }
      case 7:
        got_.push_back(std::make_unique<std::vector<Word>>(usual_length));
        wanted_.push_back(model_[a]);
        lane.download(range(buffers_[a]), writable_bytes_of(*got_.back()));
        break;
    }
    if (random_() % 5 == 0) lane.submit();
  }

  /// Whether everything is as in the model. The lane has been waited for.
  bool right(const Subject& subject) const {
    for (std::size_t i = 0; i < got_.size(); ++i)
      if (*got_[i] != wanted_[i]) return false;
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      if (subject.read(buffers_[i]) != model_[i]) return false;
    return true;
  }

 private:
  std::mt19937_64 random_;
  std::shared_ptr<ExecutableBase> mix_, add_, iota_;
  std::vector<std::shared_ptr<BufferBase>> buffers_;
  std::vector<std::vector<Word>> model_;
  std::vector<std::unique_ptr<std::vector<Word>>> got_;
  std::vector<std::vector<Word>> wanted_;
};

}  // namespace

CONTRACT_CASE("a lane does one thing after the other: random programs", {Ability::data}) {
  for (Twin twin : twins(*subject.device))
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      INFO("twin " << static_cast<int>(twin) << ", seed " << seed);
      Program program(subject, twin, seed);
      auto lane = subject.lane();
      for (int i = 0; i < 80; ++i) program.step(*lane);
      subject.settle(*lane);
      CHECK(program.right(subject));
    }
}

CONTRACT_CASE("many lanes in many threads do each their own thing", {Ability::data}) {
  std::vector<std::unique_ptr<Program>> programs;
  for (std::uint64_t i = 0; i < 6; ++i)
    programs.push_back(std::make_unique<Program>(
        subject, twins(*subject.device)[i % twins(*subject.device).size()], 100 + i));
  in_threads(6, [&](unsigned i) {
    auto lane = subject.lane();
    for (int round = 0; round < 4; ++round) {
      for (int n = 0; n < 20; ++n) programs[i]->step(*lane);
      subject.settle(*lane);
    }
  });
  for (const auto& program : programs) CHECK(program->right(subject));
}

CONTRACT_CASE("every hazard is ordered: reads see earlier writes and no later ones", {Ability::data}) {
  // Each kind of write to `b` after each, then each kind of read of it, then a write again.
  const std::vector<Word> source(usual_length, 11), other(usual_length, 22);
  for (Twin twin : twins(*subject.device)) {
    const auto add = subject.kernel("add", twin), mix = subject.kernel("mix", twin),
               iota = subject.kernel("iota", twin);
    const auto a = subject.buffer(source), b = subject.words(usual_length), c = subject.buffer(other);
    auto lane = subject.lane();
    const auto upload = [&](Word n) {
      const std::vector<Word> words(usual_length, n);
      lane->upload(bytes_of(words), range(b));
      lane->submit();
    };
    // Each gives `b` a content that depends on `n` only, and returns its first word.
    const std::vector<std::function<Word(Word)>> writes = {
        [&](Word n) { return lane->fill(range(b), n), n; },
        [&](Word n) { return lane->dispatch(iota, arguments_of(argument(b), n), usual_length), n; },
        [&](Word n) { return upload(n), n; },
        [&](Word) { return lane->copy(range(a), range(b)), Word{11}; },
    };
    // Each step reads `b`. It returns the later place of the first word, and the added value.
    std::vector<std::unique_ptr<std::vector<Word>>> seen;
    const auto download = [&](const std::shared_ptr<BufferBase>& from) {
      seen.push_back(std::make_unique<std::vector<Word>>(1));
      lane->download(range(from, 0, 4), writable_bytes_of(*seen.back()));
    };
    const std::vector<std::function<Word()>> reads = {
        [&] { return download(b), Word{0}; },
        [&] { return lane->copy(range(b), range(c)), download(c), Word{0}; },
        [&] {
          lane->fill(range(c), 2);
          lane->dispatch(mix, arguments_of(argument(b), argument(c), Word{1}), usual_length);
          return download(c), Word{7};
        },
        [&] {
          return lane->dispatch(add, arguments_of(argument(b), Word{5}), usual_length), download(b), Word{5};
        },
    };
    std::vector<Word> wanted;
    Word n = 1000;
    for (const auto& first : writes)
      for (const auto& second : writes)
        for (const auto& read : reads) {
          first(++n);
          const Word written = second(++n);
          wanted.push_back(written + read());
        }
    subject.settle(*lane);
    std::vector<Word> got;
    for (const auto& words : seen) got.push_back(words->front());
    CHECK(got == wanted);
  }
}

CONTRACT_CASE("a thousand dependent dispatches in one submission keep their order", {Ability::data}) {
  for (Twin twin : twins(*subject.device)) {
    const auto mix = subject.kernel("mix", twin);
    std::vector<Word> x(100, 1), y(100, 2);
    const auto a = subject.buffer(x), b = subject.buffer(y);
    auto lane = subject.lane();
    for (Word i = 0; i < 500; ++i) {
      lane->dispatch(mix, arguments_of(argument(a), argument(b), i), 100);
      lane->dispatch(mix, arguments_of(argument(b), argument(a), i), 100);
      for (std::size_t n = 0; n < 100; ++n) {
        y[n] = y[n] * 3 + x[n] + i;
        x[n] = x[n] * 3 + y[n] + i;
      }
    }
    subject.settle(*lane);
    CHECK(subject.read(a) == x);
    CHECK(subject.read(b) == y);
  }
}

CONTRACT_CASE("lanes hand a buffer to each other by timelines", {Ability::data, Ability::order}) {
  const auto buffer = subject.buffer(std::vector<Word>(usual_length, 1));
  const auto add = subject.kernel("add"), mix = subject.kernel("mix");
  const auto other = subject.buffer(std::vector<Word>(usual_length, 1));
  auto a = subject.lane(), b = subject.lane();
  Word x = 1, y = 1;
  for (Word i = 0; i < 50; ++i) {
    a->dispatch(add, arguments_of(argument(buffer), i), usual_length);
    b->wait_for(a->submit());
    b->dispatch(mix, arguments_of(argument(buffer), argument(other), Word{1}), usual_length);
    a->wait_for(b->submit());
    x += i;
    y = y * 3 + x + 1;
  }
  subject.settle(*b);
  subject.settle(*a);
  CHECK(subject.read(buffer) == std::vector<Word>(usual_length, x));
  CHECK(subject.read(other) == std::vector<Word>(usual_length, y));
}

CONTRACT_CASE("a lane may wait for a value that is not yet submitted", {Ability::data, Ability::order}) {
  const auto buffer = subject.buffer(std::vector<Word>(usual_length, 1));
  const auto add = subject.kernel("add"), iota = subject.kernel("iota");
  auto first = subject.lane(), second = subject.lane();
  first->fill(range(buffer), 5);
  const TimelinePoint now = first->submit();
  second->wait_for({now.timeline, now.value + 1});
  second->dispatch(add, arguments_of(argument(buffer), Word{10}), usual_length);
  second->submit();
  CHECK_FALSE(second->idle());
  first->dispatch(iota, arguments_of(argument(buffer), Word{100}), usual_length);
  first->submit();
  subject.settle(*second);
  subject.settle(*first);
  const std::vector<Word> got = subject.read(buffer);
  for (Word i = 0; i < usual_length; ++i) REQUIRE(got[i] == 110 + i);
}

CONTRACT_CASE(
    "the host holds a lane back and lets it go; a wait gives up at its deadline and may be repeated",
    {Ability::data, Ability::order}) {
  const auto gate = subject.timeline();
  const auto buffer = subject.buffer(std::vector<Word>(usual_length, 1));
  const auto add = subject.kernel("add");
  std::vector<Word> got(usual_length, 0xdeadbeef);
  auto lane = subject.lane(), bystander = subject.lane();
  lane->wait_for({gate, 3});
  lane->dispatch(add, arguments_of(argument(buffer), Word{41}), usual_length);
  lane->download(range(buffer), writable_bytes_of(got));
  for (const Duration patience : {Duration(0), Duration(2ms)}) {
    auto waited = lane->wait(Clock::steady().now() + patience);
    REQUIRE_FALSE(waited);
    CHECK(waited.error() == Errc::timed_out);
  }
  CHECK_FALSE(lane->idle());
  CHECK(got == std::vector<Word>(usual_length, 0xdeadbeef));
  REQUIRE(gate->signal(2));  // not enough
  bystander->fill(range(subject.words(10)), 1);
  subject.settle(*bystander);  // other lanes continue
  CHECK_FALSE(lane->wait(Clock::steady().now() + 1ms));
  REQUIRE(gate->signal(3));
  subject.settle(*lane);
  CHECK(lane->idle());
  CHECK(got == std::vector<Word>(usual_length, 42));
}

CONTRACT_CASE("a submission waits for several timelines", {Ability::data, Ability::order}) {
  const auto one = subject.timeline(), two = subject.timeline();
  const auto buffer = subject.buffer(std::vector<Word>(100, 1));
  auto lane = subject.lane();
  lane->wait_for({one, 1});
  lane->wait_for({two, 7});
  lane->wait_for({one, 2});
  lane->fill(range(buffer), 9);
  lane->submit();
  REQUIRE(two->signal(8));
  CHECK_FALSE(lane->wait(Clock::steady().now() + 1ms));
  REQUIRE(one->signal(1));
  CHECK_FALSE(lane->wait(Clock::steady().now() + 1ms));
  REQUIRE(one->signal(2));
  subject.settle(*lane);
  CHECK(subject.read(buffer) == std::vector<Word>(100, 9));
}

CONTRACT_CASE("a timeline only increases, and wakes its waiters", {}) {
  const auto timeline = subject.timeline();
  CHECK(timeline->owner() == subject.device.get());
  CHECK(timeline->reached() == 0);
  REQUIRE(timeline->wait(0, Clock::steady().now()));
  auto early = timeline->wait(1, Clock::steady().now() + 1ms);
  REQUIRE_FALSE(early);
  CHECK(early.error() == Errc::timed_out);
  in_threads(4, [&](unsigned i) {
    if (i == 0)
      expect(timeline->signal(5).has_value(), "signal 5");
    else
      expect(timeline->wait(i + 2, Clock::steady().now() + 60s).has_value(), "wait");
  });
  CHECK(timeline->reached() == 5);
  for (std::uint64_t value : {5u, 4u, 0u}) {
    auto back = timeline->signal(value);
    REQUIRE_FALSE(back);
    CHECK(back.error() == Errc::invalid_argument);
  }
  REQUIRE(timeline->signal(std::uint64_t{1} << 40));
  CHECK(timeline->reached() == std::uint64_t{1} << 40);
}

CONTRACT_CASE("the host cannot signal a lane's timeline", {}) {
  auto lane = subject.lane();
  lane->fill(range(subject.words(4)), 1);
  const TimelinePoint point = lane->submit();
  auto moved = point.timeline->signal(point.value + 10);
  REQUIRE_FALSE(moved);
  CHECK(moved.error() == Errc::invalid_argument);
  subject.settle(*lane);
  CHECK(point.timeline->reached() == point.value);
}

CONTRACT_CASE("a wait for a value of a destroyed lane fails", {}) {
  auto lane = subject.lane();
  lane->fill(range(subject.words(4)), 1);
  const TimelinePoint point = lane->submit();
  lane.reset();
  REQUIRE(point.timeline->wait(point.value, Instant::max()));
  auto beyond = point.timeline->wait(point.value + 1, Instant::max());
  REQUIRE_FALSE(beyond);
  CHECK(beyond.error() == Errc::closed);
}

CONTRACT_CASE("a lane that waits for a value of a lane that has ended fails and can be dropped",
              {Ability::order}) {
  auto first = subject.lane(), second = subject.lane(), third = subject.lane();
  first->fill(range(subject.words(4)), 1);
  const TimelinePoint point = first->submit();
  for (Lane* lane : {second.get(), third.get()}) {
    lane->wait_for({point.timeline, point.value + 1});
    lane->fill(range(subject.words(4)), 2);
    lane->submit();
  }
  first.reset();
  third.reset();
  auto waited = second->wait(Instant::max());
  REQUIRE_FALSE(waited);
  CHECK(waited.error() == Errc::closed);
}

CONTRACT_CASE("values of a lane grow, and are reached in order", {}) {
  auto lane = subject.lane_base();
  const auto buffer = subject.buffer(64_B);
  auto recording = std::make_shared<Recording>();
  recording->fill(range(buffer), 3);
  recording->close();
  std::uint64_t last = 0;
  for (int i = 0; i < 20; ++i) {
    auto value = lane->submit({.recording = recording, .waits = {}, .stop = {}});
    REQUIRE(value);
    CHECK(*value > last);
    last = *value;
  }
  REQUIRE(lane->wait(last, subject.patience()));
  CHECK(lane->timeline()->reached() >= last);
  REQUIRE(lane->timeline()->wait(last, subject.patience()));
  REQUIRE(lane->wait(last - 5, subject.patience()));
}

}  // namespace wye::test
