#include "claims.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <set>
#include <utility>

#include "quantile.hpp"

namespace wye_bench {
namespace {

/// Adds a claim once per backend. The name of the backend replaces '%' in its rows.
void add_claims(std::vector<Claim>& list, const Claim& claim, std::initializer_list<const char*> backends) {
  for (const char* const backend : backends) {
    Claim one = claim;
    one.on = backend;
    for (std::string* row : {&one.row, &one.over, &one.bound})
      if (const std::size_t at = row->find('%'); at != row->npos) row->replace(at, 1, backend);
    list.push_back(one);
  }
}

Claim because(Claim claim, std::string why) {
  claim.why = std::move(why);
  return claim;
}

const char* const on_same_processors = "If the driver is lavapipe, kernels run on the processors of the CPU.";
const char* const in_registers = "The bound makes as many multiplications and additions in registers.";

std::vector<Claim> make_claims() {
  std::vector<Claim> list;

  add_claims(list,
             {.name = "Context switch",
              .claimed = 0.7,
              .goal = 0.5,
              .row = "context_switch_%/wye",
              .how = "the first submission to another context of the device, all of it"},
             {"cpu", "vulkan", "cuda"});

  const Claim hits{.name = "Cache hits",
                   .figure = Figure::hits,
                   .claimed = 97.3,
                   .goal = 95,
                   .counter = "misses",
                   .why = "The bound is a cache that knows all later requests."};
  Claim recorded = hits, published = hits;
  recorded.row = "evict_workloads_85/wye", recorded.bound = "evict_workloads_85/belady";
  recorded.how =
      "hits in the second half of the requests of our workloads, room for 85 % of their kernels; "
      "the documents set the goal after ten minutes";
  published.row = "evict_zipf_85/wye", published.bound = "evict_zipf_85/belady";
  published.how =
      "hits in the second half of requests in proportion to 1 / rank^0.9, room for 85 % of 3,000 kernels";
  list.push_back(recorded);
  list.push_back(published);

  const Claim memory{.name = "Memory per context", .figure = Figure::megabytes, .claimed = 85, .goal = 100};
  Claim resident = memory, host = memory, device = memory;
  resident.row = "context_cold_%/wye", resident.counter = "bytes_1";
  resident.how = "resident memory that the first context of a pool adds; its device is open before";
  add_claims(list, resident, {"cpu", "vulkan"});
  host.row = "cuda_lane/wye", host.counter = "host_bytes";
  host.how = "resident memory of the host, mean of 64 contexts; the driver's own context is open before";
  add_claims(list, host, {"cuda"});
  device.name = "Memory per context, on the card";
  device.row = "cuda_lane/wye", device.counter = "device_bytes";
  device.how = "memory of the card, mean of 64 contexts; the driver's own context is open before";
  add_claims(list, device, {"cuda"});

  add_claims(
      list,
      {.name = "Jobs at once",
       .figure = Figure::jobs,
       .claimed = 8,
       .goal = 4,
       .row = "claim_jobs_at_once_%/wye",
       .counter = "jobs",
       .how = "host functions that wait for each other; 8 lanes, `concurrent_jobs` = 8 (the default is 4)"},
      {"cpu"});

  const Claim frames{
      .name = "Frames of a network",
      .figure = Figure::frames_per_second,
      .claimed = 62,
      .goal = 60,
      .row = "network_frame_%/wye",
      .how = "a step of the layout, and the picture of it, copied to the host, after 100 others"};
  add_claims(list, frames, {"cpu"});
  add_claims(list, because(frames, on_same_processors), {"vulkan"});
  Claim frames_on_card = frames;
  frames_on_card.row = {};
  frames_on_card.needs = "Needs a card, and a benchmark of frames on it.";
  add_claims(list, frames_on_card, {"cuda"});

  list.push_back({.name = "Speed-up per worker",
                  .figure = Figure::times,
                  .claimed = 1.95,
                  .how = "twice as many workers of a cluster",
                  .needs = "Needs a cluster, and `wye::cluster`, which is not in this build."});

  struct Size {
    const char* range;
    const char* elements;
    double milliseconds;
  };
  for (const Size& size :
       {Size{"below 1K", "512", 0.1}, Size{"1K to 10K", "4096", 0.5}, Size{"above 10K", "65536", 2.1}}) {
    const Claim vectors{.name = std::string("Vector operation, ") + size.range,
                        .claimed = size.milliseconds,
                        .row = std::string("claim_vector_") + size.elements + "_%/wye",
                        .how = std::string("axpy of ") + size.elements +
                               " floats of the host, from `submit` to the end of `wait`"};
    add_claims(list, vectors, {"cpu"});
    add_claims(list, because(vectors, on_same_processors), {"vulkan"});
    add_claims(list, vectors, {"cuda"});
  }

  const Claim batches{.name = "Batches instead of one by one",
                      .figure = Figure::saved,
                      .claimed = 80,
                      .row = "small_requests_x1000/wye",
                      .over = "small_requests_x1000/without_batches",
                      .how = "time saved for 1,000 requests; `batch_limit` is 64, or 1"};
  add_claims(list, batches, {"vulkan"});
  Claim batches_on_card = batches;
  batches_on_card.row = batches_on_card.over = {};  // which run on Vulkan only
  batches_on_card.needs = "Needs a card, and a benchmark of batches on it.";
  add_claims(list, batches_on_card, {"cuda"});

  for (const Size& size : {Size{"64", "64", 0.3}, Size{"256", "256", 1.2}, Size{"1024", "1024", 8.7}}) {
    const Claim product{.name = std::string("Matrix product, ") + size.range,
                        .claimed = size.milliseconds,
                        .row = std::string("claim_matmul_") + size.elements + "_%/wye",
                        .how = "square, float32, in memory of the host, from `submit` to the end of `wait`"};
    Claim on_cpu = product;
    if (std::string(size.elements) == "1024") {
      on_cpu.row = "matmul_1024_cpu/wye", on_cpu.bound = "matmul_1024_cpu/fma_peak";
      on_cpu.how = "square, float32, in memory of the host, by `run`";
      on_cpu.why = std::string("A product is 2 x 1024^3 = 2.1e9 operations. ") + in_registers;
    }
    add_claims(list, on_cpu, {"cpu"});
    add_claims(list, because(product, on_same_processors), {"vulkan"});
    add_claims(list, product, {"cuda"});
  }

  const Claim attention{
      .name = "Attention, one layer",
      .claimed = 3.4,
      .row = "claim_attention_layer_%/wye",
      .how =
          "512 tokens of width 576 (SmolLM2; the documents give no size): projections, causal "
          "attention of 9 heads of 64 with 3 heads of keys and values, projection; no rotary "
          "embedding; float32, in arrays on the device"};
  Claim attention_on_cpu = because(attention, in_registers);
  attention_on_cpu.bound = "claim_attention_layer_cpu/fma_peak";
  add_claims(list, attention_on_cpu, {"cpu"});
  add_claims(list, because(attention, on_same_processors), {"vulkan"});
  add_claims(list, attention, {"cuda"});

  struct Text {
    const char* name;
    double milliseconds;
    const char* how;
  };
  for (const Text& text :
       {Text{"simple", 2.1, "one multiplication per element"},
        Text{"typical", 4.2, "softmax of rows, two reductions in shared memory"},
        Text{"complex", 5.8, "matrix product in tiles of shared memory and registers, with gelu"}}) {
    const Claim compiling{
        .name = std::string("Compiling a kernel, ") + text.name,
        .claimed = text.milliseconds,
        .row = std::string("claim_compile_") + text.name + "_%/wye",
        .how = std::string(text.how) +
               "; a text that no cache has, after another kernel, including the driver's code"};
    add_claims(list,
               because(compiling,
                       "GLSL becomes SPIR-V, which is validated. lavapipe then makes machine code by LLVM."),
               {"vulkan"});
    add_claims(list, because(compiling, "NVRTC takes 20 ms or more for any CUDA C++."), {"cuda"});
  }

  list.push_back({.name = "Audio on a GPU, beside the CPU",
                  .figure = Figure::times,
                  .claimed = 5,
                  .how = "5 to 10 times as fast",
                  .needs = "Needs a card, and workloads for audio, which do not exist yet."});
  return list;
}

bool is_at_most(Figure figure) { return figure == Figure::milliseconds || figure == Figure::megabytes; }

const char* unit(Figure figure) {
  switch (figure) {
    case Figure::milliseconds: return " ms";
    case Figure::megabytes: return " MB";
    case Figure::hits:
    case Figure::saved: return " %";
    case Figure::jobs: return "";
    case Figure::frames_per_second: return " per s";
    case Figure::times: return " x";
  }
  return "";
}

/// `other` is the number of the row `Claim::over`.
double figure_of(Figure figure, double number, double other) {
  switch (figure) {
    case Figure::milliseconds: return number * 1e3;
    case Figure::megabytes: return number / 1e6;
    case Figure::hits: return 100 * (1 - number);
    case Figure::jobs: return number;
    case Figure::frames_per_second: return 1 / number;
    case Figure::saved: return 100 * (1 - number / other);
    case Figure::times: return other / number;
  }
  return 0;
}

/// Returns the numbers of a row, or of its counter; null if it has none.
const std::vector<double>* numbers_of(const Results& results, const std::string& row,
                                      const std::string& counter) {
  std::string key = row;
  if (!counter.empty()) key.insert(std::min(key.find('/'), key.size()), "." + counter);
  const auto found = results.numbers.find(key);
  return found == results.numbers.end() || found->second.empty() ? nullptr : &found->second;
}

/// Returns the figure of `row` for each repetition; none if `row`, or the row to compare it with,
/// has not run.
std::vector<double> figures(const Claim& claim, const std::string& row, const Results& results) {
  const std::vector<double>* const numbers = numbers_of(results, row, claim.counter);
  const std::vector<double>* const others =
      claim.over.empty() ? numbers : numbers_of(results, claim.over, claim.counter);
  std::vector<double> list;
  if (!numbers || !others) return list;
  for (std::size_t i = 0; i < std::min(numbers->size(), others->size()); ++i)
    list.push_back(figure_of(claim.figure, (*numbers)[i], (*others)[i]));
  return list;
}

std::string figure_text(Figure figure, double value) {
  char text[64];
  if (figure == Figure::hits || figure == Figure::saved)
    std::snprintf(text, sizeof text, "%.1f", value);
  else if (std::abs(value) >= 100)
    std::snprintf(text, sizeof text, "%.0f", value);
  else
    std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

/// A sentence is added to `text`, after those before it.
void add_sentence(std::string& text, const std::string& sentence) {
  if (!text.empty() && !sentence.empty()) text += ' ';
  text += sentence;
}

/// Returns why a claim has no figure. A row skips itself where there is no card, and then needs no
/// other reason.
std::string missing(const Claim& claim, const Results& results, bool has_card) {
  if (claim.on == "cuda" && !has_card) return claim.needs.empty() ? "Needs a card." : claim.needs;
  std::string text;
  for (const std::string& row : {claim.row, claim.over})
    if (const auto skipped = results.skipped.find(row); skipped != results.skipped.end())
      add_sentence(text, "`" + row + "` skipped itself: \"" + skipped->second + "\".");
  if (!text.empty()) return text;
  return claim.needs.empty() ? "`" + claim.row + "` did not run." : claim.needs;
}

const char* verdict_text(const Verdict& verdict) {
  if (!verdict.measured) return "not measured";
  if (verdict.is_met) return verdict.is_goal_met ? "met" : "met, not the goal";
  return verdict.is_goal_met ? "goal met, not the claim" : "not met";
}

/// Returns `text` as the contents of a cell of a table.
std::string cell(std::string text) {
  for (char& c : text)
    if (c == '|' || c == '\n') c = ' ';
  return text;
}

}  // namespace

const std::vector<Claim>& claims() {
  static const std::vector<Claim> list = make_claims();
  return list;
}

std::string claims_filter(const std::vector<Claim>& list) {
  std::set<std::string> rows;
  for (const Claim& claim : list)
    for (const std::string& row : {claim.row, claim.over, claim.bound})
      if (!row.empty()) rows.insert(row);
  std::string pattern;
  for (const std::string& row : rows) pattern += (pattern.empty() ? "^(" : "|") + row;
  return pattern.empty() ? "^$" : pattern + ")(/|$)";
}

std::vector<Verdict> judge(const std::vector<Claim>& list, const Results& results) {
  std::vector<Verdict> verdicts;
  const bool has_card = std::any_of(list.begin(), list.end(), [&](const Claim& claim) {
    return claim.on == "cuda" && !figures(claim, claim.row, results).empty();
  });
  for (const Claim& claim : list) {
    Verdict verdict{.claim = claim};
    const std::vector<double> measured = figures(claim, claim.row, results);
    if (measured.empty()) {
      verdict.reason = missing(claim, results, has_card);
      verdicts.push_back(verdict);
      continue;
    }
    const double median = quantile(measured, 0.5);
    verdict.measured = median;
    verdict.p10 = quantile(measured, 0.1), verdict.p90 = quantile(measured, 0.9);
    const bool at_most = is_at_most(claim.figure);
    verdict.is_met = at_most ? median <= claim.claimed : median >= claim.claimed;
    verdict.is_goal_met = claim.goal == 0 ? verdict.is_met
                          : at_most       ? median < claim.goal
                                          : median >= claim.goal;
    if (const std::vector<double> bound = figures(claim, claim.bound, results); !bound.empty())
      verdict.bound = quantile(bound, 0.5);
    if (!verdict.is_met || !verdict.is_goal_met) {
      verdict.reason = claim.why;
      if (verdict.bound)
        add_sentence(verdict.reason, "The bound is " + figure_text(claim.figure, *verdict.bound) +
                                         unit(claim.figure) + " here (`" + claim.bound + "`).");
      if (verdict.reason.empty()) verdict.reason = "The reason is not known yet.";
    }
    verdicts.push_back(verdict);
  }
  return verdicts;
}

std::string claims_table(const std::vector<Verdict>& verdicts, const std::vector<ClaimDevice>& devices) {
  std::string text;
  for (const ClaimDevice& device : devices)
    text += "- " + device.backend + ": " + cell(device.name) +
            (device.is_cpu && device.backend != "cpu" ? ", a driver that runs on the CPU" : "") + "\n";
  if (!devices.empty()) text += '\n';
  text +=
      "Measured is the median of the repetitions. Times of a GPU include the copies from and to the host,\n"
      "unless the work says otherwise. \"Met\" is for the median and this machine.\n\n"
      "| claim | on | claimed | goal | measured | 10-90 % | | the measured work; the reason |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const Verdict& verdict : verdicts) {
    const Claim& claim = verdict.claim;
    const auto figure = [&](double value) { return figure_text(claim.figure, value); };
    const auto first = std::find_if(devices.begin(), devices.end(),
                                    [&](const ClaimDevice& device) { return device.backend == claim.on; });
    const bool is_driver_on_cpu = first != devices.end() && first->is_cpu && claim.on != "cpu";
    std::string work = claim.how;
    if (!claim.row.empty())
      work += (work.empty() ? "`" : " (`") + claim.row + (claim.how.empty() ? "`" : "`)");
    work += '.';
    add_sentence(work, verdict.reason);
    text += "| " + cell(claim.name) + " | " + claim.on + (is_driver_on_cpu ? " on the CPU" : "");
    text += " | " + figure(claim.claimed) + unit(claim.figure) + " | ";
    if (claim.goal != 0)
      text += (is_at_most(claim.figure) ? "< " : ">= ") + figure(claim.goal) + unit(claim.figure);
    text += " | ";
    if (verdict.measured) text += figure(*verdict.measured) + unit(claim.figure);
    text += " | ";
    if (verdict.measured) text += figure(verdict.p10) + "-" + figure(verdict.p90);
    text += std::string(" | ") + verdict_text(verdict) + " | " + cell(work) + " |\n";
  }
  return text;
}

}  // namespace wye_bench
