#include <wye/workloads/collatz.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "collatz_kernels.hpp"
#include "cpu.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

const auto& collatz_kernel() {
  static const auto kernel = make_kernel<Write<CollatzResult>, cpu::CollatzStart>(
      kernels::collatz, {"results", "start"}, {}, {host(cpu::collatz, {.tile = Extent3(2048)})});
  return kernel;
}

const auto& collatz_summary_kernel() {
  static const auto kernel = make_kernel<Read<CollatzResult>, Read<CollatzSummary>, Write<CollatzSummary>>(
      kernels::collatz_summary, {"results", "parts", "sums"}, {},
      {host(cpu::collatz_summary, {.tile = Extent3(256)})});
  return kernel;
}

constexpr std::uint32_t most_collatz_steps = 100'000;

/// Returns the number of workgroups that summarize `count` elements, at least one.
std::uint64_t summary_groups(std::uint64_t count) {
  return count == 0 ? 1 : (count - 1) / cpu::collatz_stretch + 1;
}

/// Adds a summary of the results, or of `parts` if there are any.
void add_summary(Steps& steps, const Read<CollatzResult>& results, const Read<CollatzSummary>& parts,
                 std::uint64_t count, const Write<CollatzSummary>& summary) {
  const std::uint64_t groups = summary_groups(count);
  if (groups == 1) return steps.add(collatz_summary_kernel(), Extent3(256), results, parts, summary);
  const Scratch<CollatzSummary> sums(groups);
  steps.add(collatz_summary_kernel(), flat(256 * groups), results, parts, sums);
  add_summary(steps, std::span<const CollatzResult>(), sums, groups, summary);
}

}  // namespace

std::string to_string(UInt128 value) {
  std::string digits;
  do {
    // Long division by 10, of words of 32 bits.
    std::uint64_t rest = 0, words[4] = {value.high >> 32, value.high & 0xffff'ffff, value.low >> 32,
                                        value.low & 0xffff'ffff};
    for (std::uint64_t& word : words) {
      const std::uint64_t part = rest << 32 | word;
      word = part / 10;
      rest = part % 10;
    }
    value = {words[2] << 32 | words[3], words[0] << 32 | words[1]};
    digits.push_back(static_cast<char>('0' + rest));
  } while (value != UInt128{});
  std::reverse(digits.begin(), digits.end());
  return digits;
}

Job collatz(UInt128 first, Write<CollatzResult> results, CollatzOptions options) {
  const auto refuse = [](std::string sentence) {
    return refused("collatz", workload_types::number_theory, std::move(sentence));
  };
  constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  const UInt128 left{~first.low, ~first.high};  // the numbers after the first one
  if (results.size() != 0 && left < UInt128{results.size() - 1, 0})
    return refuse("First number (" + to_string(first) + ") of workload 'collatz' with " +
                  std::to_string(results.size()) + " results exceeds the limit (" + to_string({all, all}) +
                  " for the last number).");
  if (options.step_limit > most_collatz_steps)
    return refuse("Step limit (" + std::to_string(options.step_limit) +
                  ") of workload 'collatz' exceeds the limit (" + std::to_string(most_collatz_steps) + ").");
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  Steps steps;
  steps.add(collatz_kernel(), flat(results.size()), results,
            cpu::CollatzStart{.first_0 = low(first.low),
                              .first_1 = high(first.low),
                              .first_2 = low(first.high),
                              .first_3 = high(first.high),
                              .step_limit = options.step_limit});
  return std::move(steps).job("collatz", workload_types::number_theory);
}

Job collatz_summary(Read<CollatzResult> results, Write<CollatzSummary> summary) {
  if (summary.size() != 1)
    return refused("collatz_summary", workload_types::number_theory,
                   "Summary (" + std::to_string(summary.size()) +
                       " elements) of workload 'collatz_summary' does not have 1 element.");
  Steps steps;
  add_summary(steps, results, std::span<const CollatzSummary>(), results.size(), summary);
  return std::move(steps).job("collatz_summary", workload_types::number_theory);
}

}  // namespace wye::workloads
