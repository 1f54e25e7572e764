#include "runtime/environment.hpp"

#include <chrono>
#include <map>
#include <string>

#include "base/text.hpp"
#include "support/catch.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using runtime::read_environment;

namespace {

runtime::Environment table(std::map<std::string, std::string> values) {
  return [values](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

}  // namespace

TEST_CASE("without environment variables the documented defaults hold", "[runtime]") {
  const auto all = read_environment(table({})).value();
  CHECK(all.pool.backends.empty());
  CHECK(all.pool.lanes_per_device == 2);
  CHECK(all.pool.lane_memory == 512_MiB);
  CHECK((all.pool.silicon_memory == 0_B && all.pool.pool_memory == 0_B));
  CHECK(all.pool.lease_timeout == 5s);
  CHECK(all.pool.cpu_threads == 0);
  CHECK_FALSE(all.pool.validate_driver);
  CHECK(all.pool.cuda_driver.empty());
  CHECK(all.pool.isolation == Isolation::shared);
  CHECK(all.pool.partition == Partition{});
  CHECK(all.pool.kept_memory == 512_MiB);
  CHECK(all.pool.pinned_memory == 64_MiB);
  CHECK(all.pool.poll_limit == std::chrono::microseconds(300));
  CHECK(all.pool.share == Share::process);
  CHECK(all.pool.share_folder.empty());
  CHECK(all.cache.kernels == 1000);
  CHECK(all.cache.memory == 256_MiB);
  CHECK(all.cache.directory.empty());
  CHECK(all.cache.disk == 1_GiB);
  CHECK(all.scheduler.concurrent_jobs == 4);
  CHECK(all.scheduler.job_time_limit == 30s);
  CHECK(all.scheduler.placement == PlacementMode::learned);
  CHECK(all.scheduler.measure_variants);
  CHECK(all.scheduler.fallback == Fallback::allow);
  CHECK_FALSE(all.cache.durable);
  CHECK_FALSE(all.cache.warm_compilers);
  CHECK_FALSE(all.hot_reload);
  CHECK_FALSE(all.cache.require_directory);
  CHECK_FALSE(all.close_timeout);
  CHECK_FALSE(all.log);
  CHECK(all.log_level == "warning");
}

TEST_CASE("every variable reaches its option", "[runtime]") {
  const auto all = read_environment(table({{"WYE_BACKENDS", "vulkan,cpu"},
                                           {"WYE_DEVICES", "vulkan:1,cpu:0"},
                                           {"WYE_LANES", "7"},
                                           {"WYE_LANE_MEMORY", "64MiB"},
                                           {"WYE_SILICON_MEMORY", "3GiB"},
                                           {"WYE_POOL_MEMORY", "2GiB"},
                                           {"WYE_LEASE_TIMEOUT", "250ms"},
                                           {"WYE_CPU_THREADS", "3"},
                                           {"WYE_VALIDATE", "1"},
                                           {"WYE_CUDA_DRIVER", "/opt/libcuda.so.1"},
                                           {"WYE_ISOLATION", "partition"},
                                           {"WYE_PARTITION", "37%"},
                                           {"WYE_KEPT_MEMORY", "32MiB"},
                                           {"WYE_PINNED_MEMORY", "16MiB"},
                                           {"WYE_POLL_LIMIT", "2ms"},
                                           {"WYE_SHARE", "machine"},
                                           {"WYE_SHARE_DIR", "/run/shared"},
                                           {"WYE_CACHED_KERNELS", "12"},
                                           {"WYE_CACHE_MEMORY", "1.5 GiB"},
                                           {"WYE_CACHE_DIR", "/somewhere"},
                                           {"WYE_CACHE_DISK", "2GiB"},
                                           {"WYE_CACHE_DURABLE", "1"},
                                           {"WYE_WARM_COMPILERS", "1"},
                                           {"WYE_JOBS", "9"},
                                           {"WYE_JOB_TIME_LIMIT", "2"},
                                           {"WYE_FALLBACK", "forbid"},
                                           {"WYE_MEASURE_VARIANTS", "0"},
                                           {"WYE_PLACEMENT", "table"},
                                           {"WYE_QUALIFICATION", "again"},
                                           {"WYE_HOT_RELOAD", "1"},
                                           {"WYE_CLOSE_TIMEOUT", "750ms"},
                                           {"WYE_LOG", "info,cache=debug"}}))
                       .value();
  CHECK(all.pool.backends == std::vector<std::string>{"vulkan", "cpu"});
  CHECK(all.pool.devices == std::vector<std::string>{"vulkan:1", "cpu:0"});
  CHECK(all.pool.lanes_per_device == 7);
  CHECK(all.pool.lane_memory == 64_MiB);
  CHECK((all.pool.silicon_memory == 3_GiB && all.pool.pool_memory == 2_GiB));
  CHECK(all.pool.lease_timeout == 250ms);
  CHECK(all.pool.cpu_threads == 3);
  CHECK(all.pool.validate_driver);
  CHECK(all.pool.cuda_driver == "/opt/libcuda.so.1");
  CHECK(all.pool.isolation == Isolation::partition);
  CHECK(all.pool.partition == Partition{.percent = 37});
  CHECK(read_environment(table({{"WYE_PARTITION", "16"}})).value().pool.partition ==
        Partition{.multiprocessors = 16});
  CHECK(all.pool.kept_memory == 32_MiB);
  CHECK(all.pool.pinned_memory == 16_MiB);
  CHECK(all.pool.poll_limit == 2ms);
  CHECK(all.pool.share == Share::machine);
  CHECK(all.pool.share_folder == "/run/shared");
  CHECK(all.cache.kernels == 12);
  CHECK(all.cache.memory == 1536_MiB);
  CHECK(all.cache.directory == "/somewhere");
  CHECK(all.cache.disk == 2_GiB);
  CHECK(all.cache.durable);
  CHECK(all.cache.warm_compilers);
  CHECK(all.scheduler.concurrent_jobs == 9);
  CHECK(all.scheduler.job_time_limit == 2s);
  CHECK(all.scheduler.fallback == Fallback::forbid);
  CHECK(all.scheduler.placement == PlacementMode::table);
  CHECK_FALSE(all.scheduler.measure_variants);
  CHECK(all.qualification == Qualification::again);
  CHECK(all.hot_reload);
  CHECK(all.close_timeout == 750ms);
  CHECK(all.log);
  CHECK(all.log_level == "info,cache=debug");
}

TEST_CASE("the cache directory is WYE_CACHE_DIR, otherwise the user's cache directory", "[runtime]") {
  const auto directory = [](std::map<std::string, std::string> values) {
    const auto all = read_environment(table(std::move(values))).value();
    return all.cache.directory + (all.cache.require_directory ? "" : " (default)");
  };
  CHECK(directory({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}}) == "/x/wye (default)");
  CHECK(directory({{"HOME", "/h"}}) == "/h/.cache/wye (default)");
  CHECK(directory({{"XDG_CACHE_HOME", ""}, {"HOME", "/h"}}) == "/h/.cache/wye (default)");
  CHECK(directory({{"XDG_CACHE_HOME", "relative"}, {"HOME", "/h"}}) == "/h/.cache/wye (default)");
  CHECK(directory({{"HOME", "relative"}}) == " (default)");
  CHECK(directory({}) == " (default)");
  CHECK(directory({{"WYE_CACHE_DIR", "/named"}, {"XDG_CACHE_HOME", "/x"}}) == "/named");
  CHECK(directory({{"WYE_CACHE_DIR", "none"}, {"XDG_CACHE_HOME", "/x"}}) == "");
  CHECK(directory({{"WYE_CACHE_DIR", ""}, {"XDG_CACHE_HOME", "/x"}}) == "/x/wye (default)");
}

TEST_CASE("an invalid value is an error that names the variable", "[runtime]") {
  const auto sentence = [](const char* name, const char* value) {
    auto refused = read_environment(table({{name, value}}));
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == Errc::invalid_argument);
    return refused.error().sentence();
  };
  CHECK(sentence("WYE_LANES", "two") == "Environment variable WYE_LANES ('two') is not a whole number.");
  CHECK(sentence("WYE_LANES", "-1") == "Environment variable WYE_LANES ('-1') is not a whole number.");
  CHECK(sentence("WYE_JOBS", "99999999999") ==
        "Environment variable WYE_JOBS ('99999999999') exceeds the limit (4294967295).");
  CHECK(sentence("WYE_LANE_MEMORY", "12 parsecs") ==
        "Environment variable WYE_LANE_MEMORY ('12 parsecs') is not a number of bytes such as 536870912 or "
        "512MiB.");
  CHECK(sentence("WYE_LEASE_TIMEOUT", "nan") ==
        "Environment variable WYE_LEASE_TIMEOUT ('nan') is not a number of seconds such as 5 or 500ms.");
  CHECK(sentence("WYE_VALIDATE", "yes") == "Environment variable WYE_VALIDATE ('yes') is not 0 or 1.");
  CHECK(sentence("WYE_ISOLATION", "process") ==
        "Environment variable WYE_ISOLATION ('process') is not shared, partition or device.");
  for (const char* part : {"0", "0%", "101%", "half", "12.5%", "%", "-3", "16 %"})
    CHECK(
        sentence("WYE_PARTITION", part) ==
        base::text("Environment variable WYE_PARTITION ('{}') is not a number of multiprocessors such as 32, "
                   "or a share from 1% to 100%.",
                   part));
  CHECK(sentence("WYE_SHARE", "user") ==
        "Environment variable WYE_SHARE ('user') is not process or machine.");
  CHECK(
      sentence("WYE_KEPT_MEMORY", "much") ==
      "Environment variable WYE_KEPT_MEMORY ('much') is not a number of bytes such as 536870912 or 512MiB.");
  CHECK(sentence("WYE_PLACEMENT", "best") ==
        "Environment variable WYE_PLACEMENT ('best') is not learned or table.");
  CHECK(sentence("WYE_FALLBACK", "maybe") ==
        "Environment variable WYE_FALLBACK ('maybe') is not allow, warn or forbid.");
  CHECK(sentence("WYE_BACKENDS", "cpu,,vulkan") ==
        "Environment variable WYE_BACKENDS ('cpu,,vulkan') is not a list of names such as vulkan,cpu.");
  CHECK(sentence("WYE_LOG", "loud").find("loud") != std::string::npos);
}

TEST_CASE("a number beyond its limit is refused with the value and the limit", "[runtime]") {
  const auto sentence = [](const char* variable, const std::string& value) {
    const auto all = read_environment(table({{variable, value}}));
    return all ? std::string("accepted") : all.error().sentence();
  };
  const auto beyond = [](const std::string& variable, const std::string& value, const std::string& limit) {
    return "Environment variable " + variable + " ('" + value + "') exceeds the limit (" + limit + ").";
  };
  for (const char* value :
       {"18446744073709551616", "17179869184GiB", "18014398509481984 KiB", "1e30GiB", "1e400"})
    CHECK(sentence("WYE_LANE_MEMORY", value) == beyond("WYE_LANE_MEMORY", value, "2^64 - 1 bytes"));
  CHECK(read_environment(table({{"WYE_LANE_MEMORY", "18446744073709551615"}})).value().pool.lane_memory ==
        Bytes{18446744073709551615ull});
  CHECK(read_environment(table({{"WYE_LANE_MEMORY", "9007199254740993"}})).value().pool.lane_memory ==
        Bytes{9007199254740993ull});  // a double has no such number
  CHECK(read_environment(table({{"WYE_LANE_MEMORY", "1.5MiB"}})).value().pool.lane_memory == Bytes{1572864});
  CHECK(sentence("WYE_LEASE_TIMEOUT", "9e9") == beyond("WYE_LEASE_TIMEOUT", "9e9", "9,000,000,000 s"));
  CHECK(sentence("WYE_LEASE_TIMEOUT", "150000000min") ==
        beyond("WYE_LEASE_TIMEOUT", "150000000min", "9,000,000,000 s"));
  CHECK(sentence("WYE_JOBS", "4294967296") == beyond("WYE_JOBS", "4294967296", "4294967295"));
  CHECK(sentence("WYE_PARTITION", "4294967296") == beyond("WYE_PARTITION", "4294967296", "4294967295"));
  for (const char* value : {"-1", "-0", "inf", "1x", "1 MiB x", "0x10", "+1", " 1", "MiB"}) {
    CAPTURE(value);
    CHECK(sentence("WYE_CACHE_DISK", value) ==
          "Environment variable WYE_CACHE_DISK ('" + std::string(value) +
              "') is not a number of bytes such as 536870912 or 512MiB.");
    CHECK(sentence("WYE_JOB_TIME_LIMIT", value) == "Environment variable WYE_JOB_TIME_LIMIT ('" +
                                                       std::string(value) +
                                                       "') is not a number of seconds such as 5 or 500ms.");
    CHECK(sentence("WYE_JOBS", value) ==
          "Environment variable WYE_JOBS ('" + std::string(value) + "') is not a whole number.");
  }
}

TEST_CASE("the variables of options set the same options", "[runtime]") {
  CHECK(RuntimeOptions{}.to_variables() == Variables{{"WYE_CACHE_DIR", "none"}});
  RuntimeOptions options;
  options.pool.devices = {"vulkan:1", "GPU-01020304-0506-0708-090a-0b0c0d0e0f10"};
  options.pool.lanes_per_device = 9;
  options.pool.silicon_memory = Bytes{(1ull << 60) + 1};
  options.pool.partition = {.percent = 37};
  options.pool.share = Share::machine;
  options.pool.poll_limit = 123457ns;
  options.pool.validate_driver = true;
  options.cache.directory = "/a folder/of kernels";
  options.scheduler.job_time_limit = Duration::max();
  options.scheduler.fallback = Fallback::forbid;
  options.scheduler.placement = PlacementMode::table;
  options.qualification = Qualification::never;
  options.close_timeout = 15s;
  const Variables variables = options.to_variables();
  CHECK(variables.size() == 13);
  const auto again = RuntimeOptions::from_variables(variables).value();
  CHECK(again.pool.devices == options.pool.devices);
  CHECK(again.pool.lanes_per_device == 9);
  CHECK(again.pool.silicon_memory == options.pool.silicon_memory);
  CHECK(again.pool.partition == options.pool.partition);
  CHECK(again.pool.share == Share::machine);
  CHECK(again.pool.poll_limit == 123457ns);
  CHECK(again.pool.validate_driver);
  CHECK(again.cache.directory == options.cache.directory);
  CHECK(again.scheduler.job_time_limit > 200 * 24h * 365);
  CHECK(again.scheduler.fallback == Fallback::forbid);
  CHECK(again.scheduler.placement == PlacementMode::table);
  CHECK(again.qualification == Qualification::never);
  CHECK(again.close_timeout == Duration(15s));
  CHECK(again.to_variables() == variables);
}

TEST_CASE("a wrong variable is named, and the environment is not read", "[runtime]") {
  CHECK(RuntimeOptions::from_variables({{"WYE_LANES", "many"}}).error().describe() ==
        "invalid_argument: Environment variable WYE_LANES ('many') is not a whole number.");
  CHECK(RuntimeOptions::from_variables({}).value().cache.directory.empty());
}
