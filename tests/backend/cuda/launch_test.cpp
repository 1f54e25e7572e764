// Launches of kernels: in clusters, all blocks at once, with more shared memory; and launches that
// a device refuses.
#include <wye/wye.hpp>

#include "backend/cuda/rig.hpp"
#include "base/internals.hpp"
#include "support/temporary_folder.hpp"
#include "together_cu.hpp"

namespace wye::test {
namespace {

RuntimeOptions cuda_only() {
  RuntimeOptions options;
  options.pool.backends = {"cuda"};
  options.pool.cuda_driver = WYE_STAND_IN_CUDA;
  options.qualification = Qualification::never;  // calls are counted
  options.scheduler.fallback = Fallback::forbid;
  return options;
}

using PassOn = Kernel<ReadWrite<Word>, ReadWrite<Word>, Word>;
PassOn pass_on(LaunchOptions launch = {.cooperative = true}) {
  return good(PassOn::make(
      {.name = "pass_on", .sources = {CudaCpp{.text = together_cu, .workgroup = 64, .launch = launch}}}));
}
using InClusters = Kernel<ReadWrite<Word>, ReadWrite<Word>>;
InClusters in_clusters(LaunchOptions launch, const char* name = "in_clusters") {
  return good(InClusters::make(
      {.name = name, .sources = {CudaCpp{.text = together_cu, .workgroup = 32, .launch = launch}}}));
}

/// Returns the complete description of a job's error.
template <class J>
std::string error_of(Runtime& runtime, J&& call, Errc code) {
  const auto done = runtime.submit(Job(std::forward<J>(call), workload_types::vector)).wait();
  if (done) return "there is none";
  INFO(done.error().describe());
  CHECK(done.error() == code);
  return done.error().describe();
}
std::vector<Word> passed_on(std::vector<Word> x, Word rounds) {
  for (Word round = 0; round < rounds; ++round) {
    std::vector<Word> next(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) next[i] = x[(i + 64) % x.size()] + 1;
    x = next;
  }
  return x;
}

}  // namespace

TEST_CASE("all blocks of a cooperative launch wait for each other, each with its own shared memory",
          "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  Runtime runtime = good(Runtime::open(cuda_only()));
  const auto kernel = pass_on();
  for (const long order : {0, -1, 3}) {
    stand_in.order(order);
    for (const std::size_t blocks : {1u, 2u, 17u}) {
      std::vector<Word> even(64 * blocks), odd(64 * blocks);
      std::iota(even.begin(), even.end(), 5u);
      const auto wanted = passed_on(even, 6);
      const auto done =
          runtime.submit(Job(kernel(even, odd, 6).over(even.size()), workload_types::vector)).wait();
      if (!done) FAIL(done.error().describe());
      CHECK(even == wanted);
    }
  }
  stand_in.order(0);
  CHECK(stand_in.calls("cuLaunchKernelEx") == 9);
  CHECK(stand_in.calls("cuLaunchKernel") == 0);
}

TEST_CASE("a cooperative grid that is too large is refused with the largest possible grid", "[cuda]") {
  if (!has_kernels()) return;
  const Setting few("WYE_STANDIN_MULTIPROCESSORS", "2");
  const StandIn stand_in;
  Runtime runtime = good(Runtime::open(cuda_only()));
  const auto kernel = pass_on();
  const auto executable = good(runtime.cache().find_or_build(kernel, runtime.devices().at(0)));
  const std::uint64_t most = executable.resident_groups();
  CHECK(most == 64);  // 32 blocks of 64 threads fit into each of the two
  CHECK(Executable().resident_groups() == 0);
  std::vector<Word> even(64 * most), odd(64 * most), more(64 * most + 64), as_many(64 * most + 64);
  const auto fits =
      runtime.submit(Job(kernel(even, odd, 2).over(even.size()), workload_types::vector)).wait();
  if (!fits) FAIL(fits.error().describe());
  says(error_of(runtime, kernel(more, as_many, 2).over(more.size()), Errc::unsupported),
       {"The cooperative grid of kernel 'pass_on' (65 workgroups) exceeds the number of workgroups that "
        "device 'cuda:0' runs at once (64)."});
  CHECK(stand_in.calls("cuLaunchKernelEx") == 1);
}

TEST_CASE("a device without cooperative launches reports that", "[cuda]") {
  if (!has_kernels()) return;
  const Setting none("WYE_STANDIN_COOPERATIVE", "0");
  const StandIn stand_in;
  Runtime runtime = good(Runtime::open(cuda_only()));
  std::vector<Word> even(64), odd(64);
  says(error_of(runtime, pass_on()(even, odd, 2).over(64), Errc::unsupported),
       {"Kernel 'pass_on' needs a cooperative launch", "'cuda:0'"});
}

TEST_CASE("blocks of a cluster know each other and wait for each other", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  Runtime runtime = good(Runtime::open(cuda_only()));
  for (const Word size : {1u, 4u, 12u}) {
    const auto kernel = in_clusters({.cluster = Extent3(size)});
    for (const long order : {0, -1, 5}) {
      stand_in.order(order);
      const Word across = 2 * size, blocks = across * 3;
      std::vector<Word> told(blocks), to(3 * blocks), wanted(3 * blocks);
      const auto done =
          runtime.submit(Job(kernel(told, to).over(Extent3(32 * across, 3)), workload_types::vector)).wait();
      if (!done) FAIL(done.error().describe());
      for (Word block = 0; block < blocks; ++block) {
        const Word rank = block % size;
        for (Word i = 0; i < size; ++i) wanted[3 * block] += block - rank + i + 1;
        wanted[3 * block + 1] = size;
        wanted[3 * block + 2] = rank;
      }
      INFO("clusters of " << size << ", order " << order);
      CHECK(to == wanted);
    }
  }
  stand_in.order(0);
}

TEST_CASE("clusters that a device, a grid or the code does not allow are refused with the numbers",
          "[cuda]") {
  if (!has_kernels()) return;
  std::vector<Word> told(64), to(64 * 3);
  {
    const StandIn stand_in;
    Runtime runtime = good(Runtime::open(cuda_only()));
    says(error_of(runtime, in_clusters({.cluster = Extent3(4)})(told, to).over(32 * 6), Errc::unsupported),
         {"The grid of kernel 'in_clusters' (6 x 1 x 1 workgroups) on device 'cuda:0' is not a multiple of "
          "its cluster (4 x 1 x 1)."});
    says(error_of(runtime, in_clusters({.cluster = Extent3(16)})(told, to).over(32 * 16), Errc::unsupported),
         {"The cluster of kernel 'in_clusters' (16 workgroups) exceeds the limit of device 'cuda:0' (12)."});
    CHECK(stand_in.calls("cuLaunchKernelEx") == 0);
  }
  {
    const Setting older("WYE_STANDIN_ARCHITECTURE", "80");
    const StandIn stand_in;
    Runtime runtime = good(Runtime::open(cuda_only()));
    says(error_of(runtime, in_clusters({.cluster = Extent3(2)})(told, to).over(64), Errc::unsupported),
         {"Kernel 'in_clusters' needs clusters (2 workgroups)", "'cuda:0' (wye stand-in, sm_80)", "sm_90"});
  }
  const Setting required("WYE_STANDIN_REQUIRED_CLUSTER", "2");
  const StandIn stand_in;
  Runtime runtime = good(Runtime::open(cuda_only()));
  says(error_of(runtime, in_clusters({.cluster = Extent3(4)})(told, to).over(128), Errc::invalid_argument),
       {"The cluster of kernel 'in_clusters' (4 x 1 x 1) differs from the cluster that its code requires (2 "
        "x 1 x 1)."});
  says(error_of(runtime, in_clusters({})(told, to).over(96), Errc::unsupported), {"(2 x 1 x 1)"});
}

TEST_CASE("a barrier of the grid that not all blocks come to is a fault, as is one in a plain launch",
          "[cuda]") {
  if (!has_kernels()) return;
  for (const bool cooperative : {true, false}) {
    const StandIn stand_in;
    Runtime runtime = good(Runtime::open(cuda_only()));
    std::vector<Word> told(4), to(4);
    says(error_of(runtime, in_clusters({.cooperative = cooperative}, "not_all_come")(told, to).over(4 * 32),
                  Errc::device_lost),
         {"CUDA_ERROR_LAUNCH_FAILED"});
  }
}

TEST_CASE("options of a launch that cannot be meant are refused when the kernel is made", "[cuda]") {
  const auto refusal = [](LaunchOptions launch) {
    const auto made = InClusters::make(
        {.name = "k", .sources = {CudaCpp{.text = together_cu, .entry = "in_clusters", .launch = launch}}});
    return made ? std::string("none") : made.error().describe();
  };
  says(refusal({.cluster = Extent3(8, 4)}),
       {"The cluster of kernel 'k' (8 x 4 x 1) does not have 1 to 16 workgroups."});
  says(refusal({.cluster = Extent3(2, 0)}), {"(2 x 0 x 1)"});
  says(refusal({.shared_carveout = 101}),
       {"The share of shared memory that kernel 'k' prefers (101 %) exceeds 100 %."});
  CHECK(refusal({.cluster = Extent3(16), .cooperative = true, .shared_carveout = 100}) == "none");
}

TEST_CASE("a preference for shared memory is a hint: the job runs even if the driver ignores it", "[cuda]") {
  if (!has_kernels()) return;
  constexpr int carveout = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  const StandIn stand_in;
  Runtime runtime = good(Runtime::open(cuda_only()));
  std::vector<Word> told(4), to(12);
  for (const std::uint32_t share : {75u, 0u}) {
    if (share == 0) stand_in.fail("cuKernelSetAttribute", 1, 1);
    const auto done =
        runtime
            .submit(Job(in_clusters({.shared_carveout = share})(told, to).over(128), workload_types::vector))
            .wait();
    if (!done) FAIL(done.error().describe());
    CHECK(stand_in.function_attribute(carveout) == 75);
  }
  CHECK(stand_in.calls("cuLaunchKernel") == 2);
}

TEST_CASE("kernels that are launched otherwise are other kernels to the cache, on disk too", "[cuda]") {
  if (!has_kernels()) return;
  const TemporaryFolder folder;
  for (const CacheTier tier : {CacheTier::built, CacheTier::disk}) {
    const StandIn stand_in;
    RuntimeOptions options = cuda_only();
    options.cache.directory = folder.path();
    Runtime runtime = good(Runtime::open(options));
    for (const Word size : {1u, 2u}) {
      std::vector<Word> told(4), to(12);
      const auto kernel = size == 1 ? in_clusters({}) : in_clusters({.cluster = Extent3(size)});
      const auto done = runtime.submit(Job(kernel(told, to).over(128), workload_types::vector)).wait();
      if (!done) FAIL(done.error().describe());
      CHECK(to[1] == size);
      CHECK(runtime.metrics().cache.misses == (tier == CacheTier::built ? size : 0));
    }
  }
}

TEST_CASE("a block that the kernel's registers do not allow is refused with both numbers", "[cuda]") {
  if (!has_kernels()) return;
  const Setting many("WYE_STANDIN_REGISTERS", "168");
  const StandIn stand_in;
  const auto found = discover();
  const auto device = good(found.at(0).adapter->open());
  Artefact add = good(test_kernel("add", *device, Twin::addresses));
  add.workgroup = 512;
  const auto made = device->create_executable(add);
  REQUIRE_FALSE(made);
  CHECK(made.error() == Errc::unsupported);
  says(made.error().sentence(), {"The workgroup of kernel 'add' (512 invocations with 168 registers each) "
                                 "exceeds the limit of its code on device 'cuda:0' (384 invocations)."});
  add.workgroup = 384;
  const auto fits = good(device->create_executable(add));
  CHECK(fits->resident_groups() == 132);
}

TEST_CASE("a kernel is loaded when it is created, if the driver supports that", "[cuda]") {
  if (!has_kernels()) return;
  for (const char* version : {"13000", "12020"}) {
    const Setting driver("WYE_STANDIN_VERSION", version);
    const StandIn stand_in;
    const auto device = good(discover().at(0).adapter->open());
    INFO(version);
    CHECK(device->create_executable(good(test_kernel("add", *device, Twin::addresses))));
    CHECK(stand_in.calls("cuFuncLoad") == (version == std::string_view("13000") ? 1 : 0));
  }
}

TEST_CASE("graphs launch as lanes do", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  Runtime runtime = good(Runtime::open(cuda_only()));
  const auto executable = good(runtime.cache().find_or_build(pass_on(), runtime.devices().at(0)));
  const auto device = base::state_of(runtime.devices().at(0));
  constexpr std::size_t count = 64 * 5;
  const auto even = good(device->create_buffer({.bytes = Bytes{4 * count}, .account = nullptr})),
             odd = good(device->create_buffer({.bytes = Bytes{4 * count}, .account = nullptr}));
  std::vector<Word> x(count), got(count);
  std::iota(x.begin(), x.end(), 1u);
  Lane lane(good(device->create_lane()));
  lane.upload(bytes_of(x), range(even));
  lane.submit();
  SequenceState sequence(device);
  sequence.open().dispatch(base::state_of(executable), arguments_of(even, odd, Word{4}), count);
  lane.submit(sequence);
  lane.submit(sequence);
  lane.download(range(even), writable_bytes_of(got));
  REQUIRE(lane.wait(Instant::max()));
  CHECK(got == passed_on(x, 8));
  CHECK(stand_in.calls("cuGraphLaunch") == 2);
  CHECK(stand_in.calls("cuGraphKernelNodeSetAttribute") == 1);
}

}  // namespace wye::test
