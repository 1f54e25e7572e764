/// wye: shows how wye sees this machine, and what is wrong with it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "doctor.hpp"
#include "report.hpp"
#include "run.hpp"

namespace wye_tool {
namespace {

constexpr int fine = 0, found = 1, misused = 2;

int print(const std::string& text, int status) {
  const bool is_written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return is_written ? status : found;
}

int info(bool as_json) {
  const auto read = read_info();
  if (!read) {
    std::fprintf(stderr, "wye: %s\n", read.error().describe().c_str());
    return found;
  }
  return print(as_json ? json_of(*read) : text_of(*read), fine);
}

int doctor(bool as_json) {
  const std::vector<Finding> findings = examine(this_machine());
  return print(as_json ? json_of(findings) : text_of(findings), findings.empty() ? fine : found);
}

int run_workload(const RunOptions& options, bool as_json) {
  const auto report = run(options);
  if (!report) {
    std::fprintf(stderr, "wye: %s\n", report.error().describe().c_str());
    return report.error() == wye::Errc::invalid_argument ? misused : found;
  }
  const bool is_right =
      std::ranges::all_of(report->devices, [](const DeviceRun& one) { return one.is_right(); });
  return print(as_json ? json_of(*report) : text_of(*report), is_right ? fine : found);
}

std::string names_of_workloads() {
  std::string names;
  for (const Workload& one : workloads()) names += (names.empty() ? "" : ", ") + std::string(one.name);
  return names;
}

int run_program(int count, char** arguments) {
  CLI::App program("Shows how wye sees this machine.", "wye");
  program.set_version_flag("--version", "wye " + to_string(wye::library_version()));
  program.require_subcommand(1);
  program.footer("Status: 0 fine, 1 findings, 2 misused.");
  bool as_json = false;
  RunOptions options;
  CLI::App* const shows =
      program.add_subcommand("info", "Shows devices with their features and checks, the cache, and options");
  CLI::App* const examines =
      program.add_subcommand("doctor", "Shows what is wrong with this machine, and the remedy");
  CLI::App* const runs = program.add_subcommand(
      "run", "Runs a workload on each device, and checks its results: " + names_of_workloads());
  runs->add_option("workload", options.workload, "the workload")->required();
  runs->add_option("--size", options.size, "elements, or rows and columns");
  runs->add_option("--device", options.device, "the id of a device, such as vulkan:0; otherwise each");
  runs->add_option("--repeat", options.repeat, "the number of runs on each device, 1 to 1000")
      ->capture_default_str();
  for (CLI::App* const command : {shows, examines, runs})
    command->add_flag("--json", as_json, "prints one JSON object");
  try {
    program.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    const int status = program.exit(error);
    return status == 0 ? fine : misused;
  }
  if (runs->parsed()) return run_workload(options, as_json);
  return shows->parsed() ? info(as_json) : doctor(as_json);
}

}  // namespace
}  // namespace wye_tool

int main(int count, char** arguments) {
  try {
    return wye_tool::run_program(count, arguments);
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "wye: %s\n", thrown.what());
    return 1;
  }
}
