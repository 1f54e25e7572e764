// One memory for CUDA and Vulkan on the same card: each reads the results of the other.
#include <cstdio>
#include <vector>
#include <wye/interop/shared.hpp>
#include <wye/wye.hpp>

namespace {

int fail(const wye::Error& error) { return std::puts(error.describe().c_str()), 1; }

}  // namespace

int main() {
  auto options = wye::RuntimeOptions::from_environment();  // WYE_CUDA_DRIVER names another driver
  if (!options) return fail(options.error());
  options->pool.backends = {"cuda", "vulkan"};
  auto runtime = wye::Runtime::open(*options);
  if (!runtime) return std::puts("This machine has neither CUDA nor Vulkan."), 0;
  const auto devices = runtime->devices();
  if (devices.size() < 2) return std::puts("This machine has one device only."), 0;

  // On two different devices each hand-over copies; `why_copied` has the reason.
  auto memory = wye::interop::share<std::uint32_t>(devices.front(), devices.back(), 1 << 20);
  if (!memory) return fail(memory.error());
  std::printf("%s and %s: %s\n", devices.front().id().c_str(), devices.back().id().c_str(),
              memory->why_copied().empty() ? "one memory" : memory->why_copied().c_str());
  if (!memory->why_waited().empty())
    std::printf("the host waits at each turn: %s\n", memory->why_waited().c_str());

  auto first = runtime->pool().lease({.on = devices.front().id()});
  auto second = runtime->pool().lease({.on = devices.back().id()});
  if (!first) return fail(first.error());
  if (!second) return fail(second.error());

  first->fill(memory->on(first->device()), 41);
  if (auto turn = memory->hand_over(*first, *second); !turn) return fail(turn.error());
  std::vector<std::uint32_t> seen(1 << 20);
  second->download(memory->on(second->device()), seen);
  if (auto done = second->wait(); !done) return fail(done.error());
  std::printf("%s finds %u\n", second->device().id().c_str(), seen.back());
  return seen.back() == 41 ? 0 : 1;
}
