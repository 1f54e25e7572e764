// Jobs that wait for a thread or a device: their order, and the limit of their number.
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::settled;

namespace {

/// A runtime on the CPU with one worker, which runs a job until `release`, and kernels that write their letter.
struct Line {
  ManualClock clock;
  test::Latch latch;
  std::vector<float> memory = {1.0f};
  std::string text;
  std::vector<std::unique_ptr<float>> places;
  Runtime runtime;
  std::deque<Ticket> tickets;
  Ticket blocker;

  explicit Line(SchedulerOptions options = {})
      : runtime(open(std::move(options), clock)),
        blocker(runtime.submit(latch.kernel(memory), {.time_limit = Duration::max(), .tag = "blocker"})) {
    latch.await();
  }
  Line(const Line&) = delete;
  ~Line() { latch.open = true; }

  static Runtime open(SchedulerOptions options, const Clock& clock) {
    options.concurrent_jobs = 1;
    return Runtime::open({.pool = {.backends = {"cpu"}, .lanes_per_device = 8},
                          .cache = {.disk = Bytes{0}},
                          .scheduler = std::move(options),
                          .clock = &clock})
        .value();
  }
  Job writer(char letter) {
    places.push_back(std::make_unique<float>(1.0f));
    return test::on_host("note", [this, letter](Range, std::span<float>) { text += letter; })(
        std::span(places.back().get(), 1));
  }
  Ticket& submit(char letter, const JobOptions& options = {}) {
    return tickets.emplace_back(runtime.submit(writer(letter), options));
  }
  /// Runs all jobs, one at a time, and returns their letters.
  std::string run() {
    latch.open = true;
    for (Ticket& ticket : tickets) (void)settled(ticket);
    CHECK(blocker.wait());
    return text;
  }
};

std::string sentence(Ticket& ticket) {
  const auto result = ticket.wait(0s);
  REQUIRE_FALSE(result);
  return result.error().sentence();
}

constexpr JobOptions low{.priority = Priority::low}, high{.priority = Priority::high};

}  // namespace

TEST_CASE("a job is overtaken by jobs of the next higher priority until it has aged", "[scheduler][order]") {
  Line line({.aging = 10s});
  line.submit('l', low);
  line.submit('n');
  line.clock.advance(10s);
  line.submit('h', high);  // counts as old as n, and has the higher priority
  line.submit('o');        // the same beside l
  line.clock.advance(1ns);
  line.submit('i', high);  // after n
  line.submit('p');        // after l
  line.clock.advance(10s);
  line.submit('j', high);  // before p, as h before n
  CHECK(line.run() == "hnioljp");
}

TEST_CASE("jobs two priorities lower are overtaken for twice the aging", "[scheduler][order]") {
  Line line({.aging = 10s});
  line.submit('l', low);
  line.clock.advance(20s);
  line.submit('h', high);
  line.clock.advance(1ns);
  line.submit('i', high);
  CHECK(line.run() == "hli");
}

TEST_CASE("without aging a lower priority waits for every higher one", "[scheduler][order]") {
  Line line({.aging = Duration::max()});
  line.submit('l', low);
  line.clock.advance(std::chrono::hours(24 * 365));
  line.submit('n');
  line.clock.advance(std::chrono::hours(24 * 365));
  line.submit('h', high);
  CHECK(line.run() == "hnl");
}

TEST_CASE("within a priority the first job to be due comes first, if the scheduler is asked to",
          "[scheduler][order]") {
  const auto submit = [](Line& line) {
    line.submit('a');
    line.submit('b', {.start_by = 3s});
    line.submit('c', {.start_by = 2s});
    line.submit('d', {.start_by = 3s});
    line.submit('e', {.priority = Priority::high, .start_by = 4s});
    line.submit('f', {.priority = Priority::low, .start_by = 1s});
    return line.run();
  };
  Line by_deadline({.order = JobOrder::earliest_deadline});
  CHECK(submit(by_deadline) == "ecbdaf");
  Line by_submission;
  CHECK(submit(by_submission) == "eabcdf");
}

TEST_CASE("a job that is submitted while the most jobs wait is refused, if the scheduler is asked to",
          "[scheduler][full]") {
  Line line({.max_queued = 2, .when_full = WhenFull::refuse});
  line.submit('a');
  Ticket& b = line.submit('b');
  Ticket& c = line.submit('c', {.priority = Priority::high, .tag = "frame 3"});
  CHECK(settled(c) == Errc::over_budget);
  CHECK(sentence(c) ==
        "Job 'note' (tag 'frame 3') was refused: the limit of waiting jobs is reached (max_queued = 2).");
  b.cancel();
  line.submit('d');
  CHECK(settled(line.submit('e')) == Errc::over_budget);
  CHECK(line.run() == "ad");
  CHECK_FALSE(settled(line.submit('f')));
  test::check_counts(line.runtime.metrics().jobs);
}

TEST_CASE("the job that would run last is dropped, if the scheduler is asked to", "[scheduler][full]") {
  Line line({.max_queued = 3, .when_full = WhenFull::drop_lowest});
  line.submit('a');
  Ticket& b = line.submit('b', {.priority = Priority::low, .tag = "first"});
  Ticket& c = line.submit('c', low);
  line.submit('d');
  CHECK(settled(c) == Errc::over_budget);
  CHECK_FALSE(b.ready());
  line.submit('e', high);
  CHECK(settled(b) == Errc::over_budget);
  CHECK(sentence(b) ==
        "Job 'note' (tag 'first') was dropped for job 'note': the limit of waiting jobs is reached "
        "(max_queued = 3).");
  CHECK(settled(line.submit('f')) == Errc::over_budget);       // it would run last
  CHECK(settled(line.submit('g', low)) == Errc::over_budget);  // likewise
  line.submit('h', high);                                      // in place of d
  CHECK(line.run() == "eha");
  test::check_counts(line.runtime.metrics().jobs);
}

TEST_CASE("of jobs of one priority, the last one to be due is dropped", "[scheduler][full]") {
  Line line({.order = JobOrder::earliest_deadline, .max_queued = 2, .when_full = WhenFull::drop_lowest});
  line.submit('a', {.start_by = 3s});
  Ticket& b = line.submit('b', {.start_by = 4s});
  CHECK(settled(line.submit('c', {.start_by = 4s})) == Errc::over_budget);
  CHECK_FALSE(b.ready());
  line.submit('d', {.start_by = 2s});
  CHECK(settled(b) == Errc::over_budget);
  CHECK(line.run() == "da");
}

TEST_CASE("a job that only waits for another one is not dropped", "[scheduler][full]") {
  Line line({.max_queued = 1, .when_full = WhenFull::drop_lowest});
  auto x = line.runtime.array(std::vector<float>(1, 1.0f));
  test::Latch second;
  line.tickets.push_back(
      line.runtime.submit(line.writer('a'), {.priority = Priority::low, .after = {line.blocker}}));
  CHECK(settled(line.submit('b', high)) == Errc::over_budget);
  CHECK(line.run() == "a");
}

TEST_CASE("submitting waits until a job starts, is cancelled, or the scheduler closes", "[scheduler][full]") {
  Line line({.max_queued = 1});
  Ticket& a = line.submit('a');
  std::atomic<int> submitted{0};
  std::optional<Ticket> b, c, d;
  const auto submit = [&](std::optional<Ticket>& ticket, char letter) {
    return std::async(std::launch::async, [&line, &submitted, &ticket, job = line.writer(letter)]() mutable {
      ticket = line.runtime.submit(std::move(job));
      ++submitted;
    });
  };
  auto first = submit(b, 'b');
  CHECK(first.wait_for(20ms) == std::future_status::timeout);
  a.cancel();
  first.get();
  auto second = submit(c, 'c'), third = submit(d, 'd');
  CHECK(second.wait_for(20ms) == std::future_status::timeout);
  CHECK(submitted == 1);
  line.latch.open = true;  // the worker runs b, and then each of the others
  second.get();
  third.get();
  for (std::optional<Ticket>* ticket : {&b, &c, &d}) CHECK_FALSE(settled(**ticket));
  CHECK(line.text.size() == 3);

  Line closing({.max_queued = 1});
  closing.submit('a');
  std::optional<Ticket> late;
  auto waits = std::async(std::launch::async, [&, job = closing.writer('b')]() mutable {
    late = closing.runtime.submit(std::move(job));
  });
  CHECK(waits.wait_for(20ms) == std::future_status::timeout);
  auto closes = std::async(std::launch::async, [&] { closing.runtime.close(); });
  waits.get();
  CHECK(settled(*late) == Errc::closed);
  closing.latch.open = true;
  closes.get();
}

TEST_CASE("a job that waits for room times out at its latest start", "[scheduler][full]") {
  test::Latch latch;
  std::vector<float> x = {1.0f}, y = {1.0f}, z = {1.0f};
  Runtime runtime =
      Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.concurrent_jobs = 1, .max_queued = 1}})
          .value();
  auto running = runtime.submit(latch.kernel(x));
  latch.await();
  auto queued = runtime.submit(test::host_scale()(y, 2.0f));
  auto late = runtime.submit(test::host_scale()(z, 2.0f), {.start_by = 10ms});
  CHECK(late.ready());
  CHECK(sentence(late) ==
        "Job 'host_scale' did not start in time: the limit of waiting jobs was reached (max_queued = 1).");
  latch.open = true;
  CHECK(queued.wait());
  CHECK(y == std::vector<float>{2.0f});
  CHECK(z == std::vector<float>{1.0f});
}

TEST_CASE("jobs that a job submits and jobs that their caller runs are accepted beyond the limit",
          "[scheduler][full]") {
  for (const WhenFull when_full : {WhenFull::wait, WhenFull::refuse, WhenFull::drop_lowest}) {
    Line line({.max_queued = 1, .when_full = when_full});
    std::vector<float> outer = {1.0f}, inner = {1.0f, 1.0f, 1.0f};
    std::optional<Errc> failure;
    const auto kernel = test::on_host("outer", [&](Range, std::span<float>) {
      std::vector<Ticket> tickets;
      for (std::size_t i = 0; i < inner.size(); ++i)
        tickets.push_back(line.runtime.submit(test::host_scale()(std::span(inner).subspan(i, 1), 3.0f)));
      for (Ticket& ticket : tickets)
        if (auto result = ticket.wait(); !result) failure = result.error().code();
    });
    auto runs = std::async(std::launch::async, [&] { return line.runtime.run(kernel(outer)).has_value(); });
    line.latch.open = true;
    CHECK(runs.get());
    CHECK_FALSE(failure);
    CHECK(inner == std::vector<float>(3, 3.0f));
  }
}

TEST_CASE("options of the order of jobs are checked", "[scheduler][order]") {
  const auto error = [](SchedulerOptions options) {
    return Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = std::move(options)}).error().sentence();
  };
  CHECK(error({.max_queued = 0}) == "The limit of waiting jobs (max_queued) is 0; it is at least 1.");
  CHECK(error({.aging = 0s}) == "The aging of jobs (0 s) is not positive.");
  CHECK(error({.aging = -1s}) == "The aging of jobs (-1 s) is not positive.");
}
