// Flights of one job, of recorded commands and of several jobs, without a scheduler.
#include "flight/flight.hpp"

#include <wye/base/clock.hpp>

#include <chrono>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "rig.hpp"
#include "support/failing_new.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using flight::Shortage;
using test::One;
using test::Scene;
using test::Scripted;
using test::scripted;
using Step = test::ScriptedDevice::Step;

namespace {

using Values = std::vector<float>;

Scene scene_of(const Scripted& device, PoolOptions options = {}, const Clock& clock = Clock::steady()) {
  options.clock = &clock;
  return Scene(test::pool_of({device}, std::move(options)), clock);
}

/// y[z][i] = x[z][i] + shift, of a host function that sees the grid as one range.
using Shift = Kernel<Read<float>, float, Write<float>>;
Shift shift() {
  return Shift::make(
             {.name = "shift",
              .sources = {host([](Range range, std::span<const float> x, float by, std::span<float> y) {
                for (const auto i : range) y[i] = x[i] + by;
              })},
              .batchable = {0, 2}})
      .value();
}

/// A flight whose dispatches are between stamps.
struct Stamped : One {
  Stamped(const Scene& by, std::vector<Call> of, bool is_timed = false,
          const flight::Binding::Operands* operands = nullptr)
      : One(by, std::move(of), {}, operands, Instant::max(), is_timed, true) {}
};

constexpr std::size_t large = flight::least_measured.count / sizeof(float);

}  // namespace

TEST_CASE("a flight runs a call on every kind of device", "[flight]") {
  for (const char* backend : {"scripted", "cpu", "null"}) {
    INFO(backend);
    const Scene scene(backend == std::string("scripted")
                          ? test::pool_of({scripted("cuda:0")})
                          : ContextPool::open({.backends = {backend}}).value());
    Values x{1, 2, 3};
    One one(scene, {test::scale()(x, 2.0f)});
    REQUIRE(one.fly());
    CHECK(one.flight->has_begun());
    one.flight->publish();
    one.flight.reset();
    CHECK(x == (backend == std::string("null") ? Values{1, 2, 3} : Values{2, 4, 6}));
    CHECK(scene.held() == 0_B);
  }
}

TEST_CASE("calls of one flight see the results of the calls before them", "[flight]") {
  const Scene scene = scene_of(scripted("cuda:0"));
  const auto scale = test::host_scale();
  Values x{1, 2};
  One one(scene, {scale(x, 2.0f), scale(x, 3.0f)});
  REQUIRE(one.fly());
  CHECK(x == Values{6, 12});
  CHECK(one.flight->transferred() == Bytes{2 * 2 * sizeof(float)});  // once to the device and once back
}

TEST_CASE("a flight whose commands are in flight returns the point that they reach", "[flight]") {
  const Scripted device = scripted("cuda:0");
  const Scene scene = scene_of(device);
  Values x{1};
  One one(scene, {test::host_scale()(x, 2.0f)});
  REQUIRE(one.begin());
  CHECK_FALSE(one.flight->has_begun());
  device->hold();
  const auto point = one.flight->submit(false);
  REQUIRE(point);
  CHECK(one.flight->has_begun());
  CHECK(point->timeline->reached() < point->value);
  CHECK(x == Values{1});
  device->release();
  CHECK(point->timeline->reached() >= point->value);
  const auto completed = one.flight->complete();
  REQUIRE(completed);
  CHECK(*completed);
  CHECK(x == Values{2});
  CHECK_FALSE(one.flight->submit(false));  // nothing is in flight
}

TEST_CASE("large downloads follow the commands in a submission of their own", "[flight]") {
  const Scripted device = scripted("cuda:0");
  ManualClock clock;
  const Scene scene = scene_of(device, {}, clock);
  Values y(large);
  const auto fill =
      Kernel<Write<float>>::make({.name = "fill", .sources = {host([](Range range, std::span<float> to) {
                                                    for (const auto i : range) to[i] = 1.0f;
                                                  })}})
          .value();
  One one(scene, {fill(y)});
  REQUIRE(one.begin(clock.now()));
  const int before = device->count(Step::submit);
  (void)one.flight->submit(true);
  clock.advance(5s);  // of the commands
  const auto commands = one.flight->complete();
  REQUIRE(commands);
  CHECK_FALSE(*commands);
  CHECK(y.back() == 0.0f);
  (void)one.flight->submit(true);
  clock.advance(2s);  // of the downloads
  const auto all = one.flight->complete();
  REQUIRE(all);
  CHECK(*all == clock.now());
  CHECK(y == Values(large, 1.0f));
  CHECK(device->count(Step::submit) == before + 2);
  CHECK(one.times.transfer == 2s);
}

TEST_CASE("a timed step is submitted alone and measured", "[flight]") {
  const Scripted device = scripted("cuda:0");
  ManualClock clock;
  const Scene scene = scene_of(device, {}, clock);
  const auto slow = test::on_host("slow", [&](Range, std::span<float> x) {
    clock.advance(3s);
    x[0] += 1;
  });
  Values x{1}, y{1};
  const auto quick = test::on_host("quick", [](Range, std::span<float> to) { to[0] += 1; });
  One one(scene, {slow(x), quick(y)}, {}, nullptr, Instant::max(), true);
  REQUIRE(one.begin(clock.now()));
  CHECK(one.flight->has_begun());
  CHECK(one.flight->time_of(0) == 3s);
  CHECK(one.flight->time_of(1) == 0s);  // it was measured too
  REQUIRE(one.complete());
  CHECK(x == Values{2});
  CHECK(y == Values{2});
}

TEST_CASE("a stamped flight returns when its dispatches ran", "[flight]") {
  for (const char* backend : {"cpu", "null"}) {
    INFO(backend);
    const Scene scene(ContextPool::open({.backends = {backend}}).value());
    Values x{1, 2, 3};
    Stamped one(scene, {test::scale()(x, 2.0f), test::scale()(x, 3.0f)});
    const Instant before = Clock::steady().now();
    REQUIRE(one.begin());
    CHECK_FALSE(one.flight->stamped());
    REQUIRE(one.complete());
    const Instant after = Clock::steady().now();
    const auto& times = one.flight->stamped();
    REQUIRE(times);
    CHECK(times->clock == device::StampClock::host);
    CHECK(times->begin >= before.time_since_epoch());
    CHECK(times->end >= times->begin);
    CHECK(times->end <= after.time_since_epoch());
    One plain(scene, {test::scale()(x, 2.0f)});
    REQUIRE(plain.fly());
    CHECK_FALSE(plain.flight->stamped());
  }
}

TEST_CASE("the stamps of a lane are created once, and warm flights allocate nothing for them", "[flight]") {
  const Scene scene(ContextPool::open({.backends = {"null"}, .lanes_per_device = 1}).value());
  const auto scale = test::scale();
  Values x{1, 2, 3};
  const auto allocations_of = [&](bool is_stamped) {
    One one(scene, {scale(x, 2.0f)}, {}, nullptr, Instant::max(), false, is_stamped);
    const long before = test::allocations;
    const bool is_complete = one.fly().has_value();
    const long allocated = test::allocations - before;
    REQUIRE(is_complete);
    CHECK(one.flight->stamped().has_value() == is_stamped);
    return allocated;
  };
  for (int i = 0; i < 3; ++i) (void)allocations_of(true);
  const long plain = allocations_of(false);
  CHECK(allocations_of(true) == plain);
  CHECK(allocations_of(true) == plain);

  const Scripted device = scripted("cuda:0");
  const Scene without = scene_of(device, {.lanes_per_device = 1});
  for (int i = 0; i < 3; ++i) {
    Stamped one(without, {test::host_scale()(x, 2.0f)});
    REQUIRE(one.fly());
    CHECK_FALSE(one.flight->stamped());
  }
  CHECK(device->stamps_asked() == 1);  // it has no clock
}

TEST_CASE("a stamped flight completes or runs out of memory, whichever allocation fails",
          "[flight][no_tsan]") {
  const auto scale = test::scale();
  Values x{1, 2, 3};
  long n = 0;
  for (bool has_failed = true; has_failed && n < 500; ++n) {
    INFO("allocation " << n);
    const Scene scene(ContextPool::open({.backends = {"null"}, .lanes_per_device = 1}).value());
    {
      Stamped one(scene, {scale(x, 2.0f)});
      std::optional<Result<void>> done;
      test::fail_allocations(n, test::Failing::all_of_thread);
      try {
        done = one.fly();
      } catch (const std::bad_alloc&) {  // as the error of a job
      }
      test::fail_no_allocations();
      has_failed = test::failed_allocations() > 0;
      if (!has_failed) CHECK(done.value());
      if (!has_failed) CHECK(one.flight->stamped());
      if (done && !*done) CHECK(done->error() == Errc::out_of_memory);
    }
    Stamped next(scene, {scale(x, 2.0f)});
    REQUIRE(next.fly());
  }
  CHECK(n > 1);
  CHECK(n < 500);
}

TEST_CASE("stamps are not around transfers, also if large downloads follow in a submission of their own",
          "[flight]") {
  const Scripted device = scripted("cuda:0");
  device->give_clock(7ns);
  const Scene scene = scene_of(device);
  Values x(large, 1.0f);
  Stamped one(scene, {test::host_scale()(x, 2.0f)});
  REQUIRE(one.begin());
  (void)one.flight->submit(true);
  const auto commands = one.flight->complete();
  REQUIRE(commands);
  CHECK_FALSE(*commands);
  CHECK_FALSE(one.flight->stamped());
  REQUIRE(one.complete());
  REQUIRE(one.flight->stamped());
  CHECK(one.flight->stamped()->duration() == 7ns);
  CHECK(one.flight->stamped()->clock == device::StampClock::device);
}

TEST_CASE("flights with a leader, timed steps or recorded commands take no stamps", "[flight]") {
  const Scripted device = scripted("cuda:0");
  device->give_clock(7ns);
  const Scene scene = scene_of(device);
  const auto scale = test::host_scale();
  Values a{1}, b{2};
  {
    Stamped first(scene, {scale(a, 2.0f)}), second(scene, {scale(b, 2.0f)});
    for (One* const one : {static_cast<One*>(&first), static_cast<One*>(&second)})
      REQUIRE(one->prepare(false));
    first.flight->lead(*second.flight);
    REQUIRE(first.flight->lease());
    REQUIRE(first.flight->bind());
    REQUIRE(first.flight->record());
    REQUIRE(first.complete());
    const Result<std::optional<Instant>> ended(Instant(7s));
    first.flight->end_lead(ended);
    REQUIRE(second.flight->complete());
    CHECK_FALSE(first.flight->stamped());
    CHECK_FALSE(second.flight->stamped());
  }
  Stamped timed(scene, {scale(a, 2.0f)}, true);
  REQUIRE(timed.fly());
  CHECK_FALSE(timed.flight->stamped());
  const flight::Binding::Operands none;
  CHECK_FALSE(Stamped(scene, {scale(a, 2.0f)}, false, &none).flight->stamped());
  CHECK(device->stamps_asked() == 0);
  CHECK(a == Values{4});
  CHECK(b == Values{4});
}

TEST_CASE("a lane that is replaced takes its stamps with it", "[flight]") {
  const Scripted device = scripted("cuda:0");
  device->give_clock(7ns);
  const Scene scene = scene_of(device, {.lanes_per_device = 1});
  const auto scale = test::host_scale();
  Values x{1}, y{1};
  {
    Stamped cut_short(scene, {scale(x, 2.0f)});
    REQUIRE(cut_short.begin());
    device->hold();
    REQUIRE(cut_short.flight->submit(false));
    cut_short.stop = true;
    CHECK(cut_short.flight->complete().error() == Errc::cancelled);
    cut_short.flight->discard();
  }  // its work is in flight
  Stamped next(scene, {scale(y, 2.0f)});
  REQUIRE(next.begin());
  CHECK(device->stamps_asked() == 2);
  device->release();
  REQUIRE(next.complete());
  CHECK(next.flight->stamped());
}

TEST_CASE("flights with a leader share its lease and its submission", "[flight]") {
  const Scripted device = scripted("cuda:0");
  const Scene scene = scene_of(device, {.lanes_per_device = 1});
  const auto scale = test::host_scale();
  Values a{1}, b{2}, c{3};
  One first(scene, {scale(a, 2.0f)}), second(scene, {scale(b, 2.0f)}), third(scene, {scale(c, 2.0f)});
  for (One* const one : {&first, &second, &third}) REQUIRE(one->prepare(false));
  first.flight->lead(*second.flight);
  first.flight->lead(*third.flight);
  REQUIRE(first.flight->lease());
  REQUIRE(first.flight->bind());
  REQUIRE(first.flight->record());
  CHECK(&second.flight->lane() == &first.flight->lane());
  CHECK(first.complete());
  CHECK(device->count(Step::submit) == 1);
  CHECK(device->count(Step::create_lane) == 1);
  CHECK(a == Values{2});
  CHECK(b == Values{4});
  CHECK(c == Values{6});
  const Result<std::optional<Instant>> ended(Instant(7s));
  first.flight->end_lead(ended);
  for (One* const one : {&second, &third}) {
    CHECK(one->flight->has_begun());
    CHECK(one->flight->complete().value() == Instant(7s));
    CHECK(one->flight->launch_size() == 1);  // the kernel is not batchable
    one->flight->publish();
  }
}

TEST_CASE("equal calls of neighbours are one launch", "[flight]") {
  const Scripted device = scripted("cuda:0");
  const Scene scene = scene_of(device);
  const auto kernel = shift();
  const Values x{1, 2};
  std::vector<Values> y(4, Values(2));
  std::vector<std::unique_ptr<One>> all;
  for (std::size_t i = 0; i < 4; ++i) {  // the last one differs by its value
    all.push_back(std::make_unique<One>(scene, std::vector<Call>{kernel(x, i < 3 ? 10.0f : 20.0f, y[i])}));
    REQUIRE(all[i]->prepare(false));
    if (i > 0) all[0]->flight->lead(*all[i]->flight);
  }
  REQUIRE(all[0]->flight->lease());
  REQUIRE(all[0]->flight->bind());
  REQUIRE(all[0]->flight->record());
  REQUIRE(all[0]->complete());
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(all[i]->flight->launch_size() == (i < 3 ? 3 : 1));
    CHECK(y[i] == (i < 3 ? Values{11, 12} : Values{21, 22}));
  }
  CHECK(base::state_of(scene.pool)->contexts_locked().front().kernels == 2);
}

TEST_CASE("if one of three flights fails to bind, nothing is submitted", "[flight]") {
  const Scripted device = scripted("cuda:0");
  int buffers = 0;
  device->set_script([&](Step step) -> std::optional<Error> {
    if (step == Step::create_buffer && ++buffers == 3)
      return Error(Errc::out_of_memory, "The script is full.");
    return std::nullopt;
  });
  const Scene scene = scene_of(device);
  const auto scale = test::host_scale();
  Values a{1}, b{2}, c{3};
  {
    One first(scene, {scale(a, 2.0f)}), second(scene, {scale(b, 2.0f)}), third(scene, {scale(c, 2.0f)});
    for (One* const one : {&first, &second, &third}) REQUIRE(one->prepare(false));
    first.flight->lead(*second.flight);
    first.flight->lead(*third.flight);
    REQUIRE(first.flight->lease());
    CHECK(first.flight->bind().error() == Errc::out_of_memory);
    CHECK(first.flight->shortage() == Shortage::memory);
    CHECK_FALSE(first.flight->has_begun());
    CHECK(device->count(Step::submit) == 0);
    first.flight->lane().discard();
  }
  CHECK(a == Values{1});
  CHECK(scene.held() == 0_B);
  for (Values* const x : {&a, &b, &c}) CHECK(One(scene, {scale(*x, 2.0f)}).fly());  // each alone
  CHECK(c == Values{6});
}

TEST_CASE("the flights of a leader that fails return its error", "[flight]") {
  const Scripted device = scripted("cuda:0");
  const Scene scene = scene_of(device);
  const auto scale = test::host_scale();
  Values a{1}, b{2};
  One first(scene, {scale(a, 2.0f)}), second(scene, {scale(b, 2.0f)});
  for (One* const one : {&first, &second}) REQUIRE(one->prepare(false));
  first.flight->lead(*second.flight);
  REQUIRE(first.flight->lease());
  REQUIRE(first.flight->bind());
  REQUIRE(first.flight->record());
  device->fail_at(Step::wait, Errc::internal);
  (void)first.flight->submit(true);
  const auto result = first.flight->complete();
  REQUIRE_FALSE(result);
  first.flight->end_lead(result);
  CHECK(second.flight->complete().error() == Errc::internal);
  CHECK(b == Values{2});
}

TEST_CASE("a flight submits recorded commands with its own copies", "[flight]") {
  for (const std::size_t count : {std::size_t{2}, large}) {
    INFO(count);
    const Scripted device = scripted("cuda:0");
    const Scene scene = scene_of(device);
    Values x(count, 1.0f);
    const std::vector<Call> calls{test::host_scale()(x, 2.0f)};
    flight::Binding::Operands operands = flight::Binding(calls, scene.device()).operands();
    REQUIRE(operands.regions.size() == 1);
    operands.regions[0].buffer =
        scene.state().allocate(scene.request(Bytes{operands.regions[0].bytes()})).value();

    device::SequenceState sequence(base::state_of(scene.device()));
    Arguments arguments = calls[0].arguments();
    REQUIRE(flight::bind_operand(arguments[0], scene.state(),
                                 {operands.regions.begin(), operands.regions.size()}, scene.request()));
    const Executable executable = test::build(calls[0], scene.device()).value();
    sequence.open().dispatch(base::state_of(executable), arguments, calls[0].items());
    for (const float now : {2.0f, 4.0f}) {
      One one(scene, {Call(base::programs_of(calls[0]), {})}, {}, &operands);
      REQUIRE(one.prepare(false));
      REQUIRE(one.flight->lease());
      REQUIRE(one.flight->bind());
      one.flight->record(sequence, 1);
      CHECK(one.flight->has_begun());
      (void)one.flight->submit(true);
      const auto commands = one.flight->complete();
      REQUIRE(commands);
      CHECK(commands->has_value() == (count < large));  // large downloads follow
      REQUIRE(one.complete());
      one.flight->publish();
      CHECK(x == Values(count, now));
    }
  }
}

TEST_CASE("a failed download leaves the memory of the caller unchanged", "[flight]") {
  const Scripted device = scripted("cuda:0");
  const Scene scene = scene_of(device);
  Values x(large, 1.0f);
  const auto array = test::array_in(scene.pool, {5, 6});
  const auto scale = test::host_scale();
  One one(scene, {scale(x, 2.0f), scale(Array<float>(array), 2.0f)});
  int waits = 0;
  device->set_script([&](Step step) -> std::optional<Error> {
    if (step == Step::wait && ++waits == 2) return Error(Errc::internal, "The download failed.");
    return std::nullopt;
  });
  const auto done = one.fly();
  REQUIRE_FALSE(done);
  CHECK(done.error().sentence() == "The download failed.");
  CHECK(waits == 2);
  CHECK(x == Values(large, 1.0f));
  one.flight->fail(done.error(), "job 'one'");
  one.flight.reset();
  // The commands have begun. The array has its last contents on the host.
  const auto view = Array<float>(array).read();
  REQUIRE(view);
  CHECK(Values(view->begin(), view->end()) == Values{5, 6});
}

TEST_CASE("a reservation above a limit can never succeed, and names the limit", "[flight]") {
  const Scene scene = scene_of(scripted("cuda:0"), {.pool_memory = 4_KiB});
  Values x(2048);
  One one(scene, {test::host_scale()(x, 2.0f)}, "preview");
  const auto refused = one.prepare();
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::over_budget);
  CHECK(refused.error().sentence() ==
        "Job 'host_scale' (tag 'preview') needs 8.00 KiB on 'cuda:0'; the budget of this runtime on 'cuda:0' "
        "is "
        "4.00 KiB.");
  CHECK(one.flight->shortage() == Shortage::none);
}

TEST_CASE("a reservation that other flights leave no memory for may succeed later", "[flight]") {
  const Scene scene =
      scene_of(scripted("cuda:0"), {.pool_memory = 12_KiB, .tag_memory = {{"preview", 8_KiB}}});
  Values x(2048), y(2048);
  const auto scale = test::host_scale();
  for (const std::string_view tag : {"", "preview"}) {
    INFO(tag);
    One first(scene, {scale(x, 2.0f)}, tag), second(scene, {scale(y, 2.0f)}, tag);
    REQUIRE(first.prepare());
    CHECK(scene.held() == 8_KiB);
    const auto refused = second.prepare();
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == Errc::over_budget);
    CHECK(second.flight->shortage() == (tag.empty() ? Shortage::memory : Shortage::tag_memory));
    CHECK(scene.held() == 8_KiB);  // it holds nothing
    first.flight.reset();
    One again(scene, {scale(y, 2.0f)}, tag);
    CHECK(again.fly());
  }
  CHECK(scene.held() == 0_B);
}

TEST_CASE("a device that is lost in any step fails the flight and nothing else", "[flight]") {
  for (const Step lost_in : {Step::create_lane, Step::create_buffer, Step::submit, Step::wait}) {
    INFO("step " << static_cast<int>(lost_in));
    const Scripted device = scripted("cuda:0");
    const Scene scene = scene_of(device);
    Values x{1};
    {
      One one(scene, {test::host_scale()(x, 2.0f)});
      device->set_script([&](Step step) -> std::optional<Error> {
        if (step != lost_in) return std::nullopt;
        device->lose();
        return Error(Errc::device_lost, "The script lost the device.");
      });
      const auto done = one.fly();
      REQUIRE_FALSE(done);
      CHECK(done.error() == Errc::device_lost);
      CHECK(one.flight->has_begun() == (lost_in == Step::wait));
      CHECK(one.flight->shortage() == Shortage::none);
      if (lost_in != Step::create_lane) one.flight->fail(done.error(), "job 'one'");
    }
    CHECK(x == Values{1});
    CHECK(device->buffers_alive() == 0);
    CHECK(scene.held() == 0_B);
  }
}

TEST_CASE("a flight fails the arrays that it has begun to write, and no others", "[flight]") {
  const Scripted device = scripted("cuda:0");
  const Scene scene = scene_of(device);
  const auto fill = test::on_host("fill", [](Range, std::span<float>) {});
  for (const bool begins : {false, true}) {
    INFO(begins);
    device->set_script({});
    const auto array = test::array_in(scene.pool, {1, 2});
    // Its contents are on the device only.
    REQUIRE(One(scene, {test::host_scale()(Array<float>(array), 3.0f)}).fly());
    {
      One written(scene, {test::host_scale()(Array<float>(array), 3.0f)});
      REQUIRE(written.fly());
      written.flight->publish();
    }
    One one(scene, {fill(Array<float>(array))});
    device->fail_at(begins ? Step::wait : Step::submit, Errc::internal);
    const auto done = one.fly();
    REQUIRE_FALSE(done);
    one.flight->fail(done.error(), "job 'one'");
    one.flight.reset();
    device->set_script({});
    CHECK(array->failure(data::IntervalSet(array->all())).has_value() == begins);
  }
}

TEST_CASE("a cancelled flight ends while its work is in flight, unless it is the host's", "[flight]") {
  for (const bool is_host : {false, true}) {
    INFO(is_host);
    const Scripted device =
        scripted("cuda:0", AdapterType::discrete, is_host ? Features{Feature::host_memory} : Features{});
    const Scene scene = scene_of(device);
    Values x{1};
    One one(scene, {test::host_scale()(x, 2.0f)});
    REQUIRE(one.begin());
    device->hold();
    REQUIRE(one.flight->submit(false));
    one.stop = true;
    CHECK(one.flight->is_cut_short() == !is_host);
    if (is_host) device->release();
    const auto completed = one.flight->complete();
    CHECK(completed.has_value() == is_host);
    if (!completed) CHECK(completed.error() == Errc::cancelled);
    one.flight->discard();
    device->release();
  }
}

TEST_CASE("a flight ends at its time limit, and is parked no longer than that", "[flight]") {
  const Scripted device = scripted("cuda:0");
  ManualClock clock;
  const Scene scene = scene_of(device, {}, clock);
  Values x{1};
  One late(scene, {test::host_scale()(x, 2.0f)}, {}, nullptr, clock.now() + 1s);
  REQUIRE(late.begin(clock.now()));
  clock.advance(2s);
  (void)late.flight->submit(true);
  CHECK(late.flight->complete().error() == Errc::timed_out);

  device->hold();
  Values y{1};
  One parked(scene, {test::host_scale()(y, 2.0f)});
  REQUIRE(parked.begin());
  REQUIRE(parked.flight->submit(false));
  CHECK(parked.flight->park() == Instant::max());
  parked.flight->park_until(Clock::steady().now());
  CHECK(parked.flight->complete().error() == Errc::timed_out);
  parked.flight->discard();
  device->release();
  CHECK(y == Values{1});
}

TEST_CASE("a flight without a free lane leaves the other devices to its caller", "[flight]") {
  const Scripted device = scripted("cuda:0");
  const Scene scene(test::pool_of({device}, {.lanes_per_device = 1, .lease_timeout = 0ms}));
  Values x{1}, y{2};
  One first(scene, {test::host_scale()(x, 2.0f)}), second(scene, {test::host_scale()(y, 2.0f)});
  REQUIRE(first.prepare());
  REQUIRE(first.flight->lease());
  REQUIRE(second.prepare());
  CHECK(second.flight->lease().error() == Errc::unavailable);
}
