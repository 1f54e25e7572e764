/// The table of claims, from results that no benchmark has measured.
#include "claims.hpp"

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace wye_bench;

namespace {

Verdict judged(const Claim& claim, const Results& results) {
  const std::vector<Verdict> verdicts = judge({claim}, results);
  REQUIRE(verdicts.size() == 1);
  return verdicts.front();
}

/// Returns the last line of the table of one claim.
std::string line_of(const Claim& claim, const Results& results,
                    const std::vector<ClaimDevice>& devices = {}) {
  std::string table = claims_table(judge({claim}, results), devices);
  REQUIRE(!table.empty());
  REQUIRE(table.back() == '\n');
  table.pop_back();
  return table.substr(table.rfind('\n') + 1);
}

}  // namespace

TEST_CASE("a claimed time is met by a median at most as long, and its goal by a shorter one", "[bench]") {
  const Claim claim{.name = "a", .claimed = 0.7, .goal = 0.5, .row = "work/wye"};
  const auto judged_at = [&](double seconds) {
    return judged(claim, {.numbers = {{"work/wye", {9.0, seconds, 0.0}}}, .skipped = {}});
  };
  const Verdict fast = judged_at(0.4e-3);
  CHECK(fast.measured.value() == Approx(0.4));
  CHECK(fast.is_met);
  CHECK(fast.is_goal_met);
  CHECK(fast.reason.empty());
  const Verdict middle = judged_at(0.6e-3);
  CHECK(middle.is_met);
  CHECK_FALSE(middle.is_goal_met);
  CHECK(middle.reason == "The reason is not known yet.");
  const Verdict slow = judged_at(0.8e-3);
  CHECK_FALSE(slow.is_met);
  CHECK_FALSE(slow.is_goal_met);
}

TEST_CASE("a verdict has the tenth and the ninetieth percentile of the repetitions", "[bench]") {
  const Claim claim{.name = "a", .claimed = 1, .row = "work/wye"};
  const Verdict verdict = judged(claim, {.numbers = {{"work/wye", {3e-3, 1e-3, 2e-3}}}, .skipped = {}});
  CHECK(verdict.measured.value() == Approx(2));
  CHECK(verdict.p10 == Approx(1.2));
  CHECK(verdict.p90 == Approx(2.8));
}

TEST_CASE("each kind of figure has its unit and its direction", "[bench]") {
  const Results results{.numbers = {{"work/wye", {0.01}},
                                    {"work/other", {0.04}},
                                    {"work.bytes/wye", {84e6}},
                                    {"work.misses/wye", {0.028}},
                                    {"work.jobs/wye", {8}}},
                        .skipped = {}};
  const auto line = [&](Figure figure, double claimed, const std::string& counter = "",
                        const std::string& over = "") {
    return line_of({.name = "a",
                    .figure = figure,
                    .claimed = claimed,
                    .row = "work/wye",
                    .counter = counter,
                    .over = over},
                   results);
  };
  CHECK(line(Figure::milliseconds, 10) == "| a |  | 10 ms |  | 10 ms | 10-10 | met | `work/wye`. |");
  CHECK(line(Figure::megabytes, 85, "bytes") == "| a |  | 85 MB |  | 84 MB | 84-84 | met | `work/wye`. |");
  CHECK(line(Figure::hits, 97, "misses") == "| a |  | 97.0 % |  | 97.2 % | 97.2-97.2 | met | `work/wye`. |");
  CHECK(line(Figure::jobs, 8, "jobs") == "| a |  | 8 |  | 8 | 8-8 | met | `work/wye`. |");
  CHECK(line(Figure::frames_per_second, 62) ==
        "| a |  | 62 per s |  | 100 per s | 100-100 | met | `work/wye`. |");
  CHECK(line(Figure::saved, 80, "", "work/other") ==
        "| a |  | 80.0 % |  | 75.0 % | 75.0-75.0 | not met | `work/wye`. The reason is not known yet. |");
  CHECK(line(Figure::times, 4.5, "", "work/other") ==
        "| a |  | 4.5 x |  | 4 x | 4-4 | not met | `work/wye`. The reason is not known yet. |");
}

TEST_CASE("a claim that is not met has its reason and the bound of the machine", "[bench]") {
  const Claim claim{.name = "a",
                    .claimed = 8.7,
                    .row = "work/wye",
                    .bound = "work/peak",
                    .how = "a product",
                    .why = "It is large."};
  const Results results{.numbers = {{"work/wye", {12e-3}}, {"work/peak", {9.125e-3}}}, .skipped = {}};
  CHECK(line_of(claim, results) ==
        "| a |  | 8.7 ms |  | 12 ms | 12-12 | not met | a product (`work/wye`). It is large. The bound is "
        "9.12 ms here "
        "(`work/peak`). |");
  const Claim met{
      .name = "a", .claimed = 12.5, .row = "work/wye", .bound = "work/peak", .why = "It is large."};
  CHECK(judged(met, results).reason.empty());
}

TEST_CASE("a goal below the claimed figure may be met alone", "[bench]") {
  const Claim claim{.name = "a",
                    .figure = Figure::hits,
                    .claimed = 97.3,
                    .goal = 95,
                    .row = "work/wye",
                    .counter = "misses",
                    .why = "It is hard."};
  CHECK(line_of(claim, {.numbers = {{"work.misses/wye", {0.028}}}, .skipped = {}}) ==
        "| a |  | 97.3 % | >= 95.0 % | 97.2 % | 97.2-97.2 | goal met, not the claim | `work/wye`. It is "
        "hard. |");
}

TEST_CASE("a claim that is not measured says why", "[bench]") {
  const auto reason = [](Claim claim, const Results& results = {}) {
    claim.name = "a", claim.claimed = 1;
    const Verdict verdict = judged(claim, results);
    CHECK_FALSE(verdict.measured);
    CHECK_FALSE(verdict.is_met);
    return verdict.reason;
  };
  CHECK(reason({.name = {}, .on = "cuda"}) == "Needs a card.");
  CHECK(reason({.name = {}, .on = "cuda", .needs = "Needs a card, and more."}) == "Needs a card, and more.");
  CHECK(reason({.name = {}, .needs = "Needs a cluster."}) == "Needs a cluster.");
  CHECK(reason({.name = {}, .row = "work/wye"}) == "`work/wye` did not run.");
  const Results skipped{.numbers = {}, .skipped = {{"work/wye", "no such device"}}};
  CHECK(reason({.name = {}, .on = "cuda", .row = "work/wye"}, skipped) == "Needs a card.");
  CHECK(reason({.name = {}, .on = "vulkan", .row = "work/wye", .needs = "Needs it."}, skipped) ==
        "`work/wye` skipped itself: \"no such device\".");
  const std::vector<Verdict> with_card =
      judge({{.name = "a", .on = "cuda", .row = "work/wye"}, {.name = "b", .on = "cuda", .row = "other/wye"}},
            {.numbers = {{"other/wye", {1.0}}}, .skipped = skipped.skipped});
  CHECK(with_card[0].reason == "`work/wye` skipped itself: \"no such device\".");
  // A comparison needs both rows.
  CHECK(reason({.name = {},
                .figure = Figure::saved,
                .row = "work/wye",
                .over = "work/other",
                .needs = "Needs it."},
               {.numbers = {{"work/wye", {1.0}}}, .skipped = {}}) == "Needs it.");
}

TEST_CASE("the table names the devices, and a Vulkan driver that runs on the CPU", "[bench]") {
  const Claim claim{.name = "a", .on = "vulkan", .claimed = 1, .row = "work/wye"};
  const std::vector<ClaimDevice> devices{{"cpu", "EPYC", true}, {"vulkan", "llvmpipe | 256", true}};
  const std::string table = claims_table(judge({claim}, {}), devices);
  CHECK(table.rfind("- cpu: EPYC\n- vulkan: llvmpipe   256, a driver that runs on the CPU\n\n", 0) == 0);
  CHECK(line_of(claim, {}, devices) ==
        "| a | vulkan on the CPU | 1 ms |  |  |  | not measured | `work/wye`. `work/wye` did not run. |");
  CHECK(line_of(claim, {}, {{"vulkan", "a card", false}}).rfind("| a | vulkan | 1 ms |", 0) == 0);
}

TEST_CASE("the filter of claims selects the rows that they need, with their parameters, and no others",
          "[bench]") {
  const std::regex filter(
      claims_filter({{.name = "a", .row = "work/wye", .over = "work/other", .bound = "work/peak"},
                     {.name = "without a row"}}));
  const auto selects = [&](const char* name) { return std::regex_search(name, filter); };
  CHECK(selects("work/wye"));
  CHECK(selects("work/wye/iterations:4/manual_time"));
  CHECK(selects("work/other/real_time"));
  CHECK(selects("work/peak"));
  CHECK_FALSE(selects("work/wye_slru"));
  CHECK_FALSE(selects("my_work/wye"));
  CHECK_FALSE(selects("work/third"));
  CHECK(claims_filter(std::vector<Claim>{}) == "^$");
}

TEST_CASE("each claim has a figure, and a row or the reason for having none", "[bench]") {
  std::set<std::string> names;
  for (const Claim& claim : claims()) {
    CAPTURE(claim.name, claim.on);
    CHECK(claim.claimed > 0);
    CHECK(!claim.how.empty());
    CHECK((!claim.row.empty() || !claim.needs.empty()));
    CHECK(claim.over.empty() ==
          !((claim.figure == Figure::saved || claim.figure == Figure::times) && !claim.row.empty()));
    for (const std::string& row : {claim.row, claim.over, claim.bound}) {
      CHECK(std::count(row.begin(), row.end(), '/') == (row.empty() ? 0 : 1));
      CHECK(row.find('%') == row.npos);
    }
    CHECK(std::set<std::string>{"", "cpu", "vulkan", "cuda"}.count(claim.on) == 1);
    CHECK(names.insert(claim.name + "|" + claim.on + "|" + claim.row).second);
  }
  CHECK(claims_table(judge(claims(), {}), {}).find("| met |") == std::string::npos);
}
