// An unusable device, driver or kernel: the error has its name and the limit, and other backends
// work.
#include <wye/wye.hpp>

#include "backend/cuda/rig.hpp"
#include "kernel/compilers/nvrtc.hpp"
#include "test_kernels_cu.hpp"

namespace wye::test {
namespace {

/// A runtime that looks for CUDA and has the CPU anyway; it computes.
Runtime with_cpu() {
  RuntimeOptions options;
  options.pool.backends = {"cuda", "cpu"};
  options.pool.cuda_driver = WYE_STAND_IN_CUDA;
  Runtime runtime = good(Runtime::open(options));
  const auto add = good(Kernel<ReadWrite<Word>, Word>::make(
      {.name = "add", .sources = {host([](Range r, std::span<Word> x, Word by) {
                        for (auto i : r) x[i] += by;
                      })}}));
  std::vector<Word> x(100, 1);
  const auto done = runtime.submit(Job(add(x, 2), workload_types::vector)).wait();
  if (!done) FAIL(done.error().describe());
  CHECK(x == std::vector<Word>(100, 3));
  CHECK(done->backend() == "cpu");
  return runtime;
}

const AdapterInfo& cuda_of(const Runtime& runtime) {
  for (const AdapterInfo& info : runtime.adapters())
    if (info.backend == "cuda") return info;
  throw std::runtime_error("CUDA was not looked for");
}

/// The error of loading the test kernel 'add', compiled for `target`, as `change` has it.
template <class Change>
std::string refusal(const char* target, Errc code, Change change) {
  const auto found = discover();
  const auto device = good(found.at(0).adapter->open());
  Artefact add = good(test_kernel("add", *device, Twin::addresses));
  if (*target) {
    const auto parsed = *kernel::parse_target(target);
    add.language = parsed.ptx ? "ptx" : "cubin";
    add.code = good(good(kernel::CudaCompiler::share())
                        ->compile(CudaCpp{.text = test_kernels_cu}, {{"test_kernels.cu", test_kernels_cu}},
                                  {}, "test_kernels", parsed));
  }
  change(add);
  const auto made = device->create_executable(add);
  if (made) return "there is none";
  CHECK(made.error() == code);
  return made.error().describe();
}

}  // namespace

TEST_CASE("without devices that are visible there is a reason, and the CPU works", "[cuda]") {
  const Setting hidden("CUDA_VISIBLE_DEVICES", "");
  const StandIn stand_in;
  const Runtime runtime = with_cpu();
  CHECK_FALSE(cuda_of(runtime).usable);
  says(cuda_of(runtime).reason, {"CUDA_VISIBLE_DEVICES hides all", "cuInit -> CUDA_ERROR_NO_DEVICE (100)"});
}

TEST_CASE("a stub of the driver is a reason, and the CPU works", "[cuda]") {
  const Setting stub("WYE_STANDIN_INIT", "34");
  const StandIn stand_in;
  says(cuda_of(with_cpu()).reason, {"('" WYE_STAND_IN_CUDA "') is the stub library of the CUDA Toolkit",
                                    "cuInit -> CUDA_ERROR_STUB_LIBRARY (34)"});
}

TEST_CASE("a driver that is too old is a reason with both versions, and the CPU works", "[cuda]") {
  const Setting old("WYE_STANDIN_VERSION", "12010");
  const StandIn stand_in;
  CHECK(cuda_of(with_cpu()).reason ==
        "The CUDA version of the driver (12.1) is below the oldest that wye supports (12.2).");
}

TEST_CASE("a device in exclusive use of another process reports that, and the CPU works", "[cuda]") {
  const Setting exclusive("WYE_STANDIN_COMPUTE_MODE", "3"), taken("WYE_STANDIN_TAKEN", "1");
  const StandIn stand_in;
  says(cuda_of(with_cpu()).reason,
       {"'cuda:0' (wye stand-in) is in exclusive use by another process", "compute mode"});
}

TEST_CASE("a part of a device is a device, with its own memory for a limit", "[cuda]") {
  const Setting part("WYE_STANDIN_MIG", "1"), memory("WYE_STANDIN_MEMORY", "1073741824");
  const StandIn stand_in;
  const auto found = discover();
  REQUIRE(found.at(0).info.usable);
  CHECK(found[0].info.name == "wye stand-in MIG 1g.1gb");
  CHECK(found[0].info.memory == 1_GiB);
  const auto device = good(found[0].adapter->open());
  const auto large = device->create_buffer({.bytes = 2_GiB, .account = nullptr});
  REQUIRE_FALSE(large);
  CHECK(large.error() == Errc::out_of_memory);
  says(large.error().sentence(), {"(2147483648 bytes)", "'cuda:0' (1073741824 bytes)"});
}

TEST_CASE("PTX for a newer architecture, and a cubin for another, name both", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  const auto as_is = [](Artefact&) {};
  says(refusal("compute_100", Errc::unsupported, as_is),
       {"The ptx of kernel 'add' is not for the architecture of device 'cuda:0' (sm_90).",
        "CUDA_ERROR_NO_BINARY_FOR_GPU (209)", "stand-in: it is for another architecture"});
  says(refusal("sm_80", Errc::unsupported, as_is),
       {"The cubin of kernel 'add' is not for the architecture of device 'cuda:0' (sm_90)."});
}

TEST_CASE("dynamic shared memory over the limit names it, and up to the limit there is as much", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  says(refusal("", Errc::unsupported, [](Artefact& add) { add.dynamic_shared = (227 << 10) + 4; }),
       {"The shared memory of kernel 'add' (232452 bytes, 232452 of them dynamic) exceeds the limit of "
        "device 'cuda:0' (232448)."});
  CHECK(refusal("", Errc::unsupported, [](Artefact& add) { add.dynamic_shared = 227 << 10; }) ==
        "there is none");
  CHECK(stand_in.function_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) == 227 << 10);
  stand_in.fail("cuKernelSetAttribute", 1, 1);
  says(refusal("", Errc::invalid_argument, [](Artefact& add) { add.dynamic_shared = 100 << 10; }),
       {"Device 'cuda:0' refuses the dynamic shared memory of kernel 'add' (102400 bytes).",
        "CUDA_ERROR_INVALID_VALUE (1)"});
}

TEST_CASE("a kernel's misaligned address ends CUDA in this process with that reason, and nothing else",
          "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  {
    const auto found = discover();
    const auto device = good(found.at(0).adapter->open());
    const auto buffer = good(device->create_buffer({.bytes = 400_B, .account = nullptr}));
    const auto add = good(device->create_executable(good(test_kernel("add", *device, Twin::addresses))));
    Lane lane(good(device->create_lane()));
    lane.dispatch(add, arguments_of(buffer, Word{1}), 100);
    lane.submit();
    stand_in.fail("cuEventQuery", 1, 716);
    const auto waited = lane.wait(Instant::max());
    REQUIRE_FALSE(waited);
    CHECK(waited.error() == Errc::device_lost);
    says(waited.error().describe(), {"Device 'cuda:0' (wye stand-in) is lost: a kernel accessed an address "
                                     "that is not a multiple of the access size.",
                                     "CUDA_ERROR_MISALIGNED_ADDRESS (716)"});
    says(cuda_of(with_cpu()).reason,
         {"has disabled CUDA in this process", "CUDA_ERROR_MISALIGNED_ADDRESS (716)"});
  }
}

TEST_CASE("sizes that would round to the same text are reported exactly", "[cuda]") {
  const Setting memory("WYE_STANDIN_MEMORY", "67108864");
  const StandIn stand_in;
  const auto found = discover();
  const auto device = good(found.at(0).adapter->open());
  const auto most = good(device->create_buffer({.bytes = 32_MiB, .account = nullptr}));
  const auto refused = device->create_buffer({.bytes = Bytes{(32ull << 20) + 4}, .account = nullptr});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().sentence() ==
        "Buffer size (33554436 bytes) exceeds the available memory of device 'cuda:0' (33554432 bytes of "
        "67108864 bytes).");
  stand_in.fail("cuMemAllocFromPoolAsync", 1, 2);
  stand_in.fail("cuMemPoolTrimTo", 1, 1);
  const auto in_pieces = device->create_buffer({.bytes = 1_MiB, .account = nullptr});
  REQUIRE_FALSE(in_pieces);
  CHECK(
      in_pieces.error().sentence() ==
      "Device 'cuda:0' has no contiguous memory for a buffer of 1.00 MiB (32.0 MiB of 64.0 MiB available).");
}

}  // namespace wye::test
