// wye_bench: runs every benchmark with a name of the form <work>/<peer>, all of one work in turns, and then compares wye
// with its peers. Options are Google Benchmark's, --ratios=FILE for the comparison as JSON, and --small for
// sizes of CUDA's that a stand-in for a card can take: what is measured then is held against no bar.
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "lane.hpp"
#include "peers/ping_pong.hpp"
#include "processes.hpp"
#include "ratios.hpp"

int main(int argc, char** argv) {
  std::string file, folder;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.add_option("--ratios", file);
  app.add_option("--ask-for-kernels", folder);
  app.add_flag("--small", wye_bench::small);
  CLI11_PARSE(app, argc, argv);
  if (!folder.empty()) return wye_bench::ask_for_kernels(folder.c_str());
  // Interleaving makes a ratio meaningful on a machine whose speed drifts. A later option wins.
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  std::string repetitions = "--benchmark_repetitions=9";
  std::vector<char*> all{argv[0], interleave.data(), repetitions.data()};
  std::vector<std::string> arguments = app.remaining();
  for (std::string& argument : arguments) all.push_back(argument.data());
  int count = static_cast<int>(all.size());
  benchmark::Initialize(&count, all.data());
  if (benchmark::ReportUnrecognizedArguments(count, all.data())) return 2;

  const double before = wye_bench::handover_p50();
  wye_bench::Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
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
  return 0;
}
