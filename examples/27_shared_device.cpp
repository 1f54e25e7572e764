// An export, a preview and a plug-in share one processor. The preview goes first, and each message
// names the holder of a lane.
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <wye/wye.hpp>

using namespace std::chrono_literals;

int main() {
  auto runtime = wye::Runtime::open({.pool = {.lanes_per_device = 1}});
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;
  // The device that the scheduler prefers for large pictures.
  std::optional<wye::Lease> lane;
  if (auto leased = runtime->lease(wye::workload_types::image, wye::Bytes{64 << 20}, {.tag = "export"}))
    lane = *std::move(leased);
  else
    return std::puts(leased.error().describe().c_str()), 1;
  const wye::Device device = lane->device();

  for (const wye::ContextInfo& context : runtime->pool().contexts())
    std::printf("%s: %s, leased at %s\n", context.id.c_str(), context.tag.c_str(), context.taken_at.c_str());
  const auto late = runtime->pool().lease({.on = device.id(), .deadline = 20ms, .tag = "preview"});
  if (!late) std::puts(late.error().sentence().c_str());

  // A plug-in has a runtime of its own on the same processor, which shows the leases of both.
  auto plugin = wye::Runtime::open({.pool = {.slots = 4}});
  if (!plugin) return std::puts(plugin.error().describe().c_str()), 1;
  const auto model = plugin->pool().lease({.on = device.id(), .tag = "model"});
  for (const wye::SiliconInfo& silicon : plugin->pool().silicon()) {
    if (silicon.leases.empty()) continue;
    std::printf("%s: %u of %u slots in use\n", silicon.name.c_str(), silicon.used, silicon.slots);
    for (const wye::SlotInfo& lease : silicon.leases)
      std::printf("  %s by '%s'%s\n", lease.context.c_str(), lease.tag.c_str(),
                  lease.is_own ? "" : ", of another runtime");
  }

  const auto never = runtime->pool().lease({.on = device.id(), .deadline = wye::Deadline::never()});
  if (!never) std::puts(never.error().sentence().c_str());

  // Two more parts wait. The lane goes to the preview first, although it asked last.
  bool previewed = false, batch_was_last = false;
  std::thread batch([&] {
    const auto next =
        runtime->pool().lease({.on = device.id(), .priority = wye::Priority::low, .tag = "batch"});
    batch_was_last = next && previewed;
  });
  std::this_thread::sleep_for(50ms);
  std::thread preview([&] {
    const auto next =
        runtime->pool().lease({.on = device.id(), .priority = wye::Priority::high, .tag = "preview"});
    previewed = next.has_value();
  });
  std::this_thread::sleep_for(50ms);
  lane.reset();
  preview.join();
  batch.join();
  std::puts(batch_was_last ? "preview, then batch" : "in another order");
  return late || !model || never || !batch_was_last;
}
