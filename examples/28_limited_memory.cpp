// Jobs share a budget of device memory: they wait for each other, and say so. A job that never fits
// is an error at once.
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>
#include <wye/wye.hpp>

using namespace wye::literals;

int main() {
  wye::RuntimeOptions options;
  options.pool.pool_memory = 48_MiB;  // of each processor, for this runtime
  options.pool.on_pressure = [](const wye::MemoryPressure& pressure) {
    if (pressure.level != wye::MemoryPressure::Level::none)
      std::printf("pressure on %.*s\n", static_cast<int>(pressure.silicon.size()), pressure.silicon.data());
  };
  auto runtime = wye::Runtime::open(std::move(options));
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  // y = x + 1, by way of scratch memory on the device.
  using Add = wye::Kernel<wye::Read<float>, wye::Write<float>>;
  const auto add =
      Add::make({.name = "add_one",
                 .sources = {wye::Glsl{.text = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = x[i] + 1.0; })"},
                             wye::host([](wye::Range range, std::span<const float> x, std::span<float> y) {
                               for (std::uint64_t i : range) y[i] = x[i] + 1.0f;
                             })}});
  if (!add) return std::puts(add.error().describe().c_str()), 1;
  const auto job = [&](std::vector<float>& x) {
    const wye::Scratch<float> scratch(x.size());
    return wye::Job::sequence("add_two", wye::workload_types::vector, (*add)(x, scratch),
                              {(*add)(scratch, x)});
  };

  // Eight jobs of 16 MiB on the CPU, 32 MiB on a GPU, where their operands need memory too.
  constexpr std::uint64_t values = 4 << 20;
  std::vector<std::vector<float>> inputs(8, std::vector<float>(values, 1.0f));
  std::vector<wye::Ticket> tickets;
  for (auto& x : inputs) tickets.push_back(runtime->submit(job(x)));
  for (wye::Ticket& ticket : tickets)
    if (const auto done = ticket.wait(); !done) return std::puts(done.error().describe().c_str()), 1;
  for (const auto& x : inputs)
    if (x.front() != 3.0f || x.back() != 3.0f) return std::puts("a wrong sum"), 1;
  std::printf("%zu jobs completed; jobs waited for memory %llu times\n", inputs.size(),
              static_cast<unsigned long long>(runtime->metrics().jobs.memory_waits));

  std::vector<float> large(5 * values, 1.0f);
  const auto never = runtime->submit(job(large)).wait();
  if (never) return std::puts("the budget does not hold"), 1;
  std::puts(never.error().sentence().c_str());

  const wye::Bytes freed = runtime->pool().trim();  // before the application sleeps, for example
  std::printf("%s of idle memory freed\n", to_string(freed).c_str());
  return 0;
}
