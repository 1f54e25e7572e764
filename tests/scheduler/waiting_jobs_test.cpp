// Jobs that wait for a thread or a device: their order, and the limit of their number.
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rig.hpp"
#include "scheduler/tags.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::settled;

namespace {

/// A runtime on the CPU with one worker, which runs a job until `run`, and kernels that write their
/// letter.
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
  ~Line() { latch.open(); }

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
    latch.open();
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

TEST_CASE("a job that is refused or dropped fails its outputs in its turn", "[scheduler][full]") {
  for (const WhenFull when_full : {WhenFull::refuse, WhenFull::drop_lowest}) {
    Line line({.max_queued = 2, .when_full = when_full});
    auto x = line.runtime.array(std::vector<float>(1, 1.0f)),
         y = line.runtime.array(std::vector<float>(1, 2.0f)),
         z = line.runtime.array(std::vector<float>(1, 3.0f));
    Ticket before = line.runtime.submit(test::copy()(x, z));
    line.submit('a');
    Ticket refused = line.runtime.submit(test::host_scale()(y, 2.0f), {.tag = "lost"});
    Ticket behind = line.runtime.submit(test::host_scale()(z, 2.0f), {.priority = Priority::low});
    REQUIRE(refused.ready());
    REQUIRE(behind.ready());
    CHECK(y.read(0ms).error() == Errc::over_budget);  // it follows no job
    CHECK(z.read(0ms).error() == Errc::timed_out);    // it follows the job before
    line.latch.open();
    CHECK(line.blocker.wait());
    CHECK_FALSE(settled(before));
    CHECK(z.read().error() == Errc::over_budget);
    const auto reader = line.runtime.run(test::copy()(y, x));
    CHECK(reader.error() == Errc::over_budget);
    CHECK(reader.error().sentence().find("Job 'host_scale' (tag 'lost') was refused") == 0);
    CHECK(x.read().error() == Errc::over_budget);
    for (float& value : y.write().value()) value = 5.0f;
    CHECK(line.runtime.run(test::copy()(y, x)));
    CHECK(test::contents(x) == std::vector<float>{5.0f});
    test::check_counts(line.runtime.metrics().jobs);
  }
}

TEST_CASE("a job whose start_by passes while `submit` waits for room fails its outputs",
          "[scheduler][full]") {
  Line line({.max_queued = 1});
  line.submit('a');
  auto x = line.runtime.array(std::vector<float>(1, 1.0f));
  auto late = line.runtime.submit(test::host_scale()(x, 2.0f), {.start_by = 0s});
  CHECK(settled(late) == Errc::timed_out);
  CHECK(x.read(0ms).error() == Errc::timed_out);
  CHECK(x.read(0ms).error().sentence() == sentence(late));
}

TEST_CASE("the run of a plan that is refused fails the arrays that it should have written",
          "[scheduler][full][plan]") {
  Line line({.max_queued = 1, .when_full = WhenFull::refuse});
  auto x = line.runtime.array(std::vector<float>(1, 1.0f)),
       y = line.runtime.array(std::vector<float>(1, 2.0f));
  Graph graph;
  graph.add(test::copy()(x, y));
  graph.add(test::host_scale()(y, 2.0f));
  auto plan = graph.compile(line.runtime.scheduler(), {.name = "both"});
  REQUIRE(plan);
  line.submit('a');
  Ticket refused = plan->run();
  REQUIRE(refused.ready());
  CHECK(sentence(refused).find("Job 'both' was refused") == 0);
  CHECK(y.read(0ms).error() == Errc::over_budget);
  CHECK(test::contents(x) == std::vector<float>{1.0f});
  CHECK(plan->run({.on = "cpu"}).wait().error() == Errc::invalid_argument);
  CHECK(y.read(0ms).error() == Errc::invalid_argument);
  CHECK(line.run() == "a");
  CHECK(plan->run().wait());
  CHECK(test::contents(y) == std::vector<float>{2.0f});
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
  line.latch.open();  // the worker runs b, and then each of the others
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
  closing.latch.open();
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
  latch.open();
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
    line.latch.open();
    CHECK(runs.get());
    CHECK_FALSE(failure);
    CHECK(inner == std::vector<float>(3, 3.0f));
  }
}

TEST_CASE("of the jobs of a tag, at most its limit run at the same time", "[scheduler][tags]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}, .lanes_per_device = 8},
                                   .scheduler = {.tags = {{.tag = "io", .concurrent = 2}}}})
                        .value();
  test::Latch first, second, third, other;
  std::vector<float> x(4, 1.0f);
  const auto place = [&](std::size_t i) { return std::span(x).subspan(i, 1); };
  const JobOptions io{.tag = "io"};
  auto a = runtime.submit(first.kernel(place(0)), io), b = runtime.submit(second.kernel(place(1)), io);
  first.await();
  second.await();
  auto c = runtime.submit(third.kernel(place(2)), io);
  auto d = runtime.submit(other.kernel(place(3)), {.tag = "other"});
  other.await();  // the limit of one tag holds back no other tag
  CHECK(runtime.metrics().jobs.queued == 1);
  second.open();
  third.await();
  for (test::Latch* latch : {&first, &third, &other}) latch->open();
  for (Ticket* ticket : {&a, &b, &c, &d}) CHECK_FALSE(settled(*ticket));
  test::check_counts(runtime.metrics().jobs);
}

TEST_CASE("jobs that wait for the limit of their tag keep their order, and can be cancelled",
          "[scheduler][tags]") {
  Line line({.tags = {{.tag = "one", .concurrent = 1}}});
  const JobOptions one{.tag = "one"};
  line.submit('a', one);
  line.submit('b', {.priority = Priority::low, .tag = "one"});
  line.submit('c', one).cancel();
  line.submit('d', {.priority = Priority::high, .tag = "one"});
  line.submit('e', one);
  CHECK(line.run() == "daeb");
}

TEST_CASE("a job runs a job of its own tag that it waits for, beyond the limit", "[scheduler][tags]") {
  Runtime runtime =
      Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.tags = {{.tag = "one", .concurrent = 1}}}})
          .value();
  std::vector<float> x = {1.0f}, y = {1.0f};
  const auto outer = test::on_host("outer", [&](Range, std::span<float> all) {
    all[0] = runtime.submit(test::host_scale()(y, 3.0f), {.tag = "one"}).wait() ? 2.0f : -1.0f;
  });
  for (int i = 0; i < 3; ++i) {
    auto ticket = runtime.submit(outer(x), {.tag = "one"});
    CHECK_FALSE(settled(ticket));
  }
  CHECK(x[0] == 2.0f);
  CHECK(y[0] == 27.0f);
}

TEST_CASE("closing settles the jobs that wait for the limit of their tag", "[scheduler][tags]") {
  Runtime runtime =
      Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.tags = {{.tag = "one", .concurrent = 1}}}})
          .value();
  test::Latch latch;
  std::vector<float> x(101, 1.0f);
  auto running = runtime.submit(latch.kernel(std::span(x).subspan(100, 1)), {.tag = "one"});
  latch.await();
  std::deque<Ticket> waiting;
  for (std::size_t i = 0; i < 100; ++i)
    waiting.push_back(runtime.submit(test::host_scale()(std::span(x).subspan(i, 1), 2.0f), {.tag = "one"}));
  std::vector<float> other = {1.0f};
  auto passes = runtime.submit(test::host_scale()(other, 2.0f));  // the workers have seen all of them
  CHECK_FALSE(settled(passes));
  auto closes = std::async(std::launch::async, [&] { runtime.close(); });
  for (Ticket& ticket : waiting) CHECK(settled(ticket) == Errc::closed);
  latch.open();
  closes.get();
  CHECK(running.wait());
  test::check_counts(runtime.metrics().jobs);
}

TEST_CASE("each tag gets its share", "[scheduler][tags]") {
  Line line({.order = JobOrder::fair_shares, .tags = {{.tag = "a", .share = 3.0}}});
  for (int i = 0; i < 40; ++i) line.submit('a', {.tag = "a"});
  for (int i = 0; i < 40; ++i) line.submit('b', {.tag = "b"});
  line.submit('h', {.priority = Priority::high, .tag = "b"});
  const std::string order = line.run();
  CHECK(order.front() == 'h');
  const std::string both = order.substr(1, 40);
  CHECK(std::abs(std::count(both.begin(), both.end(), 'a') - 30) <= 1);
  CHECK(std::count(order.begin(), order.end(), 'b') == 40);
}

TEST_CASE("a tag that had no jobs for a while gains nothing by that", "[scheduler][tags]") {
  Line line({.order = JobOrder::fair_shares});
  test::Latch middle;
  std::vector<float> held = {1.0f};
  for (int i = 0; i < 100; ++i) line.submit('a', {.tag = "a"});
  auto blocker = line.runtime.submit(middle.kernel(held), {.tag = "a"});
  for (int i = 0; i < 100; ++i) line.submit('a', {.tag = "a"});
  line.latch.open();
  middle.await();  // tag 'a' has had the only worker for 100 jobs
  for (int i = 0; i < 20; ++i) line.submit('b', {.tag = "b"});
  middle.open();
  const std::string order = line.run().substr(100);
  CHECK_FALSE(settled(blocker));
  const std::string both = order.substr(0, 40);
  CHECK(std::abs(std::count(both.begin(), both.end(), 'b') - 20) <= 2);
  CHECK(both.find("bbb") == std::string::npos);
}

TEST_CASE("shares are of the time that jobs run, not of their number", "[scheduler][tags]") {
  Line line({.order = JobOrder::fair_shares});
  std::map<char, Duration> time;
  int left = 400;
  std::function<void(char, Duration)> next = [&](char letter, Duration length) {
    line.places.push_back(std::make_unique<float>(1.0f));
    const auto kernel = test::on_host("note", [&, letter, length](Range, std::span<float>) {
      line.clock.advance(length);
      time[letter] += length;
    });
    auto ticket = std::make_shared<Ticket>(line.runtime.submit(kernel(std::span(line.places.back().get(), 1)),
                                                               {.tag = std::string_view(&letter, 1)}));
    ticket->then([&, ticket, letter, length](const Result<Outcome>&) {
      if (--left > 0) next(letter, length);
    });
  };
  for (int i = 0; i < 4; ++i) {
    next('l', 4ms);
    next('s', 1ms);
  }
  line.latch.open();
  REQUIRE(line.runtime.scheduler().quiesce());
  const double ratio = std::chrono::duration<double>(time['l']) / std::chrono::duration<double>(time['s']);
  CHECK(ratio > 0.8);
  CHECK(ratio < 1.25);
}

TEST_CASE("tags that come and go are forgotten", "[scheduler][tags]") {
  scheduler::Tags tags({{.tag = "listed"}}, {}, true);
  for (int i = 0; i < 10'000; ++i) {
    scheduler::TagState& tag = *tags.enter("frame " + std::to_string(i));
    tags.started(tags.ready(tag));
    tags.leave(tag, 1ms);
    tags.started(tags.next_start(tag));
  }
  CHECK(tags.size() <= 128);
  CHECK(tags.enter("listed")->is_listed);
}

TEST_CASE("options of the order of jobs are checked", "[scheduler][order]") {
  const auto error = [](SchedulerOptions options) {
    return Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = std::move(options)}).error().sentence();
  };
  CHECK(error({.max_queued = 0}) == "The limit of waiting jobs (max_queued) is 0; it is at least 1.");
  CHECK(error({.aging = 0s}) == "The aging of jobs (0 s) is not positive.");
  CHECK(error({.tags = {{.tag = "a", .share = 0.0}}}) ==
        "The share of tag 'a' (0) is not in the range 0.001 to 1000.");
  CHECK(error({.tags = {{.tag = "a", .share = std::nan("")}}}) ==
        "The share of tag 'a' (nan) is not in the range 0.001 to 1000.");
  CHECK(error({.tags = {{.tag = "a", .concurrent = 0}}}) == "The limit of concurrent jobs of tag 'a' is 0.");
  CHECK(error({.tags = {{.tag = "a"}, {.tag = "b"}, {.tag = "a"}}}) == "The options name tag 'a' twice.");
  CHECK(error({.aging = -1s}) == "The aging of jobs (-1 s) is not positive.");
}
