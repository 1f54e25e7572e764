// The simulation of placement, and the library's policy in it.
#include "sim/simulation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <string>

#include "support/catch.hpp"
#include "support/random_cases.hpp"

// Its devices, kernels and jobs hide those of the library.
namespace wye::test::sim {

using namespace std::chrono_literals;

namespace {

std::vector<Mix> mixes_of_files(std::uint64_t seed) {
  std::vector<Mix> mixes;
  for (const auto& file : std::filesystem::directory_iterator(WYE_SOURCE_FOLDER "/tests/sim/mixes")) {
    auto mix = read_mix(file.path(), seed);
    INFO(file.path().filename().string());
    REQUIRE(mix);
    mixes.push_back(*std::move(mix));
  }
  std::sort(mixes.begin(), mixes.end(), [](const Mix& a, const Mix& b) { return a.name < b.name; });
  return mixes;
}

/// Returns a mix of equal jobs of one kernel that are ready at once.
Mix equal_jobs(std::vector<Device> devices, std::vector<double> per_job, std::size_t count) {
  Mix mix{.name = "equal jobs", .devices = std::move(devices), .kernels = {}, .jobs = {}};
  const std::vector<double> none(mix.devices.size(), 0.0);
  mix.kernels.push_back({.name = "k", .launch = std::move(per_job), .per_byte = none});
  mix.jobs.assign(count, {.bytes = 4096});
  return mix;
}

double makespan_of(const Mix& mix, std::unique_ptr<Policy> policy, std::uint64_t seed = 1) {
  const Report report = simulate(mix, *policy, seed);
  INFO(mix.name);
  REQUIRE(report.completed == mix.jobs.size());
  return report.makespan;
}

/// Returns the least makespan that is possible: the jobs with their least times, on all lanes.
double least_makespan(const Mix& mix, std::uint64_t seed) {
  double work = 0, longest = 0;
  std::uint32_t lanes = 0;
  for (const Device& device : mix.devices) lanes += device.lanes;
  for (std::size_t j = 0; j < mix.jobs.size(); ++j) {
    double least = INFINITY;
    for (std::size_t d = 0; d < mix.devices.size(); ++d)
      if (mix.can_run(mix.jobs[j], d)) least = std::min(least, mix.noisy_run_time(j, d, {}, seed));
    work += least;
    longest = std::max(longest, least);
  }
  return std::max(longest, work / lanes);
}

}  // namespace

TEST_CASE("a simulation runs each job once, and again the same for the same seed", "[sim]") {
  for (const Mix& mix : {random_mix(1), random_mix(2)}) {
    for (const auto& make : {+[](const Mix& of) { return library_policy(of); },
                             +[](const Mix& of) { return library_policy(of, PlacementMode::table); },
                             round_robin, shortest_queue}) {
      const auto policy = make(mix);
      const Report report = simulate(mix, *policy, 3);
      CHECK(report.completed == mix.jobs.size());
      CHECK(std::accumulate(report.jobs_on.begin(), report.jobs_on.end(), std::size_t{0}) == mix.jobs.size());
      std::set<std::size_t> started;
      for (const Run& run : report.starts) started.insert(run.job);
      CHECK(started.size() == mix.jobs.size());
      CHECK(report.starts.size() == mix.jobs.size());
      const auto again = make(mix);
      const Report second = simulate(mix, *again, 3);
      CHECK(second.makespan == report.makespan);
      const auto are_equal = [](const Run& a, const Run& b) {
        return a.job == b.job && a.device == b.device;
      };
      CHECK(std::equal(report.starts.begin(), report.starts.end(), second.starts.begin(), second.starts.end(),
                       are_equal));
    }
    CHECK(makespan_of(mix, library_policy(mix), 3) !=
          makespan_of(mix, library_policy(mix), 4));  // there is noise
  }
}

TEST_CASE("time passes as the mix says", "[sim]") {
  // 10 jobs of 1 ms on two lanes, then at 3 ms twice as slow: 2 + 2 + 2 jobs, and 4 jobs of 2 ms.
  Mix mix = equal_jobs({{.name = "a", .lanes = 2}}, {1e-3}, 10);
  mix.changes = {{.at = 3ms, .slower = 2}};
  CHECK(makespan_of(mix, library_policy(mix)) == Approx(7e-3));
  CHECK(search_offline(mix, 1) == Approx(7e-3));
  // Copies: 4 KiB at 4,096,000 bytes a second are 1 ms each; an array is copied once.
  mix = equal_jobs({{.name = "a", .bandwidth = 4.096e6}}, {1e-3}, 10);
  CHECK(makespan_of(mix, library_policy(mix)) == Approx(20e-3));
  for (Job& job : mix.jobs) job.data = 0;
  CHECK(makespan_of(mix, library_policy(mix)) == Approx(11e-3));
  CHECK(search_offline(mix, 1) == Approx(11e-3));
  mix.jobs.back().ready = 30ms;
  CHECK(makespan_of(mix, library_policy(mix)) == Approx(31e-3));
}

TEST_CASE("the offline search lies between the least possible makespan and those of simple policies",
          "[sim]") {
  std::vector<Mix> mixes = mixes_of_files(1);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) mixes.push_back(random_mix(seed));
  for (Mix& mix : mixes)  // the order of jobs that are ready at once is random
    if (mix.jobs.size() > 1000) mix.jobs.resize(1000);
  for (const Mix& mix : mixes) {
    INFO(mix.name);
    const double found = search_offline(mix, 1);
    CHECK(found >= least_makespan(mix, 1));
    CHECK(found <= 1.01 * makespan_of(mix, round_robin(mix)));
    CHECK(found <= 1.06 * makespan_of(mix, shortest_queue(mix)));
    CHECK(found <= 1.06 * makespan_of(mix, library_policy(mix)));
  }
  // Two devices, of which each is best for one of two kernels: the search finds the best schedule.
  Mix mix = equal_jobs({{.name = "a"}, {.name = "b"}}, {1e-3, 10e-3}, 100);
  mix.kernels.push_back({.name = "l", .launch = {10e-3, 1e-3}, .per_byte = {0, 0}});
  for (std::size_t j = 0; j < 50; ++j) mix.jobs[2 * j].kernel = 1;
  CHECK(search_offline(mix, 1) == Approx(50e-3));
}

TEST_CASE("equal devices share the jobs of a mix", "[sim]") {
  for (const std::size_t devices : {2u, 4u}) {
    const Mix mix =
        equal_jobs(std::vector<Device>(devices, {.name = "a"}), std::vector<double>(devices, 1e-3), 400);
    CHECK(makespan_of(mix, library_policy(mix)) == Approx(0.4 / static_cast<double>(devices)));
  }
}

TEST_CASE("a first device that is ten times slower takes few jobs", "[sim]") {
  const Mix mix = equal_jobs({{.name = "slow"}, {.name = "fast"}}, {10e-3, 1e-3}, 400);
  const double ideal = 400 / (1 / 10e-3 + 1 / 1e-3);
  CHECK(makespan_of(mix, library_policy(mix)) <= 1.1 * ideal);
  CHECK(makespan_of(mix, shortest_queue(mix)) >= 2 * ideal);  // what a policy without times does
}

TEST_CASE("on mixes of GPUs the library comes near the offline search, and before simple policies",
          "[sim][no_sanitizer]") {
  const auto is_cpu = [](const Device& device) { return device.backend == "cpu"; };
  for (const unsigned seed : test::RandomCases(1)) {
    std::vector<Mix> mixes = mixes_of_files(seed);
    std::erase_if(mixes, [&](const Mix& mix) {
      return mix.devices.size() > 8 || std::any_of(mix.devices.begin(), mix.devices.end(), is_cpu);
    });
    CHECK(mixes.size() == 6);
    for (unsigned random = 0; random < 6; ++random) mixes.push_back(random_mix(6 * seed + random));
    double logarithms = 0, with_stored_times = 0;
    for (const Mix& mix : mixes) {
      INFO(mix.name << ", runs of seed " << seed);
      const double found = search_offline(mix, seed), makespan = makespan_of(mix, library_policy(mix), seed);
      CHECK(makespan <= 1.4 * found);
      CHECK(makespan <= makespan_of(mix, round_robin(mix), seed));
      CHECK(makespan <= makespan_of(mix, shortest_queue(mix), seed));
      logarithms += std::log(makespan / found);
      with_stored_times +=
          std::log(makespan_of(mix, library_policy(mix, learn(mix, seed + 1)), seed) / found);
    }
    INFO("seed " << seed);
    CHECK(std::exp(with_stored_times / static_cast<double>(mixes.size())) <= 1.08);
    CHECK(std::exp(logarithms / static_cast<double>(mixes.size())) <= 1.15);
  }
}

namespace {

/// Returns jobs that come one after the other, so that each has the choice between two idle devices.
Mix one_at_a_time(double first, double second, std::size_t count, Duration between) {
  Mix mix = equal_jobs({{.name = "first"}, {.name = "second"}}, {first, second}, count);
  for (std::size_t j = 0; j < count; ++j) mix.jobs[j].ready = static_cast<Duration::rep>(j) * between;
  return mix;
}

/// Counts the jobs `from` to `to`, in the order of their starts, that run on a device.
class Starts {
 public:
  Starts(const Mix& mix, std::uint64_t seed) {
    const auto policy = library_policy(mix);
    report_ = simulate(mix, *policy, seed);
    REQUIRE(report_.starts.size() == mix.jobs.size());
  }
  std::size_t on(std::size_t device, std::size_t from, std::size_t to) const {
    return static_cast<std::size_t>(std::count_if(report_.starts.begin() + static_cast<std::ptrdiff_t>(from),
                                                  report_.starts.begin() + static_cast<std::ptrdiff_t>(to),
                                                  [&](const Run& run) { return run.device == device; }));
  }

 private:
  Report report_;
};

}  // namespace

TEST_CASE("a lasting change moves jobs within 16, and back when it ends", "[sim]") {
  Mix mix = one_at_a_time(20e-6, 60e-6, 4000, 300us);
  mix.changes = {{.at = 1000 * 300us, .device = 0, .slower = 10}, {.at = 3000 * 300us, .device = 0}};
  const Starts starts(mix, 1);
  CHECK(starts.on(1, 0, 1000) <= 20);  // trials
  CHECK(starts.on(0, 1016, 3000) <= 40);
  CHECK(starts.on(1, 3500, 4000) <= 10);
}

TEST_CASE("one outlier moves no job", "[sim]") {
  Mix mix = one_at_a_time(20e-6, 60e-6, 2000, 300us);
  mix.changes = {{.at = 1000 * 300us, .device = 0, .slower = 100},
                 {.at = 1000 * 300us + 10us, .device = 0}};  // the job that starts then
  CHECK(Starts(mix, 1).on(1, 1001, 2000) <= 20);             // trials, as before
}

TEST_CASE("with much noise few jobs run on the slower device", "[sim]") {
  Mix mix = one_at_a_time(20e-6, 30e-6, 5000, 300us);
  mix.noise = 0.3;
  for (const unsigned seed : test::RandomCases(3)) {
    INFO("seed " << seed);
    CHECK(Starts(mix, seed).on(1, 0, 5000) <= 100);
  }
}

TEST_CASE("of jobs of 50 sizes few run on the slower device, from cold", "[sim]") {
  const std::size_t per_size = GENERATE(20u, 100u), slower = GENERATE(0u, 1u);
  for (const unsigned seed : test::RandomCases(3)) {
    Mix mix = one_at_a_time(5e-6, 5e-6, 50 * per_size, 3ms);
    mix.kernels[0].per_byte = {1e-10, 1e-10};
    mix.kernels[0].launch[slower] *= 4;
    mix.kernels[0].per_byte[slower] *= 4;
    mix.noise = 0.1;
    std::mt19937 random(seed);
    for (Job& job : mix.jobs) job.bytes = static_cast<std::uint64_t>(4096 * std::pow(1.2, random() % 50));
    INFO("seed " << seed << ", " << per_size << " jobs of each size, device " << slower << " is slower");
    CHECK(Starts(mix, seed).on(slower, 0, mix.jobs.size()) <= mix.jobs.size() / 20);
  }
}

TEST_CASE("the jobs of a lost device run on others, and on it again once it has returned", "[sim]") {
  for (const bool are_equal : {true, false}) {
    Mix mix = equal_jobs({{.name = "a"}, {.name = are_equal ? "a" : "b"}}, {1e-3, 1e-3}, 400);
    mix.changes = {{.at = 20500us, .device = 0, .is_there = false}, {.at = 100ms, .device = 0}};
    const auto policy = library_policy(mix);
    const Report report = simulate(mix, *policy, 1);
    INFO(are_equal);
    CHECK(report.completed == 400);
    CHECK(report.starts.size() == 401);  // one ran when its device was lost
    CHECK(report.jobs_on[0] >= 120);
    CHECK(report.jobs_on[1] >= 200);
    CHECK(report.makespan < 0.25);
  }
  // While no device is there, jobs wait.
  Mix mix = equal_jobs({{.name = "a"}}, {1e-3}, 10);
  mix.changes = {{.at = 4500us, .is_there = false}, {.at = 10ms}};
  CHECK(makespan_of(mix, library_policy(mix)) == Approx(16e-3));
  CHECK(makespan_of(mix, round_robin(mix)) == Approx(16e-3));
  CHECK(search_offline(mix, 1) == Approx(16e-3));
}

TEST_CASE("a policy that starts a job on a busy device is refused", "[sim]") {
  struct Wrong : Policy {
    void ready(std::size_t, Instant) override {}
    std::optional<Run> next(const Devices&) override { return Run{0, 0}; }
    void failed(const Run&, Instant) override {}
  } wrong;
  const Mix mix = equal_jobs({{.name = "a"}}, {1e-3}, 2);
  CHECK_THROWS_AS(simulate(mix, wrong, 1), std::logic_error);
}

TEST_CASE("the library has the same number of lanes on each GPU", "[sim]") {
  const Mix mix = equal_jobs({{.name = "a"}, {.name = "b", .lanes = 2}}, {1e-3, 1e-3}, 2);
  CHECK_THROWS_AS(library_policy(mix), std::invalid_argument);
  CHECK(makespan_of(mix, round_robin(mix)) == Approx(1e-3));
}

TEST_CASE("a mix that is not well-formed is refused with a sentence", "[sim]") {
  const std::string devices = R"("name": "m", "devices": [{"name": "a"}], )";
  const std::string kernels = R"("kernels": [{"name": "k", "ns_per_kib": {"a": 1}}], )";
  const std::string jobs = R"("jobs": [{"kernel": "k", "kib": [1, 2]}])";
  const auto sentence = [](const std::string& text) {
    const auto mix = parse_mix("{" + text + "}", "m.json", 1);
    REQUIRE_FALSE(mix);
    CHECK(mix.error() == Errc::invalid_argument);
    return std::string(mix.error().sentence());
  };
  REQUIRE(parse_mix("{" + devices + kernels + jobs + "}", "m.json", 1));
  CHECK(sentence("") == "'m.json' is no mix: the file lacks 'name'.");
  CHECK(sentence("]") == "'m.json' is no mix: it is not JSON.");
  CHECK(sentence(devices + kernels + jobs + R"(, "priority": 1)") ==
        "'m.json' is no mix: the file has the unknown member 'priority'.");
  CHECK(sentence(R"("name": "m", "devices": [{"name": "a", "lanes": 0}], )" + kernels + jobs) ==
        "'m.json' is no mix: 'lanes' of device 0 is 0; it may be 1 to 64.");
  CHECK(sentence(R"("name": "m", "devices": [{"name": "a", "lanes": 1.5}], )" + kernels + jobs) ==
        "'m.json' is no mix: 'lanes' of device 0 is not a whole number.");
  CHECK(sentence(devices + R"("kernels": [{"name": "k", "ns_per_kib": {"a": -1}}], )" + jobs) ==
        "'m.json' is no mix: 'a' of 'ns_per_kib' of kernel 0 is -1; it may be 0 to 1000000000000000.");
  CHECK(sentence(devices + R"("kernels": [{"name": "k", "ns_per_kib": {"b": 1}}], )" + jobs) ==
        "'m.json' is no mix: 'ns_per_kib' of kernel 0 names 'b', which is not there.");
  CHECK(sentence(devices + kernels + R"("jobs": [{"kernel": "k", "kib": [2, 1]}])") ==
        "'m.json' is no mix: 'kib' of jobs 0 is 1; it may be 2 to 1000000000.");
  CHECK(sentence(devices + kernels + R"("jobs": [{"kernel": "k", "kib": [1, 2], "from_ms": -1}])") ==
        "'m.json' is no mix: 'from_ms' of jobs 0 is -1; it may be 0 to 1000000000.");
  CHECK(sentence(devices + kernels + R"("jobs": [{"kernel": "k", "kib": [1, 2], "priority": "first"}])") ==
        "'m.json' is no mix: 'priority' of jobs 0 is 'first'; it may be 'low', 'normal' or 'high'.");
  CHECK(sentence(devices + R"("kernels": [{"name": "k", "ns_per_kib": {}}], )" + jobs) ==
        "'m.json' is no mix: no device can run kernel 'k'.");
  CHECK(sentence(devices + kernels + jobs + R"(, "changes": [{"at_ms": 1, "device": 1}])") ==
        "'m.json' is no mix: 'device' of change 0 is 1; it may be 0 to 0.");
  CHECK(read_mix("none.json", 1).error() == Errc::io);
}

TEST_CASE("many jobs on 64 devices are simulated", "[sim]") {
  auto mix = read_mix(WYE_SOURCE_FOLDER "/tests/sim/mixes/sixty_four_unequal.json", 1);
  REQUIRE(mix);
  const std::vector<Job> jobs = mix->jobs;
  for (int times = 1; times < 3; ++times) mix->jobs.insert(mix->jobs.end(), jobs.begin(), jobs.end());
  CHECK(makespan_of(*mix, library_policy(*mix)) >= least_makespan(*mix, 1));
}

TEST_CASE("makespans of policies over those of the offline search", "[.][figures]") {
  const std::uint64_t seed = GENERATE(1u, 2u, 3u);
  std::vector<Mix> mixes = mixes_of_files(seed);
  for (std::uint64_t random = 10 * seed; random < 10 * seed + 10; ++random)
    mixes.push_back(random_mix(random));
  constexpr std::size_t policies = 5;
  const auto print = [](const std::string& name, const std::array<double, policies>& ratios) {
    std::printf("%-52s %8.2f %8.2f %8.2f %12.2f %15.2f\n", name.c_str(), ratios[0], ratios[1], ratios[2],
                ratios[3], ratios[4]);
  };
  std::printf("%-52s %8s %8s %8s %12s %15s\n", "mix", "learned", "stored", "table", "round robin",
              "shortest queue");
  std::array<double, policies> logarithms{}, worst{};
  for (const Mix& mix : mixes) {
    const double found = search_offline(mix, seed);
    std::array<double, policies> ratios{makespan_of(mix, library_policy(mix), seed),
                                        makespan_of(mix, library_policy(mix, learn(mix, seed + 100)), seed),
                                        makespan_of(mix, library_policy(mix, PlacementMode::table), seed),
                                        makespan_of(mix, round_robin(mix), seed),
                                        makespan_of(mix, shortest_queue(mix), seed)};
    for (std::size_t p = 0; p < policies; ++p) {
      ratios[p] /= found;
      CHECK(ratios[p] > 0.9);
      logarithms[p] += std::log(ratios[p]) / static_cast<double>(mixes.size());
      worst[p] = std::max(worst[p], ratios[p]);
    }
    print(mix.name, ratios);
  }
  for (double& mean : logarithms) mean = std::exp(mean);
  print("geometric mean", logarithms);
  print("worst", worst);
}

}  // namespace wye::test::sim
