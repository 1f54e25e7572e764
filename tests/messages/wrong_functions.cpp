// Functions of the host that are no source of their kernel: MISTAKE chooses one, and 0 is none.
#include <wye/wye.hpp>

#include <cstdint>
#include <span>

using namespace wye;

struct Settings {
  float gain;
};

void function_for_reading(Range, std::span<float>) {}

int main() {
  using Scale = Kernel<Read<float>, ReadWrite<float>, Settings>;
  const auto made = Scale::make(
      {.name = "scale",
       .sources = {
#if MISTAKE == 0
           host([](Range, std::span<const float>, std::span<float>, Settings) {}),
           host([](Range, auto, auto, auto, StopToken) {}),
           native("cuda", [](const NativeLane&, DeviceSpan<const float>, DeviceSpan<float>, Settings) {}),
#elif MISTAKE == 1  // what is read cannot be written
           host([](Range, std::span<float>, std::span<float>, Settings) {}),
#elif MISTAKE == 2  // a vector for a span
           host([](Range, std::span<const float>, std::vector<float>&, Settings) {}),
#elif MISTAKE == 3  // another struct
           host([](Range, std::span<const float>, std::span<float>, const char*) {}),
#elif MISTAKE == 4  // no range
           host([](std::span<const float>, std::span<float>, Settings, int) {}),
#elif MISTAKE == 5  // too few
           host([](Range, std::span<const float>) {}),
#elif MISTAKE == 6  // too many
           host([](Range, std::span<const float>, std::span<float>, Settings, StopToken, int) {}),
#elif MISTAKE == 7  // the last is no StopToken
           host([](Range, std::span<const float>, std::span<float>, Settings, char*) {}),
#elif MISTAKE == 8  // generic, so nothing is known of its parameters
           host([](auto range) { (void)range; }),
#elif MISTAKE == 9
           native("cuda", [](DeviceSpan<const float>, DeviceSpan<float>, Settings) {}),
#endif
       }});
#if MISTAKE == 10  // a function and not a lambda
  const auto reads = Kernel<Read<float>>::make({.name = "reads", .sources = {host(function_for_reading)}});
#endif
  return made ? 0 : 1;
}
