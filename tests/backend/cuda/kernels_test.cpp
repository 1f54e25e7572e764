// Kernels as the driver takes or refuses them.
#include <wye/wye.hpp>

#include <thread>

#include "backend/cuda/rig.hpp"
#include "kernel/compilers/nvrtc.hpp"
#include "support/await.hpp"
#include "test_kernels_cu.hpp"

namespace wye::test {

TEST_CASE("a kernel whose threads wait for each other has the right result", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  const auto found = discover();
  const auto device = good(found.at(0).adapter->open());
  Artefact artefact = good(test_kernel("mix", *device, Twin::addresses));
  artefact.kernel = artefact.entry = "block_sums";
  artefact.schema.slots.pop_back();
  artefact.passing.pop_back();
  artefact.parameter_bytes = 32;
  const auto sums = good(device->create_executable(artefact));
  const std::vector<Word> words = numbers(7);
  const std::size_t blocks = (length + 63) / 64;
  const auto from = good(device->create_buffer({.bytes = Bytes{4 * length}, .account = nullptr})),
             to = good(device->create_buffer({.bytes = Bytes{4 * blocks}, .account = nullptr}));
  Lane lane(good(device->create_lane()));
  std::vector<Word> got(blocks), wanted(blocks);
  lane.upload(bytes_of(words), range(from));
  lane.dispatch(sums, arguments_of(from, to), length);
  lane.download(range(to), writable_bytes_of(got));
  REQUIRE(lane.wait(Instant::max()));
  for (std::size_t i = 0; i < length; ++i) wanted[i / 64] += words[i];
  CHECK(got == wanted);
}

TEST_CASE("PTX runs as a cubin does", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  const auto found = discover();
  const auto device = good(found.at(0).adapter->open());
  Artefact add = good(test_kernel("add", *device, Twin::addresses));
  add.language = "ptx";
  add.code = good(good(kernel::CudaCompiler::share())
                      ->compile(CudaCpp{.text = test_kernels_cu}, {{"test_kernels.cu", test_kernels_cu}}, {},
                                "test_kernels", *kernel::parse_target("compute_80")));
  const auto executable = good(device->create_executable(add));
  const auto buffer = good(device->create_buffer({.bytes = Bytes{4 * length}, .account = nullptr}));
  const std::vector<Word> words = numbers(7);
  std::vector<Word> got(length);
  Lane lane(good(device->create_lane()));
  lane.upload(bytes_of(words), range(buffer));
  lane.dispatch(executable, arguments_of(buffer, Word{3}), length);
  lane.download(range(buffer), writable_bytes_of(got));
  REQUIRE(lane.wait(Instant::max()));
  CHECK(got == numbers(10));
  add.code = good(good(kernel::CudaCompiler::share())
                      ->compile(CudaCpp{.text = test_kernels_cu}, {{"test_kernels.cu", test_kernels_cu}}, {},
                                "test_kernels", *kernel::parse_target("compute_100")));
  const auto newer = device->create_executable(add);
  REQUIRE_FALSE(newer);
  CHECK(newer.error() == Errc::unsupported);
  CHECK(newer.error().sentence().find("sm_90") != std::string::npos);
}

TEST_CASE("code that the driver does not take is refused with the reason", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  const auto found = discover();
  const auto device = good(found.at(0).adapter->open());
  const Artefact add = good(test_kernel("add", *device, Twin::addresses));
  const auto refused = [&](const Artefact& artefact, Errc code, std::string_view words) {
    auto made = device->create_executable(artefact);
    REQUIRE_FALSE(made);
    INFO(made.error().describe());
    CHECK(made.error() == code);
    CHECK(made.error().sentence().find(words) != std::string::npos);
  };
  Artefact other = add;
  other.entry = "subtract";
  refused(other, Errc::not_found, "'subtract'");
  other = add;
  other.parameter_bytes += 4;
  refused(other, Errc::invalid_argument, "another size in its code (20 bytes)");
  other = add;
  other.passing[0].offset = 8;
  refused(other, Errc::invalid_argument, "ends at byte 24");
  other = add;
  other.passing[0].kind = Passing::Kind::descriptor;
  refused(other, Errc::unsupported, "descriptor");
  other = add;
  other.workgroup = {2048, 1, 1};
  refused(other, Errc::unsupported, "2048");
  other = add;
  other.dynamic_shared = 300 << 10;
  refused(other, Errc::unsupported, "232448");
  other = add;
  other.language = "ptx";
  other.code.assign(64, std::byte{' '});
  other.code.back() = std::byte{0};
  refused(other, Errc::compile_failed, "'add'");
  stand_in.fail("cuLibraryLoadData", 1, 209);
  refused(add, Errc::unsupported, "sm_90");
  stand_in.fail("cuLibraryLoadData", 1, 222);
  refused(add, Errc::unsupported, "PTX version");
  CHECK(stand_in.alive().at("libraries") == 0);
}

TEST_CASE("device memory that is out is an error that names it, and there is room again after", "[cuda]") {
  const Setting little("WYE_STANDIN_MEMORY", "67108864");  // all of it is written: new buffers are zero
  const StandIn stand_in;
  const auto found = discover();
  const auto device = good(found.at(0).adapter->open());
  const BufferRequest large{.bytes = 40_MiB, .use = MemoryUse::device, .account = nullptr};
  auto first = good(device->create_buffer(large));
  auto second = device->create_buffer(large);
  REQUIRE_FALSE(second);
  CHECK(second.error() == Errc::out_of_memory);
  INFO(second.error().sentence());
  CHECK(second.error().sentence().find(to_string(40_MiB)) != std::string::npos);
  CHECK(device->memory().in_use == 40_MiB);
  first.reset();
  Lane lane(good(device->create_lane()));  // memory is freed in the order of a stream
  CHECK(lane.wait(Instant::max()));
  CHECK(test::becomes_true([&] { return stand_in.alive().at("device") == 0; }));
  CHECK(device->create_buffer(large));
}

TEST_CASE("code of a compiler that is newer than the driver is not given to it: PTX of an older one is",
          "[cuda]") {
  if (!has_kernels()) return;
  const auto compiler = good(kernel::CudaCompiler::share());
  if (compiler->version() < 13000) {
    return skip(std::string(compiler->name()) + " is no newer than the driver");
  }
  const char* const text = R"(extern "C" __global__ void add(wye_span<unsigned> x, unsigned by) {
  const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size) x[i] += by;
})";
  auto made = good(compile(CudaCpp{.text = text}, {.name = "add", .target = "compute_75"}));
  const std::size_t version = made.ptx->text.find(".version 9.");
  REQUIRE(version != std::string::npos);
  const Ptx newer = *made.ptx;
  const Ptx older{.text = made.ptx->text.replace(version, 12, ".version 8.2")};
  using Add = Kernel<ReadWrite<Word>, Word>;
  const Setting driver("WYE_STANDIN_VERSION", "12080");
  const StandIn stand_in;
  RuntimeOptions options;
  options.pool.backends = {"cuda"};
  options.pool.cuda_driver = WYE_STAND_IN_CUDA;
  Runtime runtime = good(Runtime::open(options));
  std::vector<Word> x(length, 1);
  const auto of_text = good(Add::make({.name = "add", .sources = {CudaCpp{.text = text}}}));
  const auto refused = runtime.submit(of_text(x, Word{2})).wait();
  REQUIRE_FALSE(refused);
  says(refused.error().describe(),
       {compiler->name() + " generates machine code that drivers for CUDA 12.8 do not accept"});
  const auto of_new_ptx = good(Add::make({.name = "add", .sources = {newer}}));
  says(runtime.submit(of_new_ptx(x, Word{2})).wait().error().describe(),
       {"its Ptx for sm_75 needs a driver for CUDA 13.0, but this one is for CUDA 12.8"});
  const auto of_both = good(Add::make({.name = "add", .sources = {CudaCpp{.text = text}, older}}));
  const auto done = runtime.submit(of_both(x, Word{2})).wait();
  if (!done) FAIL(done.error().describe());
  CHECK(done->code() == std::vector<KernelCode>{{"add", "Ptx", "ptx", "compute_75"}});
  CHECK(x == std::vector<Word>(length, 3));
}

}  // namespace wye::test
