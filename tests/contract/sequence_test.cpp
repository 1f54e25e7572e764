// Sequences: recorded once, submitted many times, with other arguments between.
#include <algorithm>

#include "contract/suite.hpp"

namespace wye::test {
namespace {

SequenceState sequence_of(const Subject& subject) { return SequenceState(subject.device); }

}  // namespace

CONTRACT_CASE("a sequence runs again and again, in order", {Ability::data}) {
  for (Twin twin : twins(*subject.device)) {
    const auto add = subject.kernel("add", twin), mix = subject.kernel("mix", twin);
    const auto a = subject.buffer(std::vector<Word>(usual_length, 1)),
               b = subject.buffer(std::vector<Word>(usual_length, 2)), c = subject.words(usual_length);
    SequenceState sequence = sequence_of(subject);
    sequence.open().dispatch(add, arguments_of(argument(a), Word{5}), usual_length);
    sequence.open().dispatch(mix, arguments_of(argument(a), argument(b), Word{7}), usual_length);
    sequence.open().copy(range(b), range(c));
    sequence.open().fill(range(c, 0, 400), 9);
    auto lane = subject.lane();
    Word x = 1, y = 2;
    for (int i = 0; i < 20; ++i) {
      lane->submit(sequence);
      x += 5;
      y = y * 3 + x + 7;
    }
    subject.settle(*lane);
    CHECK(subject.read(a) == std::vector<Word>(usual_length, x));
    CHECK(subject.read(b) == std::vector<Word>(usual_length, y));
    std::vector<Word> wanted(usual_length, y);
    std::fill_n(wanted.begin(), 100, 9);
    CHECK(subject.read(c) == wanted);
  }
}

CONTRACT_CASE("arguments set between runs apply only to later runs", {Ability::data}) {
  for (Twin twin : twins(*subject.device)) {
    const auto add = subject.kernel("add", twin), mix = subject.kernel("mix", twin);
    const std::vector<Word> ones(usual_length, 1);
    const std::vector<std::shared_ptr<BufferBase>> buffers = {subject.buffer(ones), subject.buffer(ones),
                                                              subject.buffer(ones)};
    std::vector<Word> model(3, 1);
    SequenceState sequence = sequence_of(subject);
    sequence.open().dispatch(add, arguments_of(argument(buffers[0]), Word{1}), usual_length);
    sequence.open().dispatch(mix, arguments_of(argument(buffers[0]), argument(buffers[1]), Word{1}),
                             usual_length);
    auto lane = subject.lane();
    std::mt19937_64 random(7);
    std::size_t from = 0, to = 1;
    Word first = 1, second = 1;
    for (int i = 0; i < 60; ++i) {  // all in flight at once
      switch (random() % 4) {
        case 0: REQUIRE(sequence.open().set(0, 1, argument(first = static_cast<Word>(random())))); break;
        case 1: REQUIRE(sequence.open().set(1, 2, argument(second = static_cast<Word>(random())))); break;
        case 2:
          from = random() % 3;
          to = (from + 1 + random() % 2) % 3;
          REQUIRE(sequence.open().set(0, 0, argument(buffers[from])));
          REQUIRE(sequence.open().set(1, 0, argument(buffers[from])));
          REQUIRE(sequence.open().set(1, 1, argument(buffers[to])));
          break;
        case 3: break;  // as it was
      }
      lane->submit(sequence);
      model[from] += first;
      model[to] = model[to] * 3 + model[from] + second;
      if (random() % 8 == 0) subject.settle(*lane);
    }
    subject.settle(*lane);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(subject.read(buffers[i]) == std::vector<Word>(usual_length, model[i]));
  }
}

CONTRACT_CASE("new buffers create new hazards, and dependent commands run in order", {Ability::data}) {
  const auto mix = subject.kernel("mix"), iota = subject.kernel("iota");
  const auto a = subject.words(usual_length), b = subject.words(usual_length),
             c = subject.words(usual_length);
  SequenceState sequence = sequence_of(subject);
  for (const auto& buffer : {a, b, c})
    sequence.open().dispatch(iota, arguments_of(argument(buffer), Word{0}), usual_length);
  sequence.open().dispatch(mix, arguments_of(argument(a), argument(b), Word{1}), usual_length);
  sequence.open().dispatch(mix, arguments_of(argument(a), argument(c), Word{2}),
                           usual_length);  // beside the one before
  auto lane = subject.lane();
  lane->submit(sequence);
  subject.settle(*lane);
  CHECK(subject.read(c)[10] == 42);
  REQUIRE(sequence.open().set(4, 0, argument(b)));  // behind it now
  for (int i = 0; i < 10; ++i) lane->submit(sequence);
  subject.settle(*lane);
  const std::vector<Word> got = subject.read(c);
  for (Word i = 0; i < usual_length; ++i) REQUIRE(got[i] == i * 3 + (i * 3 + i + 1) + 2);
}

CONTRACT_CASE("a sequence is longer after it was added to", {Ability::data}) {
  const auto add = subject.kernel("add");
  const auto a = subject.buffer(std::vector<Word>(usual_length, 0));
  SequenceState sequence = sequence_of(subject);
  auto lane = subject.lane();
  Word wanted = 0;
  for (Word steps = 1; steps <= 4; ++steps) {
    sequence.open().dispatch(add, arguments_of(argument(a), steps), usual_length);
    lane->submit(sequence);
    wanted += steps * (steps + 1) / 2;
  }
  subject.settle(*lane);
  CHECK(subject.read(a) == std::vector<Word>(usual_length, wanted));
}

CONTRACT_CASE("two lanes run one sequence, in the order of their waits", {Ability::data, Ability::order}) {
  const auto add = subject.kernel("add"), mix = subject.kernel("mix");
  const auto a = subject.buffer(std::vector<Word>(usual_length, 1)),
             b = subject.buffer(std::vector<Word>(usual_length, 1));
  SequenceState sequence = sequence_of(subject);
  sequence.open().dispatch(add, arguments_of(argument(a), Word{3}), usual_length);
  sequence.open().dispatch(mix, arguments_of(argument(a), argument(b), Word{1}), usual_length);
  auto first = subject.lane(), second = subject.lane();
  Word x = 1, y = 1;
  for (Word i = 0; i < 20; ++i) {
    Lane& now = i % 2 == 0 ? *first : *second;
    Lane& next = i % 2 == 0 ? *second : *first;
    REQUIRE(sequence.open().set(0, 1, argument(i)));
    next.wait_for(now.submit(sequence));
    x += i;
    y = y * 3 + x + 1;
  }
  subject.settle(*first);
  subject.settle(*second);
  CHECK(subject.read(a) == std::vector<Word>(usual_length, x));
  CHECK(subject.read(b) == std::vector<Word>(usual_length, y));
}

CONTRACT_CASE("a run that is held back keeps the arguments it was submitted with",
              {Ability::data, Ability::order}) {
  const auto gate = subject.timeline();
  const auto add = subject.kernel("add");
  const auto a = subject.buffer(std::vector<Word>(usual_length, 1));
  SequenceState sequence = sequence_of(subject);
  sequence.open().dispatch(add, arguments_of(argument(a), Word{10}), usual_length);
  auto lane = subject.lane(), other = subject.lane();
  other->submit(sequence);
  subject.settle(*other);
  lane->wait_for({gate, 1});
  lane->submit(sequence);
  REQUIRE(sequence.open().set(0, 1, argument(Word{100})));
  other->submit(sequence);
  subject.settle(*other);
  CHECK(subject.read(a) == std::vector<Word>(usual_length, 111));
  REQUIRE(gate->signal(1));
  subject.settle(*lane);
  CHECK(subject.read(a) == std::vector<Word>(usual_length, 121));
}

CONTRACT_CASE("a sequence may be destroyed while it runs; its objects live as long as needed",
              {Ability::data}) {
  const auto add = subject.kernel("add");
  const auto a = subject.buffer(std::vector<Word>(usual_length, 1));
  auto lane = subject.lane();
  {
    const auto passing = subject.buffer(std::vector<Word>(usual_length, 4));
    SequenceState sequence = sequence_of(subject);
    sequence.open().copy(range(passing), range(a));
    sequence.open().dispatch(add, arguments_of(argument(a), Word{3}), usual_length);
    lane->submit(sequence);
  }
  subject.settle(*lane);
  CHECK(subject.read(a) == std::vector<Word>(usual_length, 7));
}

CONTRACT_CASE("an invalid sequence is a failure of its lane, and the sequence can be corrected",
              {Ability::data}) {
  const auto add = subject.kernel("add");
  const auto a = subject.buffer(std::vector<Word>(usual_length, 1));
  const auto another = subject.open_another();
  const auto theirs = another->create_buffer({.bytes = Bytes{4 * usual_length}, .account = nullptr});
  REQUIRE(theirs);
  SequenceState sequence = sequence_of(subject);
  sequence.open().dispatch(add, arguments_of(argument(a), Word{3}), usual_length);
  for (const auto& wrong :
       {sequence.open().set(1, 0, argument(Word{1})), sequence.open().set(0, 2, argument(Word{1}))}) {
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error() == Errc::invalid_argument);
  }
  REQUIRE(sequence.open().set(0, 0, argument(*theirs)));
  auto failing = Lane::create(*subject.device);
  REQUIRE(failing);
  (*failing)->submit(sequence);
  auto waited = (*failing)->wait(subject.patience());
  REQUIRE_FALSE(waited);
  CHECK(waited.error() == Errc::invalid_argument);
  REQUIRE(sequence.open().set(0, 0, argument(a)));
  auto lane = subject.lane();
  lane->submit(sequence);
  subject.settle(*lane);
  CHECK(subject.read(a) == std::vector<Word>(usual_length, 4));
}

CONTRACT_CASE("a lane of high priority behaves like any other lane", {Ability::data}) {
  auto made = subject.device->create_lane({.priority = LanePriority::high});
  REQUIRE(made);
  Lane lane(*std::move(made));
  const auto a = subject.buffer(std::vector<Word>(usual_length, 1));
  lane.dispatch(subject.kernel("add"), arguments_of(argument(a), Word{3}), usual_length);
  subject.settle(lane);
  CHECK(subject.read(a) == std::vector<Word>(usual_length, 4));
}

}  // namespace wye::test
