// Objects that are destroyed while the device still uses them, and handles that outlive others.
#include "contract/suite.hpp"

namespace wye::test {

CONTRACT_CASE("buffers, executables and recordings may be dropped while in flight",
              {Ability::data, Ability::order}) {
  for (Twin twin : twins(*subject.device))
    for (std::size_t count : std::initializer_list<std::size_t>{1000, 500'000}) {
      const auto gate = subject.timeline();
      std::vector<Word> got(count, 0xdeadbeef);
      auto lane = subject.lane();
      {
        const auto from = subject.buffer(std::vector<Word>(count, 4)),
                   to = subject.buffer(std::vector<Word>(count, 5));
        lane->wait_for({gate, 1});
        lane->dispatch(subject.kernel("mix", twin), arguments_of(argument(from), argument(to), Word{1}),
                       count);
        lane->download(range(to), writable_bytes_of(got));
        lane->submit();
      }
      std::vector<std::shared_ptr<BufferBase>> others;  // memory freed too early would be reused
      for (int i = 0; i < 10; ++i) others.push_back(subject.buffer(std::vector<Word>(count, 0xbad)));
      REQUIRE(gate->signal(1));
      subject.settle(*lane);
      CHECK(got == std::vector<Word>(count, 20));
    }
}

CONTRACT_CASE("the objects of a completed submission are freed", {}) {
  auto account = std::make_shared<MemoryAccount>("test", 1_MiB);
  auto lane = subject.lane();
  auto buffer = subject.buffer(1000_B, account);
  lane->fill(range(buffer), 1);
  subject.settle(*lane);
  buffer.reset();
  CHECK(account->held() == 0_B);
}

CONTRACT_CASE("a destroyed lane completes its submitted work", {Ability::data}) {
  const auto buffer = subject.buffer(std::vector<Word>(5000, 1));
  {
    auto lane = subject.lane();
    const auto add = subject.kernel("add");
    for (Word i = 0; i < 50; ++i) {
      lane->dispatch(add, arguments_of(argument(buffer), i), 5000);
      lane->submit();
    }
  }
  CHECK(subject.read(buffer) == std::vector<Word>(5000, 1 + 49 * 25));
}

CONTRACT_CASE("recorded commands that were not submitted do not run", {Ability::data}) {
  const auto buffer = subject.buffer(std::vector<Word>(10, 1));
  { subject.lane()->fill(range(buffer), 2); }
  CHECK(subject.read(buffer) == std::vector<Word>(10, 1));
}

CONTRACT_CASE("buffers, lanes and executables keep their device open", {}) {
  Subject own = subject;
  own.device = subject.open_another();
  const std::weak_ptr<DeviceBase> watched = own.device;
  auto lane = own.lane();
  auto buffer = own.words(100);
  auto add = own.kernel("add");
  auto timeline = own.timeline();
  own.device.reset();
  REQUIRE_FALSE(watched.expired());
  CHECK(buffer->device()->info().id == subject.info().id);
  lane->fill(range(buffer), 1);
  lane->dispatch(add, arguments_of(argument(buffer), Word{2}), 100);
  REQUIRE(lane->wait(subject.patience()));
  lane.reset();
  add.reset();
  CHECK_FALSE(watched.expired());
  buffer.reset();
  timeline.reset();
  CHECK(watched.expired());
}

CONTRACT_CASE("a device may be opened again and again, several at once", {}) {
  for (int i = 0; i < 3; ++i) {
    const auto one = subject.open_another(), two = subject.open_another();
    CHECK(one != two);
    CHECK(one->info().id == two->info().id);
    auto lane = two->create_lane();
    REQUIRE(lane);
  }
}

CONTRACT_CASE("a recording may be submitted many times, by several lanes", {Ability::data}) {
  for (Twin twin : twins(*subject.device)) {
    const auto buffer = subject.buffer(std::vector<Word>(300, 1));
    auto recording = std::make_shared<Recording>();
    recording->dispatch(subject.kernel("add", twin), arguments_of(argument(buffer), Word{1}), 300);
    recording->dispatch(subject.kernel("add", twin), arguments_of(argument(buffer), Word{2}), 300);
    recording->close();
    auto a = subject.lane_base(), b = subject.lane_base();
    for (LaneBase* lane : {a.get(), b.get(), a.get()}) {
      std::uint64_t last = 0;
      for (int i = 0; i < 10; ++i) {
        auto value = lane->submit({.recording = recording, .waits = {}, .stop = {}});
        REQUIRE(value);
        last = *value;
      }
      REQUIRE(lane->wait(last, subject.patience()));
    }
    CHECK(subject.read(buffer) == std::vector<Word>(300, 91));
  }
}

CONTRACT_CASE("an empty recording signals its value", {}) {
  auto recording = std::make_shared<Recording>();
  recording->close();
  auto lane = subject.lane_base();
  auto value = lane->submit({.recording = recording, .waits = {}, .stop = {}});
  REQUIRE(value);
  REQUIRE(lane->wait(*value, subject.patience()));
  CHECK(lane->timeline()->reached() >= *value);
}

CONTRACT_CASE("driver code can be loaded into the driver again", {}) {
  const auto kernel = subject.kernel("add");
  auto code = subject.device->driver_code();
  REQUIRE(code);
  if (!code->empty()) {  // a driver that gives nothing away takes anything
    CHECK(subject.device->preload(*code));
    for (const std::size_t cut : {std::size_t{0}, std::size_t{8}}) {
      auto refused = subject.device->preload(std::span(*code).first(cut));
      REQUIRE_FALSE(refused);
      CHECK(refused.error() == Errc::corrupt);
    }
  }
  CHECK(subject.device->driver_identity() == subject.open_another()->driver_identity());
}

CONTRACT_CASE("threads make and drop buffers, executables and lanes at the same time", {}) {
  in_threads(4, [&](unsigned i) {
    std::mt19937_64 random(31 + i);
    for (int round = 0; round < 10; ++round) {
      std::vector<std::shared_ptr<BufferBase>> buffers;
      for (int n = 0; n < 8; ++n) buffers.push_back(subject.words(random() % 5000 + 4));
      auto lane = subject.lane();
      const auto add = subject.kernel("add", twins(*subject.device).back());
      for (const auto& buffer : buffers) {
        lane->fill(range(buffer), i);
        lane->dispatch(add, arguments_of(argument(buffer), Word{1}), 4);
        if (random() % 3 == 0) lane->submit();
      }
      if (round % 2 == 0) subject.settle(*lane);
    }
  });
}

}  // namespace wye::test
