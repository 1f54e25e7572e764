#include "scheduler/placement.hpp"

#include "support/catch.hpp"

using namespace wye;
using namespace wye::literals;
using scheduler::Choice;
using scheduler::order;
using scheduler::Preferences;

TEST_CASE("devices are tried in the order of their row, unnamed ones after those", "[scheduler]") {
  const std::vector<Choice> devices{{"cpu"}, {"metal"}, {"vulkan"}, {"cuda"}, {"vulkan"}};
  const Preference row{workload_types::matrix, 0_B, {"cuda", "vulkan", "cpu"}};
  CHECK(order(devices, row) == std::vector<std::size_t>{3, 2, 4, 0, 1});
}

TEST_CASE("a GPU driver that runs on the CPU comes after everything, whatever the row says", "[scheduler]") {
  const std::vector<Choice> devices{{"vulkan", true}, {"null"}, {"cpu"}};
  const Preference row{workload_types::matrix, 0_B, {"vulkan", "cpu"}};
  CHECK(order(devices, row) == std::vector<std::size_t>{2, 1, 0});
}

TEST_CASE("the row with the largest threshold that still holds counts", "[scheduler]") {
  const Preferences table({{workload_types::vector, 0_B, {"a"}},
                           {workload_types::vector, 100_B, {"b"}},
                           {workload_types::vector, 50_B, {"c"}}});
  CHECK(table.row(workload_types::vector, 0_B).backends.front() == "a");
  CHECK(table.row(workload_types::vector, 49_B).backends.front() == "a");
  CHECK(table.row(workload_types::vector, 50_B).backends.front() == "c");
  CHECK(table.row(workload_types::vector, 99_B).backends.front() == "c");
  CHECK(table.row(workload_types::vector, 100_B).backends.front() == "b");
  CHECK(table.row(workload_types::vector, Bytes{~0ull}).backends.front() == "b");
}

TEST_CASE("a host's rows replace those of their type and no others", "[scheduler]") {
  const Preferences table({{workload_types::vector, 0_B, {"cpu"}}});
  CHECK(table.row(workload_types::vector, 10_GiB).backends == std::vector<std::string>{"cpu"});
  CHECK(table.row(workload_types::matrix, 10_GiB).backends.front() == "cuda");
}

TEST_CASE("every workload type has rows from zero bytes on, and a foreign one is custom", "[scheduler]") {
  const Preferences table({});
  for (WorkloadType type :
       {workload_types::vector, workload_types::matrix, workload_types::attention, workload_types::graph,
        workload_types::timeline, workload_types::image, workload_types::audio, workload_types::simulation,
        workload_types::number_theory, workload_types::rendering, workload_types::shader_compilation,
        workload_types::custom}) {
    CHECK(table.row(type, 0_B).type == type);
    CHECK(table.row(type, Bytes{~0ull}).type == type);
    // Small work stays on the CPU; it is for GPUs that kernels are built.
    CHECK(table.row(type, 0_B).backends.front() ==
          (type == workload_types::shader_compilation ? "cuda" : "cpu"));
  }
  CHECK(table.row(WorkloadType{"physics"}, 0_B).type == workload_types::custom);
}

TEST_CASE("small vectors stay on the CPU and large ones go to a card", "[scheduler]") {
  const Preferences table({});
  CHECK(table.row(workload_types::vector, 64_MiB - 1_B).backends.front() == "cpu");
  CHECK(table.row(workload_types::vector, 64_MiB).backends.front() == "cuda");
}

TEST_CASE("the default table sends each workload type to a GPU from its own size on", "[scheduler]") {
  const Preferences table({});
  const std::vector<std::string> gpu_first{"cuda", "vulkan", "cpu"}, cpu_first{"cpu", "cuda", "vulkan"};
  const std::vector<std::pair<WorkloadType, Bytes>> thresholds{
      {workload_types::vector, 64_MiB},         {workload_types::matrix, 1_MiB},
      {workload_types::attention, 1_MiB},       {workload_types::graph, 16_MiB},
      {workload_types::timeline, 64_MiB},       {workload_types::image, 1_MiB},
      {workload_types::audio, 4_MiB},           {workload_types::simulation, 64_KiB},
      {workload_types::number_theory, 256_KiB}, {workload_types::rendering, 1_MiB},
      {workload_types::custom, 1_MiB}};
  for (const auto& [type, from] : thresholds) {
    INFO(type.name);
    for (const Bytes bytes : {0_B, 1_B, from - 1_B}) CHECK(table.row(type, bytes).backends == cpu_first);
    for (const Bytes bytes : {from, from + 1_B, Bytes{~0ull}})
      CHECK(table.row(type, bytes).backends == gpu_first);
  }
  CHECK(table.row(workload_types::shader_compilation, 0_B).backends == gpu_first);
}
