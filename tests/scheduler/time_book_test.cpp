// The times of jobs and kernels, by kind.
#include "scheduler/time_book.hpp"

#include <wye/kernel/kernel.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "silicon/slots.hpp"
#include "support/catch.hpp"

using namespace wye;
using namespace std::chrono_literals;
using scheduler::TimeBook;
using scheduler::Timing;

namespace {

Timing timing_of(const std::vector<Duration>& times) {
  Timing timing;
  for (const Duration one : times) timing.note(one);
  return timing;
}

template <class T>
Job scaled(std::string name = "scale", std::string body = "x[0] *= s;", bool has_host = false) {
  std::vector<T> x(8);
  const std::string text = "extern \"C\" __global__ void scale(wye_span<T> x, T s) { " + body + " }";
  std::vector<AnySource> sources;
  const auto kernel =
      has_host ? Kernel<ReadWrite<T>, T>::make(
                     {.name = std::move(name),
                      .sources = {CudaCpp{.text = text}, host([](Range range, std::span<T> all, T by) {
                                    for (const std::uint64_t i : range) all[i] *= by;
                                  })}})
               : Kernel<ReadWrite<T>, T>::make({.name = std::move(name), .sources = {CudaCpp{.text = text}}});
  return kernel.value()(x, T(2));
}

struct Taker final : silicon::SlotTaker {
  void serve_waiting() noexcept override {}
};

}  // namespace

TEST_CASE("the first time is the mean, and each later one an eighth of it", "[scheduler][times]") {
  CHECK(timing_of({}).mean == 0ns);
  const Timing one = timing_of({10ms});
  CHECK(one.mean == 10ms);
  CHECK(one.spread == 0ns);
  CHECK(one.least == 10ms);
  CHECK(one.count == 1);
  CHECK(timing_of({10ms, 18ms}).mean == 11ms);
  CHECK(timing_of({10ms, 18ms}).spread == 8ms);
  CHECK(timing_of({10ms, 18ms, 3ms}).mean == 10ms);
  CHECK(timing_of({10ms, 18ms, 3ms}).spread == 8ms);
  CHECK(timing_of({0ns}).mean == 1ns);  // it is known
  CHECK(timing_of({-5ms}).mean == 1ns);
  CHECK(timing_of({Duration::max(), Duration::max()}).mean == std::chrono::hours(24 * 365));
}

TEST_CASE("earlier times are forgotten exponentially", "[scheduler][times]") {
  Timing timing = timing_of(std::vector<Duration>(100, 8ms));
  CHECK(timing.mean == 8ms);
  CHECK(timing.spread == 0ns);
  timing.note(16ms);
  CHECK(timing.mean == 9ms);
  CHECK(timing.spread == 1ms);
  for (int i = 0; i < 100; ++i) timing.note(4ms);
  CHECK(timing.mean < 4001us);
  CHECK(timing.spread < 1us);
  CHECK(timing.count == 201);
}

TEST_CASE("the spread is the mean distance of a time from the mean", "[scheduler][times]") {
  Timing timing;
  for (int i = 0; i < 200; ++i) timing.note(i % 2 == 0 ? 9ms : 11ms);
  CHECK(timing.mean > 9800us);
  CHECK(timing.mean < 10200us);
  CHECK(timing.spread > 900us);
  CHECK(timing.spread < 1200us);
}

TEST_CASE("one outlier moves the mean by an eighth and the spread, a lasting change in full",
          "[scheduler][times]") {
  Timing timing = timing_of(std::vector<Duration>(20, 10ms));
  timing.note(30s);
  CHECK(timing.mean <= 11250us);
  for (int i = 0; i < 16; ++i) timing.note(10ms);
  CHECK(timing.mean < 10200us);
  for (int i = 0; i < 16; ++i) timing.note(100ms);
  CHECK(timing.mean > 75ms);
  for (int i = 0; i < 16; ++i) timing.note(10ms);
  CHECK(timing.mean < 25ms);
}

TEST_CASE("the least time is forgotten slowly, but not before the ninth", "[scheduler][times]") {
  CHECK(timing_of({9ms, 5ms, 7ms, 9ms, 9ms, 9ms, 9ms, 9ms}).least == 5ms);
  Timing timing = timing_of({5ms});
  for (int i = 0; i < 16; ++i) timing.note(9ms);
  CHECK(timing.least > 5ms);
  CHECK(timing.least < 5300us);
  for (int i = 0; i < 300; ++i) timing.note(9ms);
  CHECK(timing.least == 9ms);
}

TEST_CASE("a kernel that is made again has the same number, another kernel has not", "[scheduler][times]") {
  const auto number = [](const Job& job) { return scheduler::number_of_kernels(job); };
  const std::uint64_t first = number(scaled<float>());
  CHECK(number(scaled<float>()) == first);
  CHECK(number(scaled<double>()) != first);  // the text is the same
  CHECK(number(scaled<std::int32_t>()) != first);
  CHECK(number(scaled<float>("other")) != first);
  CHECK(number(scaled<float>("scale", "x[0] += s;")) != first);
  const std::uint64_t with_function = number(scaled<float>("scale", "x[0] *= s;", true));
  CHECK(with_function != first);
  CHECK(number(scaled<float>("scale", "x[0] *= s;", true)) == with_function);
}

TEST_CASE("the number of several kernels depends on their order", "[scheduler][times]") {
  std::vector<float> x(8);
  const auto a =
      Kernel<ReadWrite<float>>::make({.name = "a", .sources = {host([](Range, std::span<float>) {})}});
  const auto b =
      Kernel<ReadWrite<float>>::make({.name = "b", .sources = {host([](Range, std::span<float>) {})}});
  const auto number = [&](const auto& first, const auto& second) {
    return scheduler::number_of_kernels(
        Job::sequence("two", workload_types::custom, (*first)(x), {(*second)(x)}));
  };
  CHECK(number(a, b) == number(a, b));
  CHECK(number(a, b) != number(b, a));
  CHECK(number(a, a) != number(a, b));
  CHECK(number(a, a) != scheduler::number_of_kernels((*a)(x)));
  CHECK(scheduler::number_of_kernels(
            Job::failed("none", workload_types::custom, Error(Errc::internal, ""))) == 0);
}

TEST_CASE("kernels, sizes and devices have rows of their own", "[scheduler][times]") {
  TimeBook book;
  const TimeBook::Key key{.kernels = 7, .size_class = 40, .group = 1};
  TimeBook::Row* const row = book.row(key);
  REQUIRE(row);
  CHECK(row->mean() == 0ns);
  CHECK(book.read(*row).held.count == 0);
  book.note(*row, 10ms, 8ms, Instant(1s));
  book.note(*row, 18ms, std::nullopt, Instant(2s));
  CHECK(book.row(key) == row);
  CHECK(row->mean() == 11ms);
  const TimeBook::Times times = book.read(*book.row(key));
  CHECK(times.held.mean == 11ms);
  CHECK(times.held.count == 2);
  CHECK(times.run.mean == 8ms);
  CHECK(times.run.count == 1);
  CHECK(times.last == Instant(2s));
  CHECK(book.read(*row).held.mean == 11ms);
  for (const TimeBook::Key& other : {TimeBook::Key{.kernels = 8, .size_class = 40, .group = 1},
                                     TimeBook::Key{.kernels = 7, .size_class = 41, .group = 1},
                                     TimeBook::Key{.kernels = 7, .size_class = 40, .group = 2}}) {
    CHECK(book.read(*book.row(other)).held.count == 0);
    CHECK(book.row(other) != row);
    CHECK(book.row(other)->mean() == 0ns);
  }
}

TEST_CASE("the commands of the first eight jobs of a kind are timed, and then of 1 in 64",
          "[scheduler][times]") {
  TimeBook book;
  TimeBook::Row* const row = book.row({.kernels = 1});
  std::vector<int> chosen;
  for (int i = 0; i < 200; ++i)
    if (TimeBook::samples(*row)) chosen.push_back(i);
  CHECK(chosen == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 64, 128, 192});
  CHECK(TimeBook::samples(*book.row({.kernels = 2})));  // each row counts its own jobs
}

TEST_CASE("times of commands are of one clock: that of the device, if there is one", "[scheduler][times]") {
  using device::StampClock;
  TimeBook book;
  TimeBook::Row* const row = book.row({.kernels = 1});
  const auto note = [&](Duration took, StampClock clock) {
    book.note_commands(*row, took, clock);
    return book.read(*row);
  };
  CHECK(book.read(*row).commands.count == 0);
  CHECK(book.read(*row).clock == StampClock::host);
  CHECK(note(4ms, StampClock::host).commands.mean == 4ms);
  CHECK(note(4ms, StampClock::host).commands.count == 2);
  CHECK(book.read(*row).clock == StampClock::host);
  const TimeBook::Times first = note(1ms, StampClock::device);
  CHECK(first.clock == StampClock::device);
  CHECK(first.commands.mean == 1ms);
  CHECK(first.commands.count == 1);
  CHECK(note(4ms, StampClock::host).commands.count == 1);
  CHECK(note(1ms, StampClock::device).commands.count == 2);
  book.note(*row, 10ms, 8ms, Instant());
  const TimeBook::Times all = book.read(*row);
  CHECK(all.commands.count == 2);
  CHECK(all.commands.least == 1ms);
  CHECK(all.held.count == 1);
  CHECK(all.run.mean == 8ms);
}

TEST_CASE("a full book adds no kind and keeps those that it has", "[scheduler][times]") {
  TimeBook book(2);
  const TimeBook::Key first{.kernels = 1}, second{.kernels = 2}, third{.kernels = 3};
  TimeBook::Row* const row = book.row(first);
  REQUIRE(row);
  REQUIRE(book.row(second));
  CHECK(book.row(third) == nullptr);
  book.note(*row, 3ms, 3ms, Instant());
  CHECK(book.row(first) == row);
  CHECK(book.read(*row).held.mean == 3ms);
}

TEST_CASE("the time of an unknown size follows from its neighbours", "[scheduler][times]") {
  TimeBook book;
  const auto row = [&](std::uint16_t size_class, std::uint16_t group = 1, std::uint64_t kernels = 7) {
    return book.row({.kernels = kernels, .size_class = size_class, .group = group});
  };
  const auto note = [&](TimeBook::Row* of, Duration took) { book.note(*of, took, took, Instant()); };
  CHECK(book.estimate(*row(40)) == 0ns);
  CHECK(book.known_kinds() == 0);
  note(row(40), 1ms);
  CHECK(book.known_kinds() == 1);
  CHECK(book.estimate(*row(40)) == 1ms);
  CHECK(book.estimate(*row(44)) == 2ms);  // an octave is four classes
  CHECK(book.estimate(*row(36)) == 500us);
  CHECK(book.estimate(*row(40, 2)) == 0ns);
  CHECK(book.estimate(*row(40, 1, 8)) == 0ns);
  note(row(48), 16ms);
  CHECK(book.estimate(*row(44)) == 4ms);  // between the logarithms of 1 ms and 16 ms
  CHECK(book.estimate(*row(52)) == 32ms);
  // On another group, of which one size is known, times grow as they do here.
  note(row(40, 2), 3ms);
  CHECK(book.estimate(*row(48, 2)) == 48ms);
  CHECK(book.estimate(*row(44, 2)) == 6ms);  // of this size no time is known anywhere
  CHECK(book.known_kinds() == 3);
  note(row(40), 1ms);
  CHECK(book.known_kinds() == 3);
}

TEST_CASE("an estimate is at most a year, and at least a nanosecond", "[scheduler][times]") {
  TimeBook book;
  const auto row = [&](std::uint16_t size_class) {
    return book.row({.kernels = 7, .size_class = size_class, .group = 1});
  };
  book.note(*row(120), std::chrono::hours(20'000), {}, Instant());
  CHECK(book.estimate(*row(259)) == std::chrono::hours(24 * 365));
  CHECK(book.estimate(*row(0)) > 0ns);
}

TEST_CASE("the slowness of a group is the geometric mean over kinds of one type and a belief",
          "[scheduler][times]") {
  TimeBook book;
  const auto row = [&](std::uint64_t kernels, std::uint16_t group) {
    return book.row({.kernels = kernels, .group = group}, {workload_types::matrix});
  };
  const auto note = [&](std::uint64_t kernels, std::uint16_t group, Duration took) {
    book.note(*row(kernels, group), took, took, Instant());
  };
  const auto slowness = [&](std::uint16_t group, std::uint16_t other, double believed) {
    return book.slowness(*row(9, group), other, believed);
  };
  CHECK(slowness(2, 1, 1) == 1);
  CHECK(slowness(2, 1, 100) == 100);
  note(7, 1, 1ms), note(7, 2, 4ms);
  CHECK(slowness(2, 1, 1) == Approx(2));
  CHECK(slowness(2, 1, 100) == Approx(20));
  CHECK(slowness(1, 2, 1) == Approx(0.5));
  note(8, 2, 16ms), note(8, 1, 1ms);
  CHECK(slowness(2, 1, 1) == Approx(4));
  CHECK(slowness(2, 3, 1) == 1);
  CHECK(book.slowness(*book.row({.kernels = 10, .group = 2}), 1, 1) == 1);  // of another type
}

TEST_CASE("kernels are tried after they have run for the given time elsewhere", "[scheduler][times]") {
  TimeBook book;
  TimeBook::Row* const here = book.row({.kernels = 7, .group = 1});
  TimeBook::Row* const there = book.row({.kernels = 7, .group = 2});
  CHECK(there->may_be_tried());
  book.note(*here, 3ms, {}, Instant());
  book.delay_trials(*there, 4ms);
  CHECK_FALSE(there->may_be_tried());
  CHECK_FALSE(book.row({.kernels = 7, .size_class = 1, .group = 2})->may_be_tried());
  CHECK(here->may_be_tried());
  book.note(*here, 3ms, {}, Instant());
  CHECK_FALSE(there->may_be_tried());
  book.note(*here, 1ms, {}, Instant());
  CHECK(there->may_be_tried());
  book.delay_trials(*there, Duration::max());
  CHECK_FALSE(there->may_be_tried());
}

TEST_CASE("a class of sizes has a least one", "[scheduler][times]") {
  using scheduler::least_of_class, scheduler::size_class;
  for (const std::uint64_t n : {0ull, 2ull, 3ull, 4ull, 5ull, 7ull, 8ull, 1000ull, 1ull << 40, 7ull << 60}) {
    const std::uint64_t least = least_of_class(size_class(n));
    INFO(n);
    CHECK(least <= n);
    CHECK(size_class(least) == size_class(n));
    if (least > 0) CHECK(size_class(least - 1) < size_class(n));
  }
}

TEST_CASE("a book lists what it knows, and forgets it", "[scheduler][times]") {
  TimeBook book;
  const auto row = [&](std::uint64_t kernels, std::uint16_t size_class, std::uint16_t group) {
    return book.row({.kernels = kernels, .size_class = size_class, .group = group},
                    {workload_types::matrix, kernels == 7 ? "multiply" : "add"});
  };
  book.note(*row(7, 40, 2), 4ms, 4ms, Instant() + 9ms, 0.5);
  book.note(*row(7, 40, 1), 1ms, 1ms, Instant());
  book.note(*row(7, 36, 1), 1ms, 1ms, Instant());
  book.note(*row(8, 36, 1), 1ms, 1ms, Instant());
  (void)row(8, 40, 1);
  const auto known = book.known();
  REQUIRE(known.size() == 4);
  CHECK(known[0].job == "add");
  CHECK(known[1].job == "multiply");
  CHECK(known[1].key.size_class == 36);
  CHECK(known[2].key.group == 1);
  CHECK(known[3].key.group == 2);
  CHECK(known[3].type == workload_types::matrix);
  CHECK(known[3].time.mean == 2ms);
  CHECK(known[3].time.count == 1);
  CHECK(known[3].last == Instant() + 9ms);
  const std::uint64_t kinds = book.known_kinds();
  book.forget();
  CHECK(book.known().empty());
  CHECK(book.known_kinds() != kinds);
  CHECK(row(7, 40, 2)->mean() == 0ms);
  CHECK(row(7, 40, 2)->held() == 0ms);
  CHECK(row(7, 40, 2)->run() == 0ms);
  CHECK_FALSE(row(7, 40, 2)->has_run());
  CHECK(book.slowness(*row(7, 40, 2), 1, 1) == 1);
  book.note(*row(7, 40, 2), 4ms, 4ms, Instant());
  CHECK(row(7, 40, 2)->mean() == 4ms);
}

TEST_CASE("of the time of a job, the part counts that it had its processor", "[scheduler][times]") {
  TimeBook book;
  TimeBook::Row* const row = book.row({.kernels = 7, .group = 1});
  book.note(*row, 8ms, {}, Instant(), 0.25);
  CHECK(row->mean() == 2ms);
  CHECK(row->held() == 8ms);
  CHECK(row->run() == 2ms);
}

TEST_CASE("a row knows how long its kernels have run since they ran on its group", "[scheduler][times]") {
  TimeBook book;
  TimeBook::Row* const here = book.row({.kernels = 7, .size_class = 4, .group = 1});
  TimeBook::Row* const there = book.row({.kernels = 7, .size_class = 8, .group = 2});
  TimeBook::Row* const other = book.row({.kernels = 8, .group = 1});
  CHECK_FALSE(here->has_run());
  CHECK(here->run_since() == 0ns);
  book.note(*there, 3ms, {}, Instant());
  book.note(*there, 4ms, {}, Instant());
  CHECK(here->run_since() == 7ms);
  CHECK(there->run_since() == 0ns);
  book.note(*here, 5ms, {}, Instant());
  CHECK(here->run_since() == 0ns);
  CHECK(there->run_since() == 5ms);
  CHECK(book.row({.kernels = 7, .size_class = 40, .group = 1})->has_run());  // another size
  CHECK_FALSE(other->has_run());
  CHECK(other->run_since() == 0ns);
}

TEST_CASE("calls have times of their own, which can be forgotten", "[scheduler][times]") {
  TimeBook book;
  const TimeBook::CallKind kind{{.kernels = 1}};
  CHECK(book.find_call(kind).count == 0);
  book.note_call(kind, 4ms);
  book.note_call(kind, 2ms);
  CHECK(book.find_call(kind).least == 2ms);
  CHECK(book.find_call(kind).count == 2);
  CHECK(book.read(*book.row(kind.key)).held.count == 0);
  TimeBook::Row* const row = book.row(kind.key);
  book.note(*row, 9ms, 9ms, Instant());
  book.forget_calls();
  CHECK(book.find_call(kind).count == 0);
  CHECK(row->mean() == 9ms);
}

TEST_CASE("threads share a book", "[scheduler][times]") {
  constexpr std::uint64_t kinds = 50;
  constexpr int threads = 4, rounds = 200;
  TimeBook book;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      for (int i = 0; i < rounds; ++i)
        for (std::uint64_t k = 0; k < kinds; ++k) {
          TimeBook::Row* const row = book.row({.kernels = k});
          book.note(*row, Duration(1 + k), Duration(1 + k), Instant());
          if (row->mean() != Duration(1 + k)) std::terminate();
          book.note_call({{.kernels = k}}, Duration(1 + k));
        }
    });
  for (std::thread& one : all) one.join();
  for (std::uint64_t k = 0; k < kinds; ++k) {
    CHECK(book.read(*book.row({.kernels = k})).held.count == threads * rounds);
    CHECK(book.find_call({{.kernels = k}}).count == threads * rounds);
  }
}

TEST_CASE("stretches of the least times of a book move the slots of a processor", "[scheduler][times]") {
  Taker taker;
  silicon::Slots slots(4);
  const auto member = slots.join(taker, {.follows_load = true});
  TimeBook book;
  const auto run = [&](std::uint64_t kernel, Duration took) {
    TimeBook::Row* const row = book.row({.kernels = kernel});
    book.note(*row, took, took, Instant());
    return slots.note_run(static_cast<double>(took.count()) /
                          static_cast<double>(book.read(*row).run.least.count()));
  };
  // Jobs of different lengths are not counted as stretched.
  for (std::uint64_t i = 0; i < 10'000; ++i) (void)run(i % 100, Duration(1 + 1000 * (i % 100)));
  CHECK(slots.limit() == 4);
  for (int i = 0; i < 16; ++i) (void)run(1000, 1ms);
  for (int i = 0; i < 16 * 3; ++i) (void)run(1000, 10ms);
  CHECK(slots.limit() == 1);
  member->wait(Instant(1ns));
  for (int i = 0; i < 16 * 300; ++i) (void)run(1000, 10ms);
  CHECK(slots.limit() == 4);  // the short ones are forgotten
  member->leave();
}
