// wye_bench: runs every benchmark with a name of the form <work>/<peer>, one work after the other
// and all of one work in turns, and then compares wye with its peers. A work's rows are written as
// soon as it ends: a killed run keeps them. Options are Google Benchmark's, --ratios=FILE for the
// comparison as JSON, --claims=FILE for a Markdown table of the claims (claims.cpp), and --small
// for sizes of CUDA's that a stand-in for a card can take: its ratios have no bars. With --claims
// and without a filter, only the rows run that the claims need.
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "claims.hpp"
#include "lane.hpp"
#include "peers/ping_pong.hpp"
#include "processes.hpp"
#include "ratios.hpp"

namespace {

/// Sets one option of Google Benchmark, which keeps a pointer to the program's name.
void set(std::string option) {
  static std::string program = "wye_bench";
  char* both[] = {program.data(), option.data()};
  int count = 2;
  benchmark::Initialize(&count, both);
}

/// Returns the names of the selected benchmarks.
std::vector<std::string> selected() {
  std::ostringstream list;
  benchmark::ConsoleReporter lister;
  lister.SetOutputStream(&list);
  set("--benchmark_list_tests=true");
  benchmark::RunSpecifiedBenchmarks(&lister);
  set("--benchmark_list_tests=false");
  std::vector<std::string> names;
  std::istringstream lines(list.str());
  for (std::string line; std::getline(lines, line);) names.push_back(line);
  return names;
}

/// Returns each work with the regular expression of its selected benchmarks, in the order of the
/// first ones.
std::vector<std::pair<std::string, std::string>> works() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string& name : selected()) {
    const std::string work = name.substr(0, name.find('/'));
    auto its = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == work; });
    if (its == all.end()) its = all.insert(all.end(), {work, ""});
    std::string& pattern = its->second;
    pattern += (pattern.empty() ? "^(" : "|") + name;
  }
  for (auto& [work, pattern] : all) pattern += ")$";
  return all;
}

/// Returns the usable devices of this machine.
std::vector<wye_bench::ClaimDevice> devices() {
  std::vector<wye_bench::ClaimDevice> list;
  const auto pool = wye::ContextPool::open();
  if (!pool) return list;
  for (const wye::AdapterInfo& adapter : pool->adapters())
    if (adapter.usable && adapter.backend != "null")
      list.push_back({adapter.backend, adapter.name, adapter.type == wye::AdapterType::cpu});
  return list;
}

bool write_claims(const wye_bench::Results& results, const std::string& file) {
  std::ofstream out(file);
  out << wye_bench::claims_table(wye_bench::judge(wye_bench::claims(), results), devices());
  return static_cast<bool>(out.flush());
}

}  // namespace

int main(int argc, char** argv) {
  std::string file, claims, folder;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.add_option("--ratios", file);
  app.add_option("--claims", claims);
  app.add_option("--ask-for-kernels", folder);
  app.add_flag("--small", wye_bench::small);
  CLI11_PARSE(app, argc, argv);
  if (!folder.empty()) return wye_bench::ask_for_kernels(folder.c_str());
  // Interleaving makes a ratio meaningful on a machine whose speed drifts. A later option wins.
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  std::string repetitions = "--benchmark_repetitions=9";
  std::string filter =
      "--benchmark_filter=" + (claims.empty() ? std::string(".") : wye_bench::claims_filter());
  std::vector<char*> all{argv[0], interleave.data(), repetitions.data(), filter.data()};
  std::vector<std::string> arguments = app.remaining();
  for (std::string& argument : arguments) all.push_back(argument.data());
  int count = static_cast<int>(all.size());
  benchmark::Initialize(&count, all.data());
  if (benchmark::ReportUnrecognizedArguments(count, all.data())) return 2;

  const auto given = [&](const char* option) {
    return std::any_of(arguments.begin(), arguments.end(),
                       [&](const std::string& argument) { return argument.rfind(option, 0) == 0; });
  };
  if (given("--benchmark_list_tests")) return benchmark::RunSpecifiedBenchmarks(), 0;
  if (given("--benchmark_out=")) {
    std::fputs("wye_bench: --benchmark_out would keep the last work only; --ratios=FILE keeps all.\n",
               stderr);
    return 2;
  }

  const double before = wye_bench::handover_p50();
  wye_bench::Collector collector;
  for (const auto& [work, pattern] : works()) benchmark::RunSpecifiedBenchmarks(&collector, pattern);
  benchmark::Shutdown();
  const double handover = (before + wye_bench::handover_p50()) / 2;

  auto ratios = collector.ratios();
  wye_bench::apply_handover(ratios, handover);
  if (wye_bench::small)
    for (auto& ratio : ratios) ratio.bar = 0;
  wye_bench::print(ratios, handover);
  if (ratios.empty()) std::puts("Nothing that ran has a peer or a bar.");
  if (!file.empty() && !wye_bench::write_json(ratios, handover, file)) {
    std::fprintf(stderr, "wye_bench: '%s' cannot be written.\n", file.c_str());
    return 1;
  }
  if (!claims.empty() && !write_claims(collector.results(), claims)) {
    std::fprintf(stderr, "wye_bench: '%s' cannot be written.\n", claims.c_str());
    return 1;
  }
  return 0;
}
