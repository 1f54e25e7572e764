// Decisions as data: the last placements of a scheduler, the choice among variants, and their JSON.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rig.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"

using namespace wye;
using namespace wye::test;
using namespace std::chrono_literals;
using nlohmann::json;
using Step = test::ScriptedDevice::Step;

namespace {

/// A kernel that multiplies by two and takes `takes` of the time of `clock`.
Kernel<ReadWrite<float>> timed(const std::string& name, ManualClock& clock, Duration takes) {
  return Kernel<ReadWrite<float>>::make({.name = name,
                                         .sources = {host(
                                             [&clock, takes](Range range, std::span<float> x) {
                                               for (std::uint64_t i : range) x[i] *= 2;
                                               clock.advance(takes);
                                             },
                                             {.tile = Extent3(2000)})}})  // one tile: the time passes once
      .value();
}

std::vector<std::pair<std::string, RefusalCode>> codes(const Placement& placement) {
  std::vector<std::pair<std::string, RefusalCode>> all;
  for (const Placement::Decision& decision : placement.decisions)
    all.emplace_back(decision.device, decision.code);
  return all;
}

}  // namespace

TEST_CASE("a scheduler lists its last jobs with their decisions and times, the oldest first", "[scheduler]") {
  const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
  ManualClock clock;
  Machine machine({first, second}, {.clock = &clock});
  std::vector<float> x(10, 1.0f);
  CHECK(machine.scheduler.recent().empty());

  REQUIRE(machine.scheduler.run(host_scale()(x, 2.0f), {.tag = "frame 7"}));
  first->fail_at(Step::submit, Errc::unavailable);
  REQUIRE(machine.scheduler.run(host_scale()(x, 2.0f), {.type = workload_types::custom}));
  REQUIRE_FALSE(machine.scheduler.run(host_scale()(x, 2.0f), {.on = "moon"}));

  const std::vector<Placement> recent = machine.scheduler.recent();
  REQUIRE(recent.size() == 3);
  for (std::size_t i = 0; i < recent.size(); ++i) {
    CHECK(recent[i].number == i + 1);
    CHECK(recent[i].job == "host_scale");
    CHECK(recent[i].type == workload_types::custom);
    CHECK(recent[i].size == Bytes{40});
  }
  CHECK(recent[0].tag == "frame 7");
  CHECK(recent[0].device() == "cuda:0");
  CHECK(codes(recent[0]) == std::vector{std::pair(std::string("cuda:0"), RefusalCode::none),
                                        std::pair(std::string("vulkan:0"), RefusalCode::lower_preference)});
  CHECK_FALSE(recent[0].error);
  CHECK(recent[0].bytes_transferred == Bytes{80});
  CHECK(recent[1].device() == "vulkan:0");
  CHECK(codes(recent[1]).front() == std::pair(std::string("cuda:0"), RefusalCode::attempt_failed));
  CHECK(recent[1].decisions.front().verdict == Candidate::Verdict::failed);
  CHECK(recent[2].device().empty());
  CHECK(recent[2].error == Errc::not_found);
}

TEST_CASE("the times of a recent job are those of its outcome", "[scheduler]") {
  Busy busy;
  const auto slow = timed("slow", busy.clock, 30ms);
  std::vector<float> x(10, 1.0f), y(10, 1.0f);
  auto ticket = busy.runtime.submit(slow(x));
  auto cancelled = busy.runtime.submit(slow(y));
  busy.clock.advance(10ms);
  cancelled.cancel();
  busy.release();
  const auto outcome = ticket.wait().value();
  const std::vector<Placement> recent = busy.runtime.scheduler().recent();
  REQUIRE(recent.size() == 3);
  CHECK(recent[0].number == 3);  // in the order in which they settled
  CHECK(recent[0].error == Errc::cancelled);
  CHECK(recent[0].decisions.empty());
  CHECK(recent[0].queue_time == 0ms);
  CHECK(recent[0].run_time == 0ms);
  CHECK(recent[1].tag == "blocker");
  CHECK(recent[2].number == 2);
  CHECK(recent[2].queue_time == outcome.queue_time());
  CHECK(recent[2].queue_time == 10ms);
  CHECK(recent[2].run_time == outcome.run_time());
  CHECK(recent[2].run_time == 30ms);
}

TEST_CASE("a scheduler keeps as many recent jobs as its options say", "[scheduler]") {
  for (std::uint32_t most : {0u, 1u, 3u}) {
    Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.recent = most}}).value();
    std::vector<float> x(1, 1.0f);
    for (int i = 0; i < 10; ++i) REQUIRE(runtime.run(host_scale()(x, 1.0f)));
    const std::vector<Placement> recent = runtime.scheduler().recent();
    REQUIRE(recent.size() == most);
    for (std::uint32_t i = 0; i < most; ++i) CHECK(recent[i].number == 11 - most + i);
  }
  const auto refused =
      Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.recent = (1u << 20) + 1}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::invalid_argument);
  CHECK(refused.error().sentence() ==
        "The number of recent jobs to keep (1048577) is not in the range 0 to 1048576.");
}

TEST_CASE("names of recent jobs are cut, and JSON replaces bytes that are not text", "[scheduler]") {
  Runtime runtime = cpu_runtime();
  std::vector<float> x(1, 1.0f);
  const std::string name(100, 'n'), tag = "\xff" + std::string(100, 't');
  auto job = Job::sequence(name, workload_types::image, host_scale()(x, 1.0f));
  auto ticket = runtime.submit(std::move(job), {.tag = tag});
  REQUIRE(ticket.wait());
  const Placement placement = runtime.scheduler().recent().at(0);
  CHECK(placement.job == std::string(47, 'n'));
  CHECK(placement.tag == tag.substr(0, 31));
  const json parsed = json::parse(placement.json());
  CHECK(parsed["job"] == placement.job);
  CHECK(parsed["tag"] == "\xef\xbf\xbd" + std::string(30, 't'));  // the replacement character
  CHECK(json::parse(ticket.explain().json())["job"] == name);
}

TEST_CASE("an explanation and a placement say in JSON what their members say", "[scheduler]") {
  const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
  first->fail_at(Step::submit, Errc::unavailable);
  Machine machine({first, second});
  std::vector<float> x(10, 1.0f);
  auto ticket = machine.scheduler.submit(host_scale()(x, 2.0f), {.tag = "frame \"7\""});
  const auto outcome = ticket.wait();
  REQUIRE(outcome);
  const Explanation explanation = ticket.explain();
  const json parsed = json::parse(explanation.json());
  CHECK(parsed["job"] == "host_scale");
  CHECK(parsed["tag"] == "frame \"7\"");
  REQUIRE(parsed["candidates"].size() == explanation.candidates.size());
  for (std::size_t i = 0; i < explanation.candidates.size(); ++i) {
    const Candidate& candidate = explanation.candidates[i];
    const json& one = parsed["candidates"][i];
    CHECK(one["device"] == candidate.device);
    CHECK(one["name"] == candidate.name);
    CHECK(one["verdict"] == wye::name(candidate.verdict));
    CHECK(one["code"] == wye::name(candidate.code));
    CHECK(one["reason"] == candidate.reason);
    CHECK(one.contains("error") == candidate.error.has_value());
  }
  CHECK(parsed["candidates"][1]["error"]["code"] == "unavailable");
  CHECK(parsed["variants"].empty());
  CHECK(parsed["code"] == json::parse(R"([{"kernel":"host_scale","source":"host","format":"host"}])"));

  const Placement placement = machine.scheduler.recent().at(0);
  const json one = json::parse(placement.json());
  CHECK(one["number"] == 1);
  CHECK(one["type"] == "custom");
  CHECK(one["size"] == 40);
  CHECK(one["decisions"][0]["code"] == "attempt_failed");
  CHECK(one["decisions"][1]["verdict"] == "ran");
  CHECK_FALSE(one.contains("error"));
  CHECK(one["run_ms"].get<double>() ==
        std::chrono::duration<double, std::milli>(outcome->run_time()).count());
}

TEST_CASE("an outcome has the times of all variants as data", "[scheduler]") {
  ManualClock clock;
  const auto either = fastest_of(timed("slow", clock, 9ms), {timed("quick", clock, 5ms)});
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}, .clock = &clock}).value();
  std::vector<float> x(3, 0.0f);
  const auto choice = [&] {
    const auto choices = runtime.run(either(x)).value().variants();
    REQUIRE(choices.size() == 1);
    REQUIRE(choices[0].variants.size() == 2);
    return choices[0];
  };
  const VariantChoice early = choice();
  CHECK(early.is_measuring);
  CHECK(early.variants[0].kernel == "slow");
  CHECK(early.variants[0].selected);
  CHECK(early.variants[0].runs == 1);
  CHECK(early.variants[0].least_time == 9ms);
  CHECK(early.variants[1].runs == 0);
  CHECK_FALSE(early.variants[1].least_time);
  for (int i = 0; i < 5; ++i) (void)choice();
  const VariantChoice last = choice();
  CHECK_FALSE(last.is_measuring);
  CHECK_FALSE(last.variants[0].selected);
  CHECK(last.variants[1].selected);
  CHECK(last.variants[1].least_time == 5ms);

  auto ticket = runtime.submit(either(x));
  REQUIRE(ticket.wait());
  const json parsed = json::parse(ticket.explain().json());
  CHECK(parsed["variants"][0]["variants"][1]["kernel"] == "quick");
  CHECK(parsed["variants"][0]["variants"][1]["least_ms"] == 5.0);
  CHECK(runtime.run(host_scale()(x, 1.0f))->variants().empty());
}

TEST_CASE("every code and verdict has a name of its own", "[scheduler]") {
  std::vector<std::string_view> names;
  for (unsigned code = 0; code <= static_cast<unsigned>(RefusalCode::emulated); ++code)
    names.push_back(wye::name(static_cast<RefusalCode>(code)));
  for (unsigned verdict = 0; verdict <= static_cast<unsigned>(Candidate::Verdict::passed); ++verdict)
    names.push_back(wye::name(static_cast<Candidate::Verdict>(verdict)));
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  CHECK(std::find(names.begin(), names.end(), "unknown") == names.end());
  CHECK(wye::name(RefusalCode::lower_preference) == "lower_preference");
  CHECK(wye::name(static_cast<RefusalCode>(200)) == "unknown");
}
