// Follows the Collatz trajectories of many numbers, in order, around known records, or at random.
// Writes the running records of steps and of height as CSV, and a picture of all trajectories.
#include <wye/workloads/collatz.hpp>
#include <wye/wye.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "canvas.hpp"
#include "files.hpp"
#include "text.hpp"

namespace {

namespace workloads = wye::workloads;
using document_network::Canvas;
using document_network::read_number;
using workloads::CollatzEnd;
using workloads::CollatzResult;
using workloads::CollatzSummary;
using workloads::UInt128;

struct Options {
  std::string order = "ordered";
  std::uint64_t count = 1'000'000;
  std::uint64_t first = 1;
  std::uint64_t seed = 1;
  std::string out = "collatz_report";
};

constexpr const char* usage =
    "collatz [--order ordered|records|random] [--count N] [--first N] [--seed N] [--out DIR]\n"
    "  ordered: N numbers from the first one on; records: numbers around records of steps;\n"
    "  random: ranges of 1,000 numbers, which have up to 100 bits\n";

/// Returns whether all arguments are valid.
bool read_arguments(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return false;
    const std::string name = argv[i];
    bool valid = true;
    if (name == "--order")
      options.order = argv[i + 1];
    else if (name == "--out")
      options.out = argv[i + 1];
    else if (name == "--count")
      valid = read_number(argv[i + 1], options.count);
    else if (name == "--first")
      valid = read_number(argv[i + 1], options.first);
    else if (name == "--seed")
      valid = read_number(argv[i + 1], options.seed);
    else
      valid = false;
    if (!valid) return false;
  }
  return options.order == "ordered" || options.order == "records" || options.order == "random";
}

struct Numbers {
  UInt128 first;
  std::uint64_t count = 0;
};

std::vector<Numbers> ordered(const Options& options) {
  constexpr std::uint64_t part = 250'000;
  std::vector<Numbers> ranges;
  for (std::uint64_t at = 0; at < options.count; at += part)
    ranges.push_back({UInt128{options.first, 0} + at, std::min(part, options.count - at)});
  return ranges;
}

std::vector<Numbers> around_records(const Options& options) {
  constexpr std::uint64_t records[] = {27,        871,        77'031,      837'799,
                                       8'400'511, 63'728'127, 670'617'279, 9'780'657'630};
  const std::uint64_t width = std::max<std::uint64_t>(options.count / std::size(records), 1);
  std::vector<Numbers> ranges;
  for (const std::uint64_t record : records)
    ranges.push_back({UInt128{record - std::min(record, width / 2), 0}, width});
  return ranges;
}

std::vector<Numbers> at_random(const Options& options) {
  constexpr std::uint64_t part = 1000;
  std::mt19937_64 random(options.seed);
  std::vector<Numbers> ranges;
  for (std::uint64_t at = 0; at < options.count; at += part) {
    const std::uint64_t bits = 1 + random() % 36;  // of the high word
    ranges.push_back({{random(), random() >> (64 - bits)}, std::min(part, options.count - at)});
  }
  return ranges;
}

struct Record {
  std::uint64_t place = 0;  ///< among all numbers
  UInt128 number;
  CollatzResult result;
  bool of_steps = false;
  bool of_height = false;
};

/// A point of the picture.
struct Sample {
  std::uint64_t place = 0;
  CollatzResult result;
};

/// Collects records and sums over ranges, and a sample of the results.
class Survey {
 public:
  explicit Survey(std::uint64_t total) : step_(std::max<std::uint64_t>(total / 20'000, 1)) {}

  void add(const Numbers& range, const std::vector<CollatzResult>& results, const CollatzSummary& summary) {
    finished_ += summary.finished;
    steps_ += summary.steps;
    others_ += summary.unfinished + summary.overflowed;
    // Most ranges have no record, so their results need not be compared.
    const bool has_record =
        summary.finished != 0 && (summary.most_steps > most_steps_ || summary.peak > highest_);
    for (std::uint64_t i = 0; has_record && i < results.size(); ++i) compare(range, i, results[i]);
    for (std::uint64_t i = (step_ - place_ % step_) % step_; i < results.size(); i += step_)
      samples_.push_back({place_ + i, results[i]});
    place_ += results.size();
  }

  const std::vector<Record>& records() const { return records_; }
  const std::vector<Sample>& samples() const { return samples_; }
  std::uint64_t numbers() const { return place_; }
  std::uint64_t unfinished() const { return others_; }
  std::uint64_t most_steps() const { return most_steps_; }
  double mean() const {
    return finished_ == 0 ? 0 : static_cast<double>(steps_) / static_cast<double>(finished_);
  }

 private:
  void compare(const Numbers& range, std::uint64_t i, const CollatzResult& result) {
    if (result.end != CollatzEnd::one) return;
    const bool longer = result.steps > most_steps_, higher = result.peak > highest_;
    if (!longer && !higher) return;
    most_steps_ = std::max<std::uint64_t>(most_steps_, result.steps);
    highest_ = std::max(highest_, result.peak);
    records_.push_back({place_ + i, range.first + i, result, longer, higher});
  }

  std::uint64_t step_;
  std::uint64_t place_ = 0, finished_ = 0, others_ = 0, steps_ = 0, most_steps_ = 0;
  UInt128 highest_;
  std::vector<Record> records_;
  std::vector<Sample> samples_;
};

std::string csv_of(const std::vector<Record>& records) {
  std::string text = "number,steps,peak,record of steps,record of height\n";
  for (const Record& record : records)
    text += to_string(record.number) + "," + std::to_string(record.result.steps) + "," +
            to_string(record.result.peak) + "," + (record.of_steps ? "1," : "0,") +
            (record.of_height ? "1\n" : "0\n");
  return text;
}

double bits_of(UInt128 n) {
  return std::log2(std::ldexp(static_cast<double>(n.high), 64) + static_cast<double>(n.low) + 1);
}

/// Draws the steps of each sampled number, in the colour of its peak, and the records of steps.
std::string picture_of(const Survey& survey, const Options& options) {
  using namespace document_network;  // NOLINT: the names of its page
  constexpr double left = 110, right = 1540, top = 170, bottom = 900;
  Canvas page(1600, 1000);
  char subtitle[160];
  std::snprintf(subtitle, sizeof subtitle, "%llu numbers (%s), mean %.2f steps, most %llu",
                static_cast<unsigned long long>(survey.numbers()), options.order.c_str(), survey.mean(),
                static_cast<unsigned long long>(survey.most_steps()));
  page.headline("Collatz steps", subtitle);

  double most = static_cast<double>(survey.most_steps());
  for (const Sample& sample : survey.samples())
    most = std::max(most, static_cast<double>(sample.result.steps));
  most = std::max(most, 1.0);
  const double all = std::max(static_cast<double>(survey.numbers()), 1.0);
  const auto at = [&](std::uint64_t place, std::uint32_t steps) {
    return Point{left + (right - left) * static_cast<double>(place) / all,
                 bottom - (bottom - top) * static_cast<double>(steps) / most};
  };
  const Style small{.size = 15, .color = colors::quiet, .align = 1};
  for (int i = 0; i <= 4; ++i) {
    const auto steps = static_cast<std::uint32_t>(most * i / 4);
    const Point from = at(0, steps);
    page.line(from, {right, from.y}, colors::faint);
    page.write({left - 12, from.y + 5}, std::to_string(steps), small);
  }
  for (const Sample& sample : survey.samples())
    page.disc(at(sample.place, sample.result.steps), 1.3,
              viridis(bits_of(sample.result.peak) / 64).fade(0.6));
  Point last{-1000, 0};
  for (const Record& record : survey.records()) {
    if (!record.of_steps) continue;
    const Point point = at(record.place, record.result.steps);
    page.ring(point, 4, colors::ink, 1.5);
    if (point.x - last.x < 150) continue;  // no room for another number
    page.write({point.x, point.y - 10}, to_string(record.number),
               {.size = 15, .align = point.x > right - 150 ? 1.0 : 0.0, .outline = true});
    last = point;
  }
  page.footnote("Colour: the bits of the largest value, from 0 to 64. Rings: records of steps.");
  return page.png();
}

int fail(const std::string& sentence) {
  std::fprintf(stderr, "collatz: %s\n", sentence.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!read_arguments(argc, argv, options)) return std::fputs(usage, stderr), 2;
  auto runtime = wye::Runtime::open();
  if (!runtime) return fail(runtime.error().describe());

  const std::vector<Numbers> ranges = options.order == "ordered"   ? ordered(options)
                                      : options.order == "records" ? around_records(options)
                                                                   : at_random(options);
  std::uint64_t total = 0;
  for (const Numbers& range : ranges) total += range.count;
  Survey survey(total);
  for (const Numbers& range : ranges) {
    std::vector<CollatzResult> results(range.count);
    std::vector<CollatzSummary> summary(1);
    auto followed = runtime->run(workloads::collatz(range.first, results));
    if (!followed) return fail(followed.error().describe());
    auto summarized = runtime->run(workloads::collatz_summary(results, summary));
    if (!summarized) return fail(summarized.error().describe());
    survey.add(range, results, summary[0]);
  }
  for (const Record& record : survey.records())
    std::printf("%40s: %5u steps%s, peak %s%s\n", to_string(record.number).c_str(), record.result.steps,
                record.of_steps ? " (record)" : "", to_string(record.result.peak).c_str(),
                record.of_height ? " (record)" : "");
  std::printf("%llu numbers, mean %.3f steps, %llu did not reach 1\n",
              static_cast<unsigned long long>(survey.numbers()), survey.mean(),
              static_cast<unsigned long long>(survey.unfinished()));

  const std::string picture = picture_of(survey, options);
  if (picture.empty()) return fail("There is no memory for the picture.");
  if (auto wrong = document_network::write_all(
          {{options.out + "/records.csv", csv_of(survey.records())}, {options.out + "/steps.png", picture}}))
    return fail(*wrong);
  std::printf("written to %s\n", options.out.c_str());
  return 0;
}
