// Events of failing devices and full queues.
#include <wye/wye.hpp>

#include <string>
#include <variant>
#include <vector>

#include "base/journal.hpp"
#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using Step = test::ScriptedDevice::Step;

TEST_CASE("a job that falls back is an event of each device that fails", "[scheduler][events]") {
  const auto a = test::scripted("cuda:0"), b = test::scripted("vulkan:0"), c = test::scripted("vulkan:1");
  for (const auto& device : {a, b}) device->fail_at(Step::submit, Errc::unavailable);
  test::Machine machine({a, b, c});
  base::Journal& journal = base::state_of(machine.pool)->journal();
  std::vector<base::JobFellBack> failures;
  std::vector<base::JobEnded> ended;
  auto fallbacks =
      journal.listen<base::JobFellBack>([&](const base::JobFellBack& event) { failures.push_back(event); });
  auto ends = journal.listen<base::JobEnded>([&](const base::JobEnded& event) { ended.push_back(event); });
  std::vector<float> x(10, 1.0f);
  const auto done = machine.scheduler.run(test::host_scale("scale")(x, 2.0f));
  REQUIRE(done);
  REQUIRE(journal.flush());
  REQUIRE(failures.size() == 2);
  CHECK((std::string_view(failures[0].device) == "cuda:0" &&
         std::string_view(failures[1].device) == "vulkan:0"));
  for (const base::JobFellBack& failure : failures) {
    CHECK((failure.id == done->id() && failure.number == 1 && std::string_view(failure.name) == "scale"));
    CHECK(failure.error == Errc::unavailable);
  }
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].attempts == 3);
  CHECK(std::string_view(ended[0].context) == "vulkan:1#0");
  CHECK(ended[0].bytes == done->bytes_transferred());
}

TEST_CASE("a submission to a full queue is an event", "[scheduler][events]") {
  Runtime runtime =
      Runtime::open({.pool = {.backends = {"cpu"}},
                     .scheduler = {.concurrent_jobs = 1, .max_queued = 1, .when_full = WhenFull::refuse}})
          .value();
  std::vector<std::uint64_t> limits;
  auto heard = runtime.listen([&](const Event& event) {
    if (event.kind == EventKind::queue_full) limits.push_back(event.number);
  });
  test::Latch latch;
  std::vector<float> memory(1), x(10, 1.0f);
  Ticket running = runtime.submit(latch.kernel(memory), {.time_limit = Duration::max()});
  latch.await();
  Ticket waiting = runtime.submit(test::host_scale()(x, 2.0f));
  std::vector<float> y(10, 1.0f);
  Ticket refused = runtime.submit(test::host_scale()(y, 2.0f));
  CHECK(refused.wait().error() == Errc::over_budget);
  latch.open();
  CHECK((running.wait() && waiting.wait()));
  heard->finish();
  CHECK(limits == std::vector<std::uint64_t>{1});
}
