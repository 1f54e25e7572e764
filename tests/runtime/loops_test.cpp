// Drivers that end loops early: the check measures it, and the reasons of jobs say it.
#include <wye/wye.hpp>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "support/compilers.hpp"
#include "support/skip.hpp"

using namespace wye;

namespace {

using Number = std::uint32_t;
using Nested = Kernel<Write<Number>, Number>;

Nested nested_loops(const std::string& bound, bool has_short_loops = false) {
  return Nested::make(
             {.name = "nested",
              .sources = {Glsl{.text = "#version 450\nlayout(local_size_x = 64) in;\n"
                                       "layout(set = 0, binding = 0) writeonly buffer Z { uint z[]; };\n"
                                       "layout(push_constant) uniform P { uint n; };\n"
                                       "void main() {\n"
                                       "  const uint at = gl_GlobalInvocationID.x;\n"
                                       "  if (at >= z.length()) return;\n"
                                       "  uint sum = n - n;\n"
                                       "  for (uint i = 0; i < " +
                                       bound + "; ++i)\n    for (uint j = 0; j < " + bound +
                                       "; ++j) sum += (i ^ j) & 1u;\n"
                                       "  z[at] = sum;\n}"},
                          host([](Range range, std::span<Number> z, Number n) {
                            for (const std::uint64_t at : range) {
                              z[at] = 0;
                              for (Number i = 0; i < n; ++i)
                                for (Number j = 0; j < n; ++j) z[at] += (i ^ j) & 1u;
                            }
                          })},
              .has_short_loops = has_short_loops})
      .value();
}

/// A runtime with a Vulkan device and the CPU, and its warnings.
struct Logged {
  std::mutex mutex;
  std::vector<std::string> warnings;
  std::optional<Runtime> runtime;

  Logged() {
    auto opened =
        Runtime::open({.pool = {.backends = {"vulkan", "cpu"}}, .log = [this](const LogRecord& record) {
                         if (record.level != LogLevel::warning) return;
                         const std::lock_guard lock(mutex);
                         warnings.emplace_back(record.text);
                       }});
    if (opened && opened->devices().size() == 2 && test::has_glsl()) runtime = *std::move(opened);
    if (!runtime) test::skip("there is no device of backend 'vulkan', or no GLSL");
  }
};

AdapterInfo info_of(const Runtime& runtime, std::string_view backend) {
  for (const Device& device : runtime.devices())
    if (device.info().backend == backend) return device.info();
  return {};
}

bool mentions(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

const std::string sentence_end =
    " iterations in total. Constants do not keep the loops of kernel 'nested' below that, and results are "
    "wrong if they have more.";

}  // namespace

TEST_CASE("the check of a device measures where its driver ends loops", "[runtime][qualification]") {
  Logged logged;
  if (!logged.runtime) return;
  const auto reports = logged.runtime->qualifications();
  REQUIRE(reports.size() == 1);
  INFO(reports[0].text());
  const AdapterInfo info = info_of(*logged.runtime, "vulkan");
  CHECK(info.limits.loop_iterations == reports[0].loop_iterations);
  for (const AdapterInfo& adapter : logged.runtime->adapters())
    if (adapter.id == info.id) CHECK(adapter.limits.loop_iterations == reports[0].loop_iterations);
  CHECK(info_of(*logged.runtime, "cpu").limits.loop_iterations == 0);
  CHECK(mentions(reports[0].text(), "end after") == (reports[0].loop_iterations != 0));

  // The number is right: a loop of that many iterations has them, and one of more does not.
  const auto count = Kernel<Write<Number>, Number>::make(
      {.name = "count",
       .sources = {Glsl{.text = "#version 450\nlayout(local_size_x = 64) in;\n"
                                "layout(set = 0, binding = 0) writeonly buffer Z { uint z[]; };\n"
                                "layout(push_constant) uniform P { uint n; };\n"
                                "void main() {\n  uint value = n, k = 0;\n"
                                "  for (; k < n; ++k) value = value * 1664525 + 1013904223;\n"
                                "  z[gl_GlobalInvocationID.x] = value == 0 ? k + n : k;\n}"}}});
  REQUIRE(count);
  const auto limit = static_cast<Number>(info.limits.loop_iterations);
  for (const Number wanted : {limit == 0 ? 100'000u : limit, limit + 1000, 70'000u}) {
    std::vector<Number> z(64);
    REQUIRE(logged.runtime->run((*count)(z, wanted)));
    CHECK(z[0] == (limit == 0 ? wanted : std::min(wanted, limit)));
  }
}

TEST_CASE("a job whose loops a driver may end early says so, and is logged once", "[runtime]") {
  Logged logged;
  if (!logged.runtime) return;
  const std::uint64_t limit = info_of(*logged.runtime, "vulkan").limits.loop_iterations;
  const Nested nested = nested_loops("n");
  std::vector<Number> z(64), on_cpu(64);
  const std::string sentence =
      "ends the loops of an invocation after " + std::to_string(limit) + sentence_end;
  for (int round = 0; round < 2; ++round) {
    Ticket ticket = logged.runtime->submit(nested(z, 300u), {.on = "vulkan"});
    const auto done = ticket.wait();
    REQUIRE(done);
    INFO(done->reason());
    CHECK(mentions(done->reason(), sentence) == (limit != 0));
    CHECK(mentions(ticket.explain().text(), sentence) == (limit != 0));
  }
  CHECK(std::count_if(logged.warnings.begin(), logged.warnings.end(), [&](const std::string& text) {
          return mentions(text, sentence);
        }) == (limit != 0 ? 1 : 0));
  Ticket ticket = logged.runtime->submit(nested(on_cpu, 300u), {.on = "cpu"});
  const auto done = ticket.wait();
  REQUIRE(done);
  CHECK_FALSE(mentions(done->reason(), "loops"));
  CHECK(on_cpu[0] == 45'000);
  if (limit == 0) CHECK(z == on_cpu);
}

TEST_CASE("nothing is said of a kernel whose author promises short loops", "[runtime]") {
  Logged logged;
  if (!logged.runtime) return;
  const Nested nested = nested_loops("n", true);
  std::vector<Number> z(64);
  Graph graph;
  graph.add(nested(z, 100u));
  const auto plan = graph.compile(*logged.runtime, {.on = "vulkan"});
  REQUIRE(plan);
  CHECK_FALSE(mentions(plan->text(), "loops"));
  Ticket ticket = logged.runtime->submit(nested(z, 100u), {.on = "vulkan"});
  const auto done = ticket.wait();
  REQUIRE(done);
  CHECK_FALSE(mentions(done->reason(), "loops"));
  CHECK_FALSE(mentions(ticket.explain().text(), "loops"));
  CHECK(z[0] == 5000);
  CHECK(logged.warnings.empty());
}

TEST_CASE("a plan names the steps whose loops a driver may end early", "[runtime]") {
  Logged logged;
  if (!logged.runtime) return;
  const std::uint64_t limit = info_of(*logged.runtime, "vulkan").limits.loop_iterations;
  std::vector<Number> z(64);
  Graph graph;
  graph.add(nested_loops("n")(z, 300u));
  const auto on_vulkan = graph.compile(*logged.runtime, {.on = "vulkan"});
  REQUIRE(on_vulkan);
  INFO(on_vulkan->text());
  CHECK(mentions(on_vulkan->text(), sentence_end) == (limit != 0));
  const auto on_cpu = graph.compile(*logged.runtime, {.on = "cpu"});
  REQUIRE(on_cpu);
  CHECK_FALSE(mentions(on_cpu->text(), "loops"));
}

TEST_CASE("loops that constants keep below the limit of a device are not mentioned", "[runtime]") {
  Logged logged;
  if (!logged.runtime) return;
  const std::uint64_t limit = info_of(*logged.runtime, "vulkan").limits.loop_iterations;
  std::vector<Number> z(64);
  const auto few = logged.runtime->run(nested_loops("200u")(z, 200u), {.on = "vulkan"});
  REQUIRE(few);
  CHECK_FALSE(mentions(few->reason(), "loops"));
  CHECK(z[0] == 20'000);
  CHECK(logged.warnings.empty());
  const auto many = logged.runtime->run(nested_loops("300u")(z, 300u), {.on = "vulkan"});
  REQUIRE(many);
  CHECK(mentions(many->reason(), "loops") == (limit != 0));
}
