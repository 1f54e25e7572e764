#pragma once
/// Which kernels are asked for in which order: recorded from our workloads, and made with published
/// parameters.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace wye_bench {

/// Kernels, by number, in the order in which they are asked for.
using Trace = std::vector<std::uint32_t>;

/// A trace, and how many kernels a cache is to have room for.
struct Scene {
  std::string_view name;
  Trace (*make)();  ///< the same each time: what is random has a seed
  std::uint32_t room;
};

/// All there are.
///
/// zipf_*: 3,000 kernels, each asked for in proportion to 1 / rank^0.9; room for 20 and 85 % of them.
/// sweeps_50: the same, but a fifth of the requests are sweeps of an autotuner: 150 kernels in a row, each asked for
///     once and never again.
/// moving_50: the same again, of 1,500 kernels that give way to others, one in 20 requests; room for half of them.
/// loop_20: a loop over 1.3 times as many kernels as there is room for; each tenth request is one of zipf_20.
/// web_clients: the requests of a web browser's users. 46,830 documents, each asked for in proportion to 1 / rank^0.986.
///     Source: Cunha, Bestavros, Crovella: Characteristics of WWW Client-based Traces, BU-CS-95-010 (1995), figure 8: a
///     line of that slope fits with R^2 = 1.00. Of its half a million requests, the first 60,000; independent of each
///     other, as Breslau et al. model such traces (Web Caching and Zipf-like Distributions, INFOCOM 1999). Room for
///     1,000, which is a cache's default.
/// workloads_*: what the tests of the workloads ask a GPU for (`recorded`); room for 20, 50 and 85 % of the kernels.
const std::vector<Scene>& scenes();

/// How many different kernels `trace` asks for.
std::size_t kernels_in(const Trace& trace);

namespace recorded {
/// One letter for each request: 'a' is the first of the kernels.
extern const std::span<const std::string_view> kernels;
extern const std::string_view requests;
}  // namespace recorded

}  // namespace wye_bench
