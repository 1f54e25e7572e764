// Metrics as text of Prometheus.
#include <wye/wye.hpp>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

/// The series of a text, with their values.
std::map<std::string, double> series_of(const std::string& text) {
  static const std::regex line_of_series(
      R"re(([a-z_]+(\{[a-z]+="([^"\\\n]|\\.)*"(,[a-z]+="([^"\\\n]|\\.)*")*\})?) (-?[0-9.e+-]+))re");
  static const std::regex comment(R"(# (HELP [a-z_]+ .+\.|TYPE [a-z_]+ (counter|gauge|summary)))");
  std::map<std::string, double> series;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    if (std::regex_match(line, comment)) continue;
    CAPTURE(line);
    REQUIRE(std::regex_match(line, parts, line_of_series));
    CHECK(series.emplace(parts[1], std::stod(parts[6])).second);  // no series twice
  }
  return series;
}

/// Runs `promtool check metrics`, if it is installed. Returns what it says.
std::string complaints_about(const std::string& text) {
  if (std::system("promtool --version >/dev/null 2>&1") != 0) {
    test::skip("promtool is not installed");
    return "";
  }
  const TemporaryFolder folder;
  const std::string metrics = folder.put("metrics", text), said = folder / "said";
  const int status = std::system(("promtool check metrics <" + metrics + " >" + said + " 2>&1").c_str());
  std::ifstream file(said);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str() + (status == 0 ? "" : "\nIt failed.");
}

}  // namespace

TEST_CASE("metrics of a runtime are series that Prometheus takes, with its numbers", "[prometheus]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  std::vector<float> x(10, 1.0f);
  for (int job = 0; job < 5; ++job)
    REQUIRE(runtime.run(Job(test::host_scale()(x, 2.0f), workload_types::rendering)));
  const auto failing =
      test::on_host("failing", [](Range, std::span<float>) { throw std::runtime_error("no"); });
  REQUIRE_FALSE(runtime.run(failing(x)));
  const Lease lease = runtime.pool().lease().value();
  const Metrics metrics = runtime.metrics();
  const std::string text = prometheus_text(metrics);
  CHECK(complaints_about(text) == "");
  auto series = series_of(text);
  CHECK(series.at("wye_jobs_submitted_total") == 6);
  CHECK(series.at(R"(wye_jobs_settled_total{type="rendering",state="completed"})") == 5);
  CHECK(series.at(R"(wye_jobs_settled_total{type="custom",state="failed"})") == 1);
  CHECK(series.at(R"(wye_jobs_completed_total{backend="cpu"})") == 5);
  const Histogram& run = metrics.jobs.by_type.at("rendering").run;
  const std::string labels = R"({type="rendering",backend="cpu",part="run")";
  CHECK(series.at("wye_job_seconds_count" + labels + "}") == 5);
  CHECK(series.at("wye_job_seconds_sum" + labels + "}") ==
        Approx(std::chrono::duration<double>(run.sum()).count()));
  CHECK(series.at("wye_job_seconds" + labels + R"(,quantile="0.95"})") ==
        Approx(std::chrono::duration<double>(run.percentile(0.95)).count()));
  CHECK(series.at("wye_contexts_active") == 1);
  CHECK(series.at(R"(wye_slots_used{device="cpu:0"})") == 1);
  CHECK(series.at(R"(wye_slot_use_ratio{device="cpu:0"})") == Approx(metrics.slot_use()));
  CHECK(metrics.slot_use() > 0);
  CHECK(series.at(R"(wye_device_state{device="cpu:0",state="healthy"})") == 1);
  CHECK(series.at(R"(wye_device_state{device="cpu:0",state="dead"})") == 0);
  CHECK(series.at("wye_process_resident_bytes") > 1e6);
  CHECK(series.at("wye_process_cpu_seconds_total") > 0);
}

TEST_CASE("docs/operating.md lists each family of series, with its kind and labels", "[prometheus]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  std::vector<float> x(10, 1.0f);
  REQUIRE(runtime.run(test::host_scale()(x, 2.0f)));
  Metrics metrics = runtime.metrics();
  for (Monitoring& device : metrics.devices) {  // as on a card
    device.memory_total.value = Bytes{1};
    device.memory_used.value = Bytes{1};
    device.utilization.value = device.temperature.value = 0.5;
    device.corrected_errors.value = device.uncorrected_errors.value = 1;
  }
  const std::string text = prometheus_text(metrics);
  std::set<std::string> families;
  std::istringstream lines(text);
  for (std::string line, family, kind; std::getline(lines, line);) {
    std::smatch parts;
    if (std::regex_match(line, parts, std::regex("# TYPE (\\S+) (\\S+)"))) {
      family = parts[1], kind = parts[2];
    } else if (!line.starts_with('#')) {
      std::string labels;
      for (std::string rest = line; std::regex_search(rest, parts, std::regex("([a-z]+)=\""));
           rest = parts.suffix())
        if (parts[1] != "quantile") labels += (labels.empty() ? "" : ", ") + parts[1].str();
      families.insert("| `" + family + "` | " + kind + " |" + (labels.empty() ? "" : " " + labels) + " |");
    }
  }
  std::set<std::string> listed;
  std::ifstream page(WYE_SOURCE_FOLDER "/docs/operating.md");
  for (std::string line; std::getline(page, line);) {
    std::smatch parts;
    if (std::regex_match(line, parts, std::regex("(\\| `wye_[a-z_]+` \\|[^|]*\\|[^|]*\\|) [^|]+ \\|")))
      CHECK(listed.insert(parts[1]).second);
  }
  CHECK(listed == families);
}

TEST_CASE("metrics without a job are series too", "[prometheus]") {
  CHECK(complaints_about(prometheus_text({})) == "");
  CHECK(series_of(prometheus_text({})).at("wye_jobs_submitted_total") == 0);
}

TEST_CASE("names that an application chooses neither break the text nor make it long", "[prometheus]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu", "null"}}}).value();
  std::vector<float> x(1, 1.0f);
  std::deque<std::string> names;  // must be valid until the end
  const auto scale = test::host_scale();
  for (int type = 0; type < 5000; ++type) {
    std::string name = std::to_string(type) + "\"} 7\n# TYPE \\ \xff\x01";
    if (type % 10 == 0) name += std::string(300, 'n');
    names.push_back(std::move(name));
    REQUIRE(runtime.run(Job(scale(x, 1.0f), WorkloadType{names.back()}), {.tag = names.back()}));
    if (type % 3 == 0) REQUIRE(runtime.run(Job(scale(x, 1.0f), WorkloadType{names.back()}), {.on = "null"}));
  }
  const Metrics metrics = runtime.metrics();
  const std::string text = prometheus_text(metrics);
  CHECK(complaints_about(text) == "");
  const auto series = series_of(text);
  CHECK(series.size() <= 2000);
  double settled = 0, timed = 0;
  for (const auto& [name, value] : series) {
    if (name.starts_with("wye_jobs_settled_total")) settled += value;
    if (name.starts_with("wye_job_seconds_count") && name.find("part=\"run\"") != name.npos) timed += value;
  }
  CHECK(settled == static_cast<double>(metrics.jobs.completed));
  CHECK(timed == static_cast<double>(metrics.jobs.completed));
}
