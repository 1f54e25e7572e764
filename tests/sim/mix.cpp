#include "sim/mix.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <sstream>
#include <string_view>

#include "base/text.hpp"

namespace wye::test::sim {
namespace {

using Json = nlohmann::json;
using Random = std::mt19937_64;

constexpr double never = std::numeric_limits<double>::infinity();

/// What is wrong with a file.
struct Wrong {
  std::string sentence;
};

/// Reads the members of one object. Each has to be read once, and none may be left.
class Members {
 public:
  Members(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) throw Wrong{base::text("{} is not an object.", where_)};
  }
  bool has(std::string_view name) const { return object_.contains(std::string(name)); }
  const Json& at(std::string_view name) {
    known_.emplace_back(name);
    if (!has(name)) throw Wrong{base::text("{} lacks '{}'.", where_, name)};
    return object_.at(std::string(name));
  }
  std::string text(std::string_view name) {
    const Json& value = at(name);
    if (!value.is_string()) throw Wrong{base::text("'{}' of {} is not a text.", name, where_)};
    return value.get<std::string>();
  }
  std::string text(std::string_view name, std::string absent) {
    return has(name) ? text(name) : std::move(absent);
  }
  double number(std::string_view name, double least, double most) {
    return number(at(name), name, least, most);
  }
  double number(std::string_view name, double least, double most, double absent) {
    return has(name) ? number(name, least, most) : absent;
  }
  std::size_t count(std::string_view name, std::size_t least, std::size_t most, std::size_t absent) {
    const double value =
        number(name, static_cast<double>(least), static_cast<double>(most), static_cast<double>(absent));
    if (value != std::floor(value))
      throw Wrong{base::text("'{}' of {} is not a whole number.", name, where_)};
    return static_cast<std::size_t>(value);
  }
  const Json& list(std::string_view name) {
    const Json& value = at(name);
    if (!value.is_array()) throw Wrong{base::text("'{}' of {} is not a list.", name, where_)};
    return value;
  }
  double number(const Json& value, std::string_view name, double least, double most) const {
    if (!value.is_number()) throw Wrong{base::text("'{}' of {} is not a number.", name, where_)};
    const double number = value.get<double>();
    if (!(number >= least && number <= most))
      throw Wrong{base::text("'{}' of {} is {}; it may be {} to {}.", name, where_, number, least, most)};
    return number;
  }
  void end() const {
    for (const auto& [name, value] : object_.items())
      if (std::find(known_.begin(), known_.end(), name) == known_.end())
        throw Wrong{base::text("{} has the unknown member '{}'.", where_, name)};
  }
  const std::string& where() const { return where_; }

 private:
  const Json& object_;
  const std::string where_;
  std::vector<std::string> known_;
};

std::size_t index_of(std::span<const std::string> names, const std::string& name, const std::string& where) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw Wrong{base::text("{} names '{}', which is not there.", where, name)};
  return static_cast<std::size_t>(found - names.begin());
}

void read_devices(const Json& list, Mix& mix) {
  for (const Json& one : list) {
    Members members(one, base::text("device {}", mix.devices.size()));
    const Device device{.name = members.text("name"),
                        .backend = members.text("backend", "cuda"),
                        .lanes = static_cast<std::uint32_t>(members.count("lanes", 1, 64, 1)),
                        .bandwidth = 1e9 * members.number("gb_s", 0, 1e6, 0),
                        .processor = members.text("processor", ""),
                        .emulated = members.count("emulated", 0, 1, 0) == 1};
    const std::size_t count = members.count("count", 1, 1000, 1);
    members.end();
    mix.devices.insert(mix.devices.end(), count, device);
  }
}

/// A kernel names the devices that can run it.
void read_kernels(const Json& list, Mix& mix) {
  std::vector<std::string> names;
  for (const Device& device : mix.devices) names.push_back(device.name);
  for (const Json& one : list) {
    Members members(one, base::text("kernel {}", mix.kernels.size()));
    Kernel kernel{.name = members.text("name"), .launch = {}, .per_byte = {}};
    kernel.launch.assign(names.size(), 1e-6 * members.number("launch_us", 0, 1e9, 5));
    kernel.per_byte.assign(names.size(), never);
    const Json& per_kib = members.at("ns_per_kib");
    const Members costs(per_kib, "'ns_per_kib' of " + members.where());
    for (const auto& [name, cost] : per_kib.items()) {
      (void)index_of(names, name, costs.where());
      const double seconds = 1e-9 / 1024 * costs.number(cost, name, 0, 1e15);
      for (std::size_t d = 0; d < names.size(); ++d)
        if (names[d] == name) kernel.per_byte[d] = seconds;
    }
    members.end();
    mix.kernels.push_back(std::move(kernel));
  }
}

/// Returns a number between two ones, whose logarithm is uniform.
double between(double least, double most, Random& random) {
  if (least == most) return least;
  const double low = std::max(least, 1.0);
  return low * std::pow(most / low, std::uniform_real_distribution(0.0, 1.0)(random));
}

Priority priority_of(const std::string& name, const std::string& where) {
  if (name == "low") return Priority::low;
  if (name == "normal") return Priority::normal;
  if (name == "high") return Priority::high;
  throw Wrong{base::text("'priority' of {} is '{}'; it may be 'low', 'normal' or 'high'.", where, name)};
}

void read_jobs(const Json& list, Mix& mix, Random& random) {
  std::vector<std::string> kernels;
  for (const Kernel& kernel : mix.kernels) kernels.push_back(kernel.name);
  std::size_t arrays = 0, index = 0;
  for (const Json& one : list) {
    Members members(one, base::text("jobs {}", index++));
    Job job{.kernel = index_of(kernels, members.text("kernel"), members.where()),
            .priority = priority_of(members.text("priority", "normal"), members.where())};
    const std::size_t count = members.count("count", 1, 1'000'000, 1);
    const Json& kib = members.list("kib");
    if (kib.size() != 2)
      throw Wrong{base::text("'kib' of {} is not a least and a most size.", members.where())};
    const double least = members.number(kib[0], "kib", 0, 1e9),
                 most = members.number(kib[1], "kib", least, 1e9);
    const double every = 1e-6 * members.number("every_us", 0, 1e9, 0);
    const double from = 1e-3 * members.number("from_ms", 0, 1e9, 0);
    // Each array is read by several jobs and has one size.
    const std::size_t own_arrays = members.count("arrays", 0, 1'000'000, 0);
    members.end();
    std::vector<std::uint64_t> sizes(own_arrays);
    const auto size = [&] { return static_cast<std::uint64_t>(1024 * between(least, most, random)); };
    for (std::uint64_t& one_size : sizes) one_size = size();
    for (std::size_t i = 0; i < count; ++i) {
      job.ready = std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(from + every * static_cast<double>(i)));
      if (own_arrays > 0) {
        const std::size_t array = std::uniform_int_distribution<std::size_t>(0, own_arrays - 1)(random);
        job.data = arrays + array;
        job.bytes = sizes[array];
      } else {
        job.bytes = size();
      }
      mix.jobs.push_back(job);
    }
    arrays += own_arrays;
  }
  // Jobs that are ready at one time come in any order.
  std::shuffle(mix.jobs.begin(), mix.jobs.end(), random);
  std::stable_sort(mix.jobs.begin(), mix.jobs.end(),
                   [](const Job& a, const Job& b) { return a.ready < b.ready; });
  for (std::size_t j = 0; j < mix.jobs.size(); ++j) {
    const Job& job = mix.jobs[j];
    bool runs = false;
    for (std::size_t d = 0; d < mix.devices.size(); ++d) runs = runs || mix.can_run(job, d);
    if (!runs) throw Wrong{base::text("no device can run kernel '{}'.", mix.kernels[job.kernel].name)};
  }
}

void read_changes(const Json& list, Mix& mix) {
  for (const Json& one : list) {
    Members members(one, base::text("change {}", mix.changes.size()));
    const Change change{.at = std::chrono::duration_cast<Duration>(
                            std::chrono::duration<double, std::milli>(members.number("at_ms", 0, 1e9))),
                        .device = members.count("device", 0, mix.devices.size() - 1, 0),
                        .slower = members.number("slower", 1e-3, 1e6, 1),
                        .is_there = members.count("is_there", 0, 1, 1) == 1};
    members.end();
    mix.changes.push_back(change);
  }
  std::stable_sort(mix.changes.begin(), mix.changes.end(),
                   [](const Change& a, const Change& b) { return a.at < b.at; });
}

}  // namespace

double Mix::slowness(std::size_t device, Duration when) const noexcept {
  double slower = 1;
  for (const Change& change : changes)
    if (change.device == device && change.at <= when) slower = change.slower;
  return slower;
}

double Mix::run_time(const Job& job, std::size_t device, Duration when) const noexcept {
  const Kernel& kernel = kernels[job.kernel];
  return slowness(device, when) *
         (kernel.launch[device] + kernel.per_byte[device] * static_cast<double>(job.bytes));
}

double Mix::noisy_run_time(std::size_t job, std::size_t device, Duration when,
                           std::uint64_t seed) const noexcept {
  const double mean = run_time(jobs[job], device, when);
  if (noise == 0) return mean;
  std::seed_seq sequence{seed, std::uint64_t{job}, std::uint64_t{device}};
  std::minstd_rand random(sequence);
  // Of this distribution the logarithm is normal, so no time is negative.
  return mean * std::exp(std::normal_distribution(-noise * noise / 2, noise)(random));
}

bool Mix::can_run(const Job& job, std::size_t device) const noexcept {
  return kernels[job.kernel].per_byte[device] != never;
}

Result<Mix> parse_mix(const std::string& text, const std::string& source, std::uint64_t seed) {
  const auto refuse = [&](std::string_view why) {
    return Error(Errc::invalid_argument, base::text("'{}' is no mix: {}", source, why));
  };
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return refuse("it is not JSON.");
  try {
    Random random(seed);
    Members members(json, "the file");
    Mix mix{.name = members.text("name"), .devices = {}, .kernels = {}, .jobs = {}};
    mix.noise = members.number("noise", 0, 1, 0);
    read_devices(members.list("devices"), mix);
    read_kernels(members.list("kernels"), mix);
    read_jobs(members.list("jobs"), mix, random);
    if (members.has("changes")) read_changes(members.list("changes"), mix);
    members.end();
    return mix;
  } catch (const Wrong& wrong) {
    return refuse(wrong.sentence);
  }
}

Result<Mix> read_mix(const std::filesystem::path& file, std::uint64_t seed) {
  std::ifstream in(file);
  std::ostringstream text;
  if (!(text << in.rdbuf())) return Error(Errc::io, base::text("'{}' cannot be read.", file.string()));
  return parse_mix(text.str(), file.filename().string(), seed);
}

Mix random_mix(std::uint64_t seed) {
  Random random(seed);
  const auto whole = [&](std::size_t least, std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(least, most)(random);
  };
  Mix mix{.name = base::text("seed {}", seed), .devices = {}, .kernels = {}, .jobs = {}};
  mix.noise = std::uniform_real_distribution(0.0, 0.3)(random);
  const std::size_t names = whole(1, 3);
  for (std::size_t d = whole(2, 8); d > 0; --d) {
    const std::size_t name = whole(0, names);
    mix.devices.push_back({.name = base::text("gpu {}", name),
                           .backend = name % 2 == 0 ? "cuda" : "vulkan",
                           .bandwidth = whole(0, 1) == 0 ? 0 : 1e9 * between(2, 50, random)});
  }
  const std::size_t kinds = whole(1, 6);
  for (std::size_t k = 0; k < kinds; ++k) {
    Kernel kernel{.name = base::text("kernel {}", k), .launch = {}, .per_byte = {}};
    std::map<std::string, double> costs;  // equal devices cost the same
    for (const Device& device : mix.devices) {
      const double cost = 1e-9 * between(1, 16, random);
      kernel.launch.push_back(1e-5);
      kernel.per_byte.push_back(costs.try_emplace(device.backend + device.name, cost).first->second);
    }
    mix.kernels.push_back(std::move(kernel));
  }
  for (int j = 0; j < 2000; ++j)
    mix.jobs.push_back({.kernel = whole(0, kinds - 1),
                        .bytes = static_cast<std::uint64_t>(between(1 << 12, 1 << 20, random))});
  return mix;
}

}  // namespace wye::test::sim
