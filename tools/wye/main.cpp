/// wye: shows how wye sees this machine, and what is wrong with it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "doctor.hpp"
#include "report.hpp"

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

int run(int count, char** arguments) {
  CLI::App program("Shows how wye sees this machine.", "wye");
  program.set_version_flag("--version", "wye " + to_string(wye::library_version()));
  program.require_subcommand(1);
  program.footer("Status: 0 fine, 1 findings, 2 misused.");
  bool as_json = false;
  CLI::App* const shows =
      program.add_subcommand("info", "Shows devices with their features and checks, the cache, and options");
  CLI::App* const examines =
      program.add_subcommand("doctor", "Shows what is wrong with this machine, and the remedy");
  for (CLI::App* const command : {shows, examines})
    command->add_flag("--json", as_json, "prints one JSON object");
  try {
    program.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    const int status = program.exit(error);
    return status == 0 ? fine : misused;
  }
  return shows->parsed() ? info(as_json) : doctor(as_json);
}

}  // namespace
}  // namespace wye_tool

int main(int count, char** arguments) {
  try {
    return wye_tool::run(count, arguments);
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "wye: %s\n", thrown.what());
    return 1;
  }
}
