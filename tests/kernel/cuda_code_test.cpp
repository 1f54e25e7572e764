#include "kernel/reflect/cuda_code.hpp"
#include "base/internals.hpp"

#include <wye/kernel/kernel.hpp>

#include <set>
#include <stdexcept>

#include "cubin.hpp"
#include "cuda.hpp"
#include "kernel/program.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using kernel::parse_architecture;
using kernel::reflect_cubin;
using kernel::reflect_ptx;
using test::CubinMaker;
using test::cuda_device;

namespace {

using ScaleKernel = Kernel<ReadWrite<float>, float>;

Result<ScaleKernel> scale(std::vector<ScaleKernel::Source> sources) {
  return ScaleKernel::make({.name = "scale", .sources = std::move(sources), .parameters = {"x", "s"}});
}

std::string refusal(const AnyKernel& kernel, const std::shared_ptr<test::DoubleDevice>& device) {
  const auto refused = base::program_of(kernel)->refusal(*device);
  return refused ? refused->sentence() : "";
}

Cubin cubin_for(unsigned architecture) {
  CubinMaker maker;
  maker.architecture = architecture;
  return {.bytes = maker.make()};
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  text.replace(text.find(what), what.size(), with);
  return text;
}

Ptx ptx_for(const std::string& architecture, const std::string& version = "9.0") {
  return {.text = replaced(replaced(test::scale_ptx, ".version 9.0", ".version " + version), ".target sm_80",
                           ".target " + architecture)};
}

}  // namespace

TEST_CASE("architectures have names and run compatible code", "[kernel]") {
  for (const char* name : {"sm_75", "sm_90a", "sm_100f", "sm_121"})
    CHECK(to_string(parse_architecture(name).value()) == name);
  for (const char* name :
       {"", "sm_", "sm_9", "sm_9a", "sm_1000", "sm_x0", "sm_09", "compute_90", "sm_90b", "90"})
    CHECK_FALSE(parse_architecture(name));
  const auto of = [](const char* name) { return *parse_architecture(name); };
  CHECK(runs_cubin(of("sm_80"), of("sm_80")));
  CHECK(runs_cubin(of("sm_80"), of("sm_86")));
  CHECK_FALSE(runs_cubin(of("sm_86"), of("sm_80")));
  CHECK_FALSE(runs_cubin(of("sm_80"), of("sm_90")));
  CHECK(runs_cubin(of("sm_90a"), of("sm_90")));
  CHECK_FALSE(runs_cubin(of("sm_100a"), of("sm_103")));
  CHECK(runs_cubin(of("sm_100f"), of("sm_103")));
  CHECK(runs_ptx(of("sm_75"), of("sm_120")));
  CHECK_FALSE(runs_ptx(of("sm_90"), of("sm_89")));
  CHECK_FALSE(runs_ptx(of("sm_90a"), of("sm_100")));
  CHECK_FALSE(runs_ptx(of("sm_100f"), of("sm_120")));
}

TEST_CASE("the parameters, block and architecture of PTX are read", "[kernel]") {
  const auto code = reflect_ptx(test::scale_ptx, "scale");
  REQUIRE(code);
  CHECK(to_string(code->architecture) == "sm_80");
  CHECK(code->most_threads == 256);
  CHECK_FALSE(code->required);
  REQUIRE(code->interface.members.size() == 2);
  CHECK(code->interface.members[0].size == 16);
  CHECK(code->interface.members[1].offset == 16);
  CHECK(code->interface.members[1].element == ElementType::float32);
  CHECK(code->interface.push_bytes == 20);

  const auto many = reflect_ptx(test::scale_ptx, "many");
  REQUIRE(many);
  CHECK(many->required == Extent3(8, 4));
  const std::uint32_t offsets[] = {0, 8, 16, 32, 48}, sizes[] = {8, 2, 8, 16, 4};
  REQUIRE(many->interface.members.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(many->interface.members[i].offset == offsets[i]);
    CHECK(many->interface.members[i].size == sizes[i]);
  }
  CHECK(reflect_ptx(test::scale_ptx, "none")->interface.members.empty());
}

TEST_CASE("PTX that is truncated or lacks the kernel is refused", "[kernel]") {
  CHECK(reflect_ptx(test::scale_ptx, "other").error().sentence() ==
        "The code has no kernel 'other' (it has 'scale', 'many', 'none').");
  CHECK(reflect_ptx("", "k").error() == Errc::invalid_argument);
  CHECK(reflect_ptx(".target sm_80", "k").error().sentence() == "The code has no kernel.");
  CHECK(reflect_ptx(".target tesla\n", "k").error().sentence().find("('tesla') is not an architecture") !=
        std::string::npos);
  CHECK(reflect_ptx(".target sm_80 .entry k(.param .texref t) { }", "k").error() == Errc::unsupported);
  const std::string text = test::scale_ptx;
  const std::size_t whole = text.rfind('}');
  std::size_t accepted = 0;
  for (std::size_t length = 0; length <= whole; ++length) {
    const auto read = reflect_ptx(text.substr(0, length), "none");
    if (read) ++accepted;
  }
  CHECK(accepted == 0);
}

TEST_CASE("the parameters, block and architecture of a cubin are read", "[kernel]") {
  CubinMaker maker;
  for (const unsigned abi : {7u, 8u}) {
    maker.abi = abi;
    const auto code = reflect_cubin(maker.make(), "scale");
    if (!code) FAIL(code.error().describe());
    CHECK(to_string(code->architecture) == "sm_80");
    REQUIRE(code->interface.members.size() == 2);
    CHECK(code->interface.members[0].size == 16);
    CHECK(code->interface.members[1].offset == 16);
    CHECK(code->interface.push_bytes == 20);
    CHECK(code->most_threads == 0);
  }
  maker.most_threads = 128;
  maker.required_threads = 64;
  CHECK(reflect_cubin(maker.make(), "scale")->most_threads == 128);
  CHECK(reflect_cubin(maker.make(), "scale")->required == Extent3(64));
  CHECK(reflect_cubin(maker.make(), "other").error().sentence() ==
        "The code has no kernel 'other' (it has 'scale').");
}

TEST_CASE("an invalid, truncated or damaged cubin is refused", "[kernel]") {
  const std::vector<std::byte> whole = CubinMaker().make();
  std::size_t accepted = 0;
  for (std::size_t length = 0; length < whole.size(); ++length)
    accepted += reflect_cubin(std::span(whole).first(length), "scale").has_value();
  CHECK(accepted == 0);
  CHECK(reflect_cubin({}, "scale").error().sentence() == "The bytes are not a cubin.");
  CHECK(reflect_cubin(std::span(whole).first(whole.size() - 1), "scale").error().sentence() ==
        "The cubin is damaged: it is truncated, or its section table is invalid.");
  CubinMaker maker;
  maker.parameters = {{0, 16}, {12, 4}};
  CHECK(reflect_cubin(maker.make(), "scale").error().sentence() ==
        "The cubin is damaged: parameter 2 overlaps the previous parameter.");
  maker.parameters = {{0, 16}, {16, 0}};
  CHECK(reflect_cubin(maker.make(), "scale").error().sentence() ==
        "The cubin is damaged: it lacks parameter 2 of 2.");
  // Every flipped bit is refused, or read as something: nothing else is looked at.
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::vector<std::byte> bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    (void)reflect_cubin(bytes, "scale");
  }
}

TEST_CASE("PTX and cubins are ready, and passed as a shader's push constants", "[kernel]") {
  const auto kernel = scale({Ptx{.text = test::scale_ptx}, cubin_for(90), cubin_for(80)});
  if (!kernel) FAIL(kernel.error().describe());
  CHECK(kernel->languages() == "Ptx, Cubin");
  const auto built = base::program_of(*kernel)->build(*cuda_device("sm_90"));
  REQUIRE(built);
  CHECK(built->language == "cubin");
  CHECK(built->code == cubin_for(90).bytes);
  CHECK(built->entry == "scale");
  using Way = device::Passing::Kind;
  CHECK(built->passing == std::vector<device::Passing>{{Way::span, 0, 0}, {Way::bytes, 0, 16}});
  CHECK(built->parameter_bytes == 20);
  CHECK(built->workgroup == Extent3(256));
  CHECK(built->schema == kernel->schema());

  const auto text = base::program_of(*kernel)->build(*cuda_device("sm_120"));
  CHECK(text->language == "ptx");
  CHECK(text->code.size() == std::string_view(test::scale_ptx).size() + 1);
  CHECK(text->code.back() == std::byte{0});
  CHECK(text->passing == built->passing);
}

TEST_CASE("of several cubins a device gets the newest that runs on it", "[kernel]") {
  const auto kernel = scale({cubin_for(86), cubin_for(80), cubin_for(89), cubin_for(90)});
  REQUIRE(kernel);
  const auto gets = [&](const char* architecture) {
    const auto built = base::program_of(*kernel)->build(*cuda_device(architecture));
    return built ? to_string(kernel::cubin_architecture(built->code).value()) : built.error().sentence();
  };
  CHECK(gets("sm_80") == "sm_80");
  CHECK(gets("sm_87") == "sm_86");
  CHECK(gets("sm_89") == "sm_89");
  CHECK(gets("sm_90") == "sm_90");
  CHECK(gets("sm_100").find("its Cubin is for sm_86, but the device is sm_100") != std::string::npos);
  CHECK(scale({cubin_for(80), cubin_for(80)}).error().sentence() ==
        "Kernel 'scale' has two Cubin sources for sm_80.");
}

TEST_CASE("of PTX for several architectures a device gets the newest that it takes", "[kernel]") {
  const auto kernel = scale({ptx_for("sm_80"), ptx_for("sm_75"), ptx_for("sm_90")});
  if (!kernel) FAIL(kernel.error().describe());
  const auto gets = [&](const char* architecture) {
    const auto built = base::program_of(*kernel)->build(*cuda_device(architecture));
    if (!built) return built.error().sentence();
    const std::string text(reinterpret_cast<const char*>(built->code.data()), built->code.size());
    return text.substr(text.find("sm_"), 5);
  };
  CHECK(gets("sm_75") == "sm_75");
  CHECK(gets("sm_86") == "sm_80");
  CHECK(gets("sm_90") == "sm_90");
  CHECK(gets("sm_120") == "sm_90");
  CHECK(gets("sm_70").find("its Ptx is for sm_75, but the device is sm_70") != std::string::npos);
  CHECK(scale({ptx_for("sm_80"), ptx_for("sm_80")}).error().sentence() ==
        "Kernel 'scale' has two Ptx sources for sm_80.");
}

TEST_CASE("a device gets the newest PTX that its driver takes, and code() says which", "[kernel]") {
  const auto kernel = scale({ptx_for("sm_75", "8.2"), ptx_for("sm_80", "8.7"), cubin_for(90)});
  if (!kernel) FAIL(kernel.error().describe());
  const auto code = [&](const char* architecture, std::uint64_t driver) {
    return base::program_of(*kernel)->code(*cuda_device(architecture, driver));
  };
  CHECK(code("sm_80", 12020) == KernelCode{"scale", "Ptx", "ptx", "compute_75"});
  CHECK(code("sm_80", 12070) == KernelCode{"scale", "Ptx", "ptx", "compute_75"});
  CHECK(code("sm_80", 12080) == KernelCode{"scale", "Ptx", "ptx", "compute_80"});
  CHECK(code("sm_80", 0) == KernelCode{"scale", "Ptx", "ptx", "compute_80"});
  CHECK(code("sm_90", 12020) == KernelCode{"scale", "Cubin", "cubin", "sm_90"});
  CHECK(code("sm_70", 12020) == KernelCode{"scale", "", "", ""});
  CHECK(
      refusal(*scale({ptx_for("sm_80", "8.7")}), cuda_device("sm_80", 12040)) ==
      "Kernel 'scale' has no source for 'cuda:0' (has Ptx; needs native, Cubin, CudaCpp, Slang or Ptx): its "
      "Ptx for sm_80 needs a driver for CUDA 12.8, but this one is for CUDA 12.4.");
}

TEST_CASE("each version of PTX has the oldest driver that takes it", "[kernel]") {
  CHECK(kernel::oldest_driver(82) == 12020);
  CHECK(kernel::oldest_driver(85) == 12050);
  CHECK(kernel::oldest_driver(86) == 12070);
  CHECK(kernel::oldest_driver(88) == 12090);
  CHECK(kernel::oldest_driver(90) == 13000);
  CHECK(kernel::oldest_driver(78) == 0);  // older than every driver that wye opens
  CHECK(kernel::oldest_driver(0) == 0);
  CHECK(kernel::oldest_driver(100) == 0);
  for (const char* version : {"", "x", "8", "8.", ".2", "8.22", "999999999999999999999.1", "-8.2"})
    if (const auto read = kernel::reflect_ptx(
            replaced(test::scale_ptx, ".version 9.0", std::string(".version ") + version), "scale"))
      CHECK(kernel::oldest_driver(read->version) == 0);
}

TEST_CASE("a refusal lists the device's languages, the kernel's sources, and the reason for each",
          "[kernel]") {
  const auto nothing = host([](Range, std::span<float>, float) {});
  CHECK(refusal(*scale({Glsl{.text = "x"}, nothing}), cuda_device("sm_90")) ==
        "Kernel 'scale' has no source for 'cuda:0' (has Glsl, host; needs native, Cubin, CudaCpp, Slang or "
        "Ptx).");
  CHECK(refusal(*scale({Ptx{.text = test::scale_ptx}}), cuda_device("sm_75")) ==
        "Kernel 'scale' has no source for 'cuda:0' (has Ptx; needs native, Cubin, CudaCpp, Slang or Ptx): "
        "its Ptx "
        "is for "
        "sm_80, but the device is sm_75.");
}

TEST_CASE("PTX and cubins that disagree with the parameters are refused when the kernel is made",
          "[kernel]") {
  const auto refused = [](Ptx source) { return scale({std::move(source)}).error(); };
  const std::string text = test::scale_ptx;
  const Error error = refused({.text = replaced(text, ".param .f32", ".param .u32")});
  CHECK(error.sentence() ==
        "Parameter 2 's' of kernel 'scale' is declared as float32, but parameter 2 (offset 16) of its source "
        "is "
        "uint32.");
  CHECK(error.context()[0] == "in the Ptx source of kernel 'scale'");
  CHECK(refused({.text = replaced(text, ".param .f32", ".param .f64")}).sentence().find("is float64") !=
        std::string::npos);
  CHECK(refused({.text = text, .entry = "many"}).code() == Errc::invalid_argument);
  CHECK(refused({.text = text, .entry = "none"}).sentence().find("no parameter for it") != std::string::npos);
  CHECK(refused({.text = text, .workgroup = Extent3(512)}).sentence() ==
        "The workgroup of kernel 'scale' (512 x 1 x 1) exceeds the limit of its code (256 threads).");
  CHECK(refused({.text = text, .workgroup = Extent3(0)}).code() == Errc::invalid_argument);
  CHECK(refused({.text = text, .workgroup = Extent3(64, 32)}).code() == Errc::invalid_argument);
  CHECK(refused({.text = " \n"}).sentence() == "The Ptx source of kernel 'scale' is empty.");
  CHECK(refused({.text = std::string("a\0b", 3)}).sentence() ==
        "The Ptx source of kernel 'scale' has a zero byte.");
  CubinMaker maker;
  maker.required_threads = 64;
  CHECK(scale({Cubin{.bytes = maker.make(), .workgroup = Extent3(32)}}).error().sentence() ==
        "The workgroup of kernel 'scale' (32 x 1 x 1) is not the workgroup that its code requires (64 x 1 x "
        "1).");
  CHECK(scale({Cubin{}}).error().sentence() == "The Cubin source of kernel 'scale' is empty.");
  maker.parameters = {{0, 8}, {8, 8}};
  CHECK(scale({Cubin{.bytes = maker.make()}}).error().sentence() ==
        "Parameter 2 's' of kernel 'scale' is declared as float32, but parameter 2 (offset 8) of its source "
        "has 8 "
        "bytes.");
}

TEST_CASE("the keys of PTX and cubins are of their content and how they are launched", "[kernel]") {
  const auto key = [](ScaleKernel::Source source) {
    return base::program_of(*scale({std::move(source)}))->key(*cuda_device("sm_90")).value().hex();
  };
  const std::string text = test::scale_ptx;
  std::set<std::string> keys{key(Ptx{.text = text}),
                             key(Ptx{.text = text + "\n"}),
                             key(Ptx{.text = text, .workgroup = Extent3(64)}),
                             key(Ptx{.text = text, .tile = Extent3(64)}),
                             key(Ptx{.text = text, .dynamic_shared = Bytes{64}}),
                             key(cubin_for(90))};
  CHECK(keys.size() == 6);
  // The same on every machine.
  CHECK(key(cubin_for(90)) == "26e9b4996500cc22336fecbeb7663a0e03db508c12649744ac5a645fa953f762");
}

TEST_CASE("a native function gets the lane, the grid and the addresses", "[kernel]") {
  struct Seen {
    void* handle = nullptr;
    float* data = nullptr;
    std::uint64_t size = 0;
    float factor = 0;
    Extent3 grid{};
  };
  Seen seen;
  const auto enqueue =
      native("cuda", [&](const NativeLane& lane, Extent3 grid, DeviceSpan<float> x, float s) {
        seen = {lane.handle, x.data, x.size, s, grid};
      });
  const auto kernel =
      scale({enqueue, native("vulkan", [](const NativeLane&, DeviceSpan<float>, float) -> Result<void> {
               return Error(Errc::kernel_failed, "No.");
             })});
  if (!kernel) FAIL(kernel.error().describe());
  CHECK(kernel->languages() == "native");
  const auto device = cuda_device("sm_90");
  const auto built = base::program_of(*kernel)->build(*device);
  REQUIRE(built);
  CHECK(built->language == "native");
  CHECK(built->schema == kernel->schema());
  CHECK_FALSE(base::program_of(*kernel)->storable(*device));
  REQUIRE(built->native);
  int stream = 0;
  const float factor = 2.5f;
  const wye::detail::NativeArgument arguments[] = {
      {.address = 0x1000, .count = 7, .value = {}},
      {.address = 0, .count = 0, .value = std::as_bytes(std::span(&factor, 1))}};
  REQUIRE(built->native->enqueue({.backend = "cuda", .device = "cuda:0", .handle = &stream}, Extent3(7),
                                 arguments));
  CHECK(seen.handle == &stream);
  CHECK(reinterpret_cast<std::uintptr_t>(seen.data) == 0x1000);
  CHECK(seen.size == 7);
  CHECK(seen.factor == 2.5f);
  CHECK(seen.grid == Extent3(7));

  test::DoubleDevice vulkan("vulkan:0", {"spirv", "native"});
  const auto other = base::program_of(*kernel)->build(vulkan);
  REQUIRE(other);
  CHECK(other->key != built->key);
  CHECK(other->native->enqueue({}, Extent3(1), arguments).error() == Errc::kernel_failed);
  test::DoubleDevice shader_only("vulkan:0", {"spirv"});
  CHECK(base::program_of(*kernel)->refusal(shader_only));
  CHECK(scale({enqueue, enqueue}).error().sentence() == "Kernel 'scale' has two native sources for 'cuda'.");
}

namespace {
int asked = 0;
std::optional<Error> answer;
Result<void> probe(const NativeLane& lane) {
  ++asked;
  CHECK(lane.backend == "cuda");
  CHECK(lane.device == "cuda:0");
  if (answer && *answer == Errc::internal) throw std::runtime_error("no more ink");
  if (answer) return *answer;
  return {};
}
}  // namespace

TEST_CASE("a native function whose probe refuses is skipped, and the device takes the next source",
          "[kernel]") {
  const auto by_hand = [](const NativeLane&, DeviceSpan<float>, float) {};
  const auto both = scale({native("cuda", by_hand, probe), cubin_for(90)});
  const auto another = scale({native("cuda", by_hand, probe)});
  REQUIRE(both);
  REQUIRE(another);
  asked = 0;
  answer.reset();
  const auto good = cuda_device("sm_90");
  CHECK_FALSE(base::program_of(*both)->refusal(*good));
  CHECK(asked == 0);  // that may take long, and the kernel is not needed yet
  CHECK(base::program_of(*both)->build(*good)->language == "native");
  CHECK(base::program_of(*another)->build(*good)->language == "native");
  CHECK(asked == 1);
  CHECK_FALSE(base::program_of(*both)->passed_over(*good));
  CHECK(base::program_of(*both)->is_native(*good));

  answer = Error(Errc::unavailable, "The library is newer than the driver.");
  const auto bad = cuda_device("sm_90");
  CHECK_FALSE(base::program_of(*both)->passed_over(*bad));
  const auto built = base::program_of(*both)->build(*bad);
  REQUIRE(built);
  CHECK(built->language == "cubin");
  CHECK_FALSE(base::program_of(*both)->is_native(*bad));
  CHECK(base::program_of(*both)->key(*bad).value() == built->key);
  CHECK(base::program_of(*both)->storable(*bad));
  CHECK_FALSE(base::program_of(*both)->refusal(*bad));
  CHECK(asked == 2);
  REQUIRE(base::program_of(*both)->passed_over(*bad));
  CHECK(
      base::program_of(*both)->passed_over(*bad)->sentence() ==
      "The native function of kernel 'scale' is not used on 'cuda:0': The library is newer than the driver.");
  // A kernel without another source reports the probe's reason.
  REQUIRE_FALSE(base::program_of(*another)->build(*bad));
  REQUIRE(base::program_of(*another)->refusal(*bad));
  CHECK(base::program_of(*another)->refusal(*bad)->sentence().find("newer than the driver") !=
        std::string::npos);
  CHECK(asked == 2);

  answer = Error(Errc::internal, "");
  const auto throws = cuda_device("sm_90");
  CHECK(base::program_of(*both)->build(*throws)->language == "cubin");
  CHECK(base::program_of(*both)->passed_over(*throws)->sentence().find("no more ink") != std::string::npos);
  const auto lost = cuda_device("sm_90");
  lost->lose();
  CHECK(base::program_of(*both)->key(*lost));
  CHECK_FALSE(lost->known_refusal_by(probe));  // its result says nothing about the library
  answer.reset();
}

TEST_CASE("PTX and cubins are read from files", "[kernel]") {
  const TemporaryFolder folder;
  const auto bytes = CubinMaker().make();
  const std::string cubin =
      folder.put("a.cubin", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  CHECK(Cubin::from_file(cubin)->bytes == bytes);
  CHECK(Cubin::from_file(folder.put("b", "text")).error() == Errc::invalid_argument);
  CHECK(Cubin::from_file(folder / "gone").error() == Errc::not_found);
  CHECK(Ptx::from_file(folder.put("a.ptx", test::scale_ptx))->text == test::scale_ptx);
  CHECK(Ptx::from_file(folder / "gone").error() == Errc::not_found);
  const auto source = CudaCpp::from_file(folder.put("a.cu", test::scale_cu));
  CHECK(source->text == test::scale_cu);
  CHECK(source->file == folder / "a.cu");
  CHECK(source->include_directories == std::vector<std::string>{folder.path()});
  CHECK(CudaCpp::from_file(folder.put("empty.cu", "")).error() == Errc::invalid_argument);
}

TEST_CASE("CUDA C++ that cannot mean anything is refused when the kernel is made", "[kernel]") {
  const auto refused = [](CudaCpp source) { return scale({std::move(source)}).error().sentence(); };
  CHECK(refused({.text = "\n"}) == "The CudaCpp source of kernel 'scale' is empty.");
  CHECK(refused({.text = "x", .entry = "a b"}) ==
        "The entry point 'a b' of kernel 'scale' is not an identifier.");
  CHECK(refused({.text = "x", .macros = {{"scale", "2"}}}) ==
        "Macro 'scale' of kernel 'scale' has the name of its entry point.");
  CHECK(refused({.text = "x", .max_registers = 256}) ==
        "The registers of one thread of kernel 'scale' (256) exceed the limit (255).");
  CHECK(refused({.text = "x", .workgroup = Extent3(2048)}) ==
        "The workgroup of kernel 'scale' (2048 x 1 x 1) is not within 1024 x 1024 x 64 and 1024 in total.");
  CHECK(refused({.text = std::string("a\0b", 3)}) == "The CudaCpp source of kernel 'scale' has a zero byte.");
}
