#include <algorithm>
#include <random>

#include "traces/buffers.hpp"

namespace wye_bench {
namespace {

struct Program {
  std::span<const std::int32_t> rest;
  std::vector<std::uint32_t> alive = {};  // numbers of its buffers, the youngest last
};

}  // namespace

BufferTrace interleaved_buffers() {
  std::vector<Program> programs;
  for (const auto& events : recorded_buffers()) programs.push_back({events});
  BufferTrace trace;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint32_t> unused;
  std::uint64_t bytes = 0;
  const auto create = [&](Program& program, std::uint64_t size) {
    if (unused.empty()) {
      unused.push_back(static_cast<std::uint32_t>(sizes.size()));
      sizes.push_back(0);
    }
    const std::uint32_t buffer = unused.back();
    unused.pop_back();
    sizes[buffer] = size;
    bytes += size;
    program.alive.push_back(buffer);
    trace.events.push_back({buffer, size});
    trace.most_alive = std::max(trace.most_alive, sizes.size() - unused.size());
    trace.most_bytes = std::max(trace.most_bytes, bytes);
  };
  const auto destroy = [&](Program& program, std::size_t nth_youngest) {
    const auto at = program.alive.end() - static_cast<std::ptrdiff_t>(nth_youngest);
    bytes -= sizes[*at];
    trace.events.push_back({*at, 0});
    unused.push_back(*at);
    program.alive.erase(at);
  };
  std::mt19937 random(1);
  while (!programs.empty()) {
    // A program with more events gets more turns, so that all end at about the same time.
    std::size_t left = 0;
    for (const Program& program : programs) left += program.rest.size() + 1;
    std::size_t turn = random() % left, p = 0;
    for (; turn > programs[p].rest.size(); ++p) turn -= programs[p].rest.size() + 1;
    Program& program = programs[p];
    if (program.rest.empty()) {
      while (!program.alive.empty()) destroy(program, 1);
      programs.erase(programs.begin() + static_cast<std::ptrdiff_t>(p));
      continue;
    }
    const std::int32_t event = program.rest.front();
    program.rest = program.rest.subspan(1);
    if (event > 0)
      create(program, static_cast<std::uint64_t>(event));
    else
      destroy(program, static_cast<std::size_t>(-event));
  }
  return trace;
}

}  // namespace wye_bench
