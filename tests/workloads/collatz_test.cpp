#include <wye/workloads/collatz.hpp>

#include <algorithm>
#include <limits>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
using workloads::CollatzEnd;
using workloads::CollatzOptions;
using workloads::CollatzResult;
using workloads::CollatzSummary;
using workloads::UInt128;
namespace reference = wye::workloads::reference;

namespace {

constexpr std::uint64_t all_bits = std::numeric_limits<std::uint64_t>::max();

std::vector<CollatzResult> trajectories(UInt128 first, std::size_t count, const std::string& leg,
                                        CollatzOptions options = {}) {
  std::vector<CollatzResult> results = poison<CollatzResult>(count);
  run(workloads::collatz(first, results, options), leg);
  return results;
}

CollatzSummary summary_of(const std::vector<CollatzResult>& results, const std::string& leg) {
  std::vector<CollatzSummary> summary = poison<CollatzSummary>(1);
  run(workloads::collatz_summary(results, summary), leg);
  return summary[0];
}

std::string text_of(const CollatzResult& result) {
  return std::to_string(result.steps) + " steps, peak " + to_string(result.peak) + ", end " +
         std::to_string(static_cast<std::uint32_t>(result.end));
}

/// Returns "" if results are those of the reference.
std::string differing_result(UInt128 first, std::size_t count, const std::string& leg,
                             CollatzOptions options = {}) {
  const auto results = trajectories(first, count, leg, options);
  const auto exact = reference::collatz(first, count, options);
  for (std::size_t i = 0; i < count; ++i)
    if (!(results[i] == exact[i]))
      return to_string(first + i) + ": " + text_of(results[i]) + " instead of " + text_of(exact[i]);
  return "";
}

/// A random number with a random number of bits, such that `room` numbers follow.
UInt128 random_number(std::mt19937_64& random, std::uint64_t room) {
  const auto bits = 1 + random() % 128;
  const UInt128 any{random(), random()};
  const UInt128 n =
      bits <= 64 ? UInt128{any.low >> (64 - bits), 0} : UInt128{any.low, any.high >> (128 - bits)};
  return n.high == all_bits && n.low > all_bits - room ? UInt128{n.low - room, n.high} : n;
}

/// Random results, many of which are equal.
std::vector<CollatzResult> random_results(std::size_t count, std::uint32_t seed, std::uint32_t ends = 3) {
  std::mt19937 random(seed);
  const UInt128 peaks[] = {{1, 0}, {1, 1}, {0, 1}, {all_bits, all_bits}, {all_bits, 0}, {0x8000'0000, 7}};
  std::vector<CollatzResult> results(count);
  for (CollatzResult& result : results)
    result = {.peak = peaks[random() % (3 + seed % 4)],
              .steps = random() % 4 == 0 ? 100'000 : static_cast<std::uint32_t>(random() % 100'000),
              .end = static_cast<CollatzEnd>(random() % ends)};
  return results;
}

}  // namespace

TEST_CASE("collatz has the known steps and peaks on every device", "[workloads][collatz]") {
  const UInt128 above_64_bits = UInt128{2'275'654'840'695'500'112, 1};
  struct Known {
    UInt128 first;
    std::uint32_t steps;
    UInt128 peak;
  };
  const Known known[] = {{{0, 0}, 0, {0, 0}},
                         {{1, 0}, 0, {1, 0}},
                         {{2, 0}, 1, {2, 0}},
                         {{27, 0}, 111, {9232, 0}},
                         {{113'383, 0}, 247, {2'482'111'348, 0}},
                         {{159'487, 0}, 183, {17'202'377'752, 0}},
                         {{837'799, 0}, 524, {2'974'984'576, 0}},
                         {{670'617'279, 0}, 986, {966'616'035'460, 0}},
                         {{9'780'657'630, 0}, 1132, {319'497'287'463'520, 0}},
                         {{8'528'817'511, 0}, 726, {18'144'594'937'356'598'024u, 0}},
                         {{12'327'829'503, 0}, 543, above_64_bits}};
  for (const std::string& leg : legs()) {
    INFO(leg);
    for (const Known& one : known) {
      const CollatzResult expected{one.peak, one.steps, CollatzEnd::one};
      CHECK(text_of(trajectories(one.first, 1, leg)[0]) == text_of(expected));
    }
    const CollatzResult highest = trajectories({1'980'976'057'694'848'447, 0}, 1, leg)[0];
    CHECK(highest.steps == 1475);
    CHECK(highest.end == CollatzEnd::one);
    CHECK(highest.peak.high >> 61 == 1);  // 126 bits
  }
}

TEST_CASE("collatz marks overflows of 128 bits", "[workloads][collatz]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(trajectories({all_bits, (1u << 16) - 1}, 1, leg)[0].end == CollatzEnd::one);  // 2^80 - 1
    CHECK(trajectories({all_bits, (1u << 17) - 1}, 1, leg)[0].end == CollatzEnd::overflow);
    CHECK(differing_result({all_bits, (1u << 17) - 1}, 1, leg) == "");
    // The largest numbers, and those beside the largest whose step has 128 bits.
    CHECK(differing_result({all_bits - 299, all_bits}, 300, leg) == "");
    CHECK(differing_result({all_bits / 3 - 150, all_bits / 3}, 300, leg) == "");
    CHECK(text_of(trajectories({all_bits, all_bits}, 1, leg)[0]) ==
          "0 steps, peak 340282366920938463463374607431768211455, end 2");
  }
}

TEST_CASE("collatz is right for any number of numbers, across words, and beside powers of 2",
          "[workloads][collatz]") {
  for (const std::string& leg : legs())
    for (const std::size_t count : {0u, 1u, 2u, 255u, 256u, 257u, 5001u}) {
      INFO(leg << ", " << count << " numbers");
      CHECK(differing_result({0, 0}, count, leg) == "");
      CHECK(differing_result({0xffff'ff00, 0}, count, leg) == "");
      if (count > 257) continue;
      for (const std::uint32_t bits : {16u, 32u, 57u, 63u, 64u, 96u, 121u, 127u}) {
        const UInt128 power =
            bits < 64 ? UInt128{std::uint64_t{1} << bits, 0} : UInt128{0, std::uint64_t{1} << (bits - 64)};
        const UInt128 first = {power.low - 128, power.high - (power.low < 128 ? 1 : 0)};
        CHECK(differing_result(first, count, leg) == "");
      }
    }
}

TEST_CASE("collatz is right for 1,000 ranges of random numbers", "[workloads][collatz]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::size_t count = random() % (i % 50 == 0 ? 1500 : 60);
    const UInt128 first = random_number(random, count);
    const CollatzOptions options{.step_limit =
                                     i % 3 == 0 ? static_cast<std::uint32_t>(random() % 700) : 100'000};
    const std::string& leg = legs()[random() % legs().size()];
    INFO(leg << ", " << count << " numbers from " << to_string(first) << ", limit " << options.step_limit);
    CHECK(differing_result(first, count, leg, options) == "");
  }
}

TEST_CASE("collatz ends at the step limit, and not if 1 is reached there", "[workloads][collatz]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    for (const std::uint32_t limit : {0u, 1u, 19u, 20u, 21u, 110u, 111u, 112u})
      CHECK(differing_result({0, 0}, 3000, leg, {.step_limit = limit}) == "");
    CHECK(trajectories({27, 0}, 1, leg, {.step_limit = 110})[0].end == CollatzEnd::step_limit);
    CHECK(trajectories({27, 0}, 1, leg, {.step_limit = 111})[0].end == CollatzEnd::one);
    // Words of zeros: a power of 2 has no step but halvings.
    CHECK(trajectories({0, std::uint64_t{1} << 63}, 1, leg)[0].steps == 127);
    CHECK(differing_result({0, std::uint64_t{1} << 63}, 1, leg, {.step_limit = 126}) == "");
    CHECK(differing_result({0, std::uint64_t{1} << 63}, 1, leg, {.step_limit = 40}) == "");
  }
}

TEST_CASE("collatz is right if its grid has more than one row", "[workloads][collatz][large]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(differing_result({all_bits - 100, 3}, (std::size_t{1} << 23) + 77, leg, {.step_limit = 3}) == "");
  }
}

TEST_CASE("collatz and its summary are right beyond 4 GiB", "[workloads][collatz][large][.huge]") {
  if (!has_leg("cpu")) return;
  const std::size_t count = (std::size_t{1} << 28) / 3 * 2 + 70'001;
  std::vector<CollatzResult> results(count);
  run(workloads::collatz({0, 0}, results, {.step_limit = 1}), "cpu");
  std::size_t wrong = 0;
  for (std::size_t i = 3; i < count; ++i) {
    const std::uint64_t peak = i % 2 == 0 ? i : 3 * i + 1;
    wrong += results[i] != CollatzResult{{peak, 0}, 1, CollatzEnd::step_limit};
  }
  CHECK(wrong == 0);
  results[count - 1] = {{5, 0}, 1, CollatzEnd::one};
  const CollatzSummary summary = summary_of(results, "cpu");
  CHECK(summary.finished == 4);
  CHECK(summary.unfinished == count - 4);
  CHECK(summary.longest == 2);
  CHECK(summary.highest == count - 1);
}

TEST_CASE("collatz_summary finds the known records", "[workloads][collatz]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const std::size_t count = leg == "cpu" ? 1'000'000 : 100'000;
    const auto results = trajectories({0, 0}, count, leg);
    const CollatzSummary summary = summary_of(results, leg);
    CHECK(summary.longest == (leg == "cpu" ? 837'799 : 77'031));
    CHECK(summary.most_steps == (leg == "cpu" ? 524 : 350));
    CHECK(summary.highest == (leg == "cpu" ? 704'511 : 77'671));
    CHECK(summary == reference::collatz_summary(results));
  }
}

TEST_CASE("collatz_summary takes the first of equal records", "[workloads][collatz]") {
  for (const std::string& leg : legs())
    for (const std::size_t count :
         {0u, 1u, 2u, 255u, 256u, 257u, 4097u, 65'535u, 65'536u, 65'537u, 200'001u}) {
      INFO(leg << ", " << count << " results");
      for (const std::uint32_t ends : {1u, 3u}) {
        const auto results = random_results(count, static_cast<std::uint32_t>(count) + ends, ends);
        CHECK(summary_of(results, leg) == reference::collatz_summary(results));
      }
      // One result that counts, with zeros.
      std::vector<CollatzResult> results(count, {{7, 7}, 9, CollatzEnd::step_limit});
      CHECK(summary_of(results, leg) == CollatzSummary{.unfinished = count});
      if (count == 0) continue;
      results[count / 2] = {{0, 0}, 0, CollatzEnd::one};
      CHECK(summary_of(results, leg) == reference::collatz_summary(results));
    }
}

TEST_CASE("numbers of 128 bits have an order, a sum and decimal digits", "[workloads][collatz]") {
  CHECK(UInt128{1, 2} > UInt128{2, 1});
  CHECK(UInt128{1, 2} < UInt128{2, 2});
  CHECK(UInt128{all_bits, 0} + 1 == UInt128{0, 1});
  CHECK(UInt128{all_bits, all_bits} + 2 == UInt128{1, 0});
  CHECK(to_string(UInt128{0, 0}) == "0");
  CHECK(to_string(UInt128{1'000'000, 0}) == "1000000");
  CHECK(to_string(UInt128{0, 1}) == "18446744073709551616");
  CHECK(to_string(UInt128{all_bits, all_bits}) == "340282366920938463463374607431768211455");
}

TEST_CASE("collatz refuses numbers and options out of range", "[workloads][collatz]") {
  std::vector<CollatzResult> results(3), none;
  std::vector<CollatzSummary> summaries(2);
  const auto sentence_of = [](const Job& job) {
    REQUIRE(job.error());
    CHECK(*job.error() == Errc::invalid_argument);
    return refusal(job);
  };
  CHECK(sentence_of(workloads::collatz({all_bits - 1, all_bits}, results)) ==
        "First number (340282366920938463463374607431768211454) of workload 'collatz' with 3 results exceeds "
        "the limit (340282366920938463463374607431768211455 for the last number).");
  CHECK(refusal(workloads::collatz({all_bits - 2, all_bits}, results)) == "not refused");
  CHECK(refusal(workloads::collatz({all_bits, all_bits}, none)) == "not refused");
  CHECK(sentence_of(workloads::collatz({1, 0}, results, {.step_limit = 100'001})) ==
        "Step limit (100001) of workload 'collatz' exceeds the limit (100000).");
  CHECK(sentence_of(workloads::collatz_summary(results, summaries)) ==
        "Summary (2 elements) of workload 'collatz_summary' does not have 1 element.");
}
