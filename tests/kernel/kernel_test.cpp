#include <wye/kernel/kernel.hpp>

#include <set>
#include <thread>
#include <vector>

#include "base/internals.hpp"
#include "device/provider.hpp"
#include "kernel/program.hpp"
#include "shaders.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"
#include "support/skip.hpp"

using namespace wye;
using test::DoubleDevice;

namespace {

const auto nothing = host([](Range, std::span<float>, float) {});

struct Particle {
  float position[3];
  float mass;
};

AnySource glsl(std::string text) { return AnySource(Glsl{.text = std::move(text)}); }

Error refused(std::string name, ParamSchema schema, std::vector<AnySource> sources) {
  auto made = AnyKernel::make(std::move(name), std::move(schema), std::move(sources));
  REQUIRE_FALSE(made);
  return made.error();
}

}  // namespace

TEST_CASE("a C++ parameter list is the schema", "[kernel]") {
  const auto kernel =
      Kernel<Read<double>, Write<int>, ReadWrite<Particle>, float, Particle, std::uint64_t>::make(
          {.name = "k",
           .sources = {host([](Range, std::span<const double>, std::span<int>, std::span<Particle>, float,
                               Particle, std::uint64_t) {})},
           .parameters = {"x", "y", "p"}});
  REQUIRE(kernel);
  const auto& slots = kernel->schema().slots;
  REQUIRE(slots.size() == 6);
  CHECK(slots[0] == Slot{"x", SlotKind::buffer, Access::read, ElementType::float64, 8});
  CHECK(slots[1] == Slot{"y", SlotKind::buffer, Access::write, ElementType::int32, 4});
  const std::vector<SlotMember> particle = {{ElementType::float32, 0, 4},
                                            {ElementType::float32, 4, 4},
                                            {ElementType::float32, 8, 4},
                                            {ElementType::float32, 12, 4}};
  CHECK(slots[2] == Slot{"p", SlotKind::buffer, Access::read_write, ElementType::opaque, 16, particle});
  CHECK(slots[3] == Slot{"", SlotKind::scalar, Access::read, ElementType::float32, 4});
  CHECK(slots[4] == Slot{"", SlotKind::structure, Access::read, ElementType::opaque, 16, particle});
  CHECK(slots[5] == Slot{"", SlotKind::scalar, Access::read, ElementType::uint64, 8});
}

TEST_CASE("a kernel has a name and languages", "[kernel]") {
  const auto kernel = Kernel<ReadWrite<float>, float>::make(
      {.name = "scale", .sources = {Glsl{.text = test::scale_glsl}, nothing}});
  REQUIRE(kernel);
  CHECK(kernel->name() == "scale");
  CHECK(kernel->languages() == "Glsl, host");
}

TEST_CASE("a kernel needs a name and sources that are not empty, one per language", "[kernel]") {
  const ParamSchema x{{Slot{"x", SlotKind::buffer, Access::read, ElementType::float32, 4}}};
  CHECK(refused("", x, {glsl("x")}).code() == Errc::invalid_argument);
  CHECK(refused("k", x, {}).sentence() == "Kernel 'k' has no source.");
  CHECK(refused("k", x, {glsl(" \n\t")}).sentence() == "The Glsl source of kernel 'k' is empty.");
  CHECK(refused("k", x, {AnySource(SpirV{})}).sentence() == "The SpirV source of kernel 'k' is empty.");
  CHECK(refused("k", x, {AnySource(std::shared_ptr<const device::HostCode>(), HostOptions{})}).sentence() ==
        "The host function of kernel 'k' is null.");
  CHECK(refused("k", x, {glsl("a"), glsl("b")}).sentence() == "Kernel 'k' has two Glsl sources.");
}

TEST_CASE("parameters that cannot mean anything are refused by number and name", "[kernel]") {
  const std::vector<AnySource> source{glsl("x")};
  const auto slot = [](SlotKind kind, Access access, ElementType element, std::uint32_t size) {
    return ParamSchema{{Slot{"a", SlotKind::scalar, Access::read, ElementType::float32, 4},
                        Slot{"b", kind, access, element, size}}};
  };
  CHECK(refused("k", slot(SlotKind::buffer, Access::none, ElementType::float32, 4), source).sentence() ==
        "Parameter 2 'b' of kernel 'k' is neither read nor written.");
  CHECK(refused("k", slot(SlotKind::buffer, Access::read, ElementType::opaque, 0), source).sentence() ==
        "Parameter 2 'b' of kernel 'k' has no size.");
  CHECK(refused("k", slot(SlotKind::scalar, Access::read, ElementType::opaque, 4), source).sentence() ==
        "Parameter 2 'b' of kernel 'k' is a scalar without a type.");
  CHECK(refused("k", slot(SlotKind::buffer, Access::read, ElementType::float64, 4), source).sentence() ==
        "Parameter 2 'b' of kernel 'k' has 4 bytes, but is declared as float64.");
}

TEST_CASE("macros, constants and entry points are looked at when the kernel is made", "[kernel]") {
  const auto with = [](Glsl source) { return refused("k", {}, {AnySource(std::move(source))}).sentence(); };
  CHECK(with({.text = "x", .macros = {{"1N", "2"}}}) ==
        "Macro '1N' of kernel 'k' is not an identifier, with or without parameters.");
  CHECK(with({.text = "x", .macros = {{"f(a,)", "2"}}}) ==
        "Macro 'f(a,)' of kernel 'k' is not an identifier, with or without parameters.");
  CHECK(with({.text = "x", .macros = {{"f(a)", "2"}, {"f", "3"}}}) == "Kernel 'k' defines macro 'f' twice.");
  CHECK(with({.text = "x", .macros = {{"N", "2"}, {"M", ""}, {"N", "3"}}}) ==
        "Kernel 'k' defines macro 'N' twice.");
  CHECK(with({.text = "x", .macros = {{"N", "2\n#define M"}}}) ==
        "The value of macro 'N' of kernel 'k' has more than one line.");
  CHECK(with({.text = "x", .includes = {{"a", ""}, {"b", ""}, {"./c/../a", ""}}}) ==
        "Kernel 'k' has include './c/../a' twice.");
  CHECK(with({.text = "x", .includes = {{"./", ""}}}) == "Include './' of kernel 'k' has no name.");
  CHECK(with({.text = "x", .entry = "go", .macros = {{"go", "2"}}}) ==
        "Macro 'go' of kernel 'k' has the name of its entry point.");
  CHECK(with({.text = "x", .entry = "a b"}) == "The entry point 'a b' of kernel 'k' is not an identifier.");
  CHECK(with({.text = "x", .entry = ""}) == "The entry point '' of kernel 'k' is not an identifier.");
  CHECK(with({.text = "x", .constants = {{3, 1u}, {4, 2.0}, {3, 5u}}}) ==
        "Kernel 'k' sets specialization constant 3 twice.");
}

TEST_CASE("programs have different ids, copies of a kernel the same", "[kernel]") {
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 100; ++i) {
    const auto kernel = Kernel<ReadWrite<float>, float>::make({.name = "k", .sources = {nothing}});
    const auto copy = *kernel;
    CHECK(base::program_of(copy)->id() == base::program_of(*kernel)->id());
    ids.insert(base::program_of(*kernel)->id());
  }
  CHECK(ids.size() == 100);
}

TEST_CASE("a device without a source is refused with the sources and the device's languages", "[kernel]") {
  const auto host_only = Kernel<ReadWrite<float>, float>::make({.name = "scale", .sources = {nothing}});
  DoubleDevice gpu("vulkan:0", {"spirv"});
  const auto refusal = base::program_of(*host_only)->refusal(gpu);
  REQUIRE(refusal);
  CHECK(refusal->code() == Errc::unsupported);
  CHECK(refusal->sentence() ==
        "Kernel 'scale' has no source for 'vulkan:0' (has host; needs SpirV, Glsl or Slang).");
  CHECK(base::program_of(*host_only)->key(gpu).error() == Errc::unsupported);
  CHECK(base::program_of(*host_only)->build(gpu).error() == Errc::unsupported);
  CHECK_FALSE(base::program_of(*host_only)->storable(gpu));

  const auto glsl_only =
      Kernel<ReadWrite<float>, float>::make({.name = "scale", .sources = {Glsl{.text = test::scale_glsl}}});
  DoubleDevice cpu("cpu:0", {"host"});
  CHECK(base::program_of(*glsl_only)->refusal(cpu)->sentence() ==
        "Kernel 'scale' has no source for 'cpu:0' (has Glsl; needs host).");
  DoubleDevice other("cuda:0", {"cubin", "ptx"});
  CHECK(base::program_of(*glsl_only)->refusal(other)->sentence() ==
        "Kernel 'scale' has no source for 'cuda:0' (has Glsl; needs Cubin, CudaCpp, Slang or Ptx).");
}

TEST_CASE("without a GLSL compiler, a kernel with only GLSL reports that", "[kernel]") {
  if (kernel::GlslCompiler::share()) return test::skip("there is a compiler of GLSL");
  const auto kernel = Kernel<ReadWrite<float>, float>::make(
      {.name = "scale", .sources = {Glsl{.text = test::scale_glsl}, nothing}});
  DoubleDevice gpu("vulkan:0", {"spirv"}), cpu("cpu:0", {"host"});
  CHECK(base::program_of(*kernel)->refusal(gpu)->sentence() ==
        "Kernel 'scale' has no source for 'vulkan:0' (has Glsl, host; needs SpirV, Glsl or Slang): this "
        "build of "
        "wye has no GLSL compiler.");
  CHECK_FALSE(base::program_of(*kernel)->refusal(cpu));
}

TEST_CASE("a device gets the source of the language it prefers", "[kernel]") {
  const auto kernel = Kernel<ReadWrite<float>, float>::make(
      {.name = "scale", .sources = {Glsl{.text = test::scale_glsl}, nothing}});
  DoubleDevice host_first("null:0", {"host", "spirv"});
  CHECK(base::program_of(*kernel)->build(host_first)->language == "host");
#if WYE_WITH_GLSL
  DoubleDevice spirv_first("null:1", {"spirv", "host"});
  CHECK(base::program_of(*kernel)->build(spirv_first)->language == "spirv");
#endif
}

TEST_CASE("the artefact of a host function runs it", "[kernel]") {
  const auto kernel =
      Kernel<ReadWrite<float>, float>::make({.name = "scale",
                                             .sources = {host(
                                                 [](Range range, std::span<float> x, float s) {
                                                   for (auto i : range) x[i] *= s;
                                                 },
                                                 {.tile = Extent3(0, 16)})},
                                             .parameters = {"x", "s"}});
  DoubleDevice cpu("cpu:0", {"host"});
  const auto artefact = base::program_of(*kernel)->build(cpu);
  REQUIRE(artefact);
  CHECK(artefact->kernel == "scale");
  CHECK(artefact->language == "host");
  CHECK(artefact->code.empty());
  CHECK(artefact->schema == kernel->schema());
  CHECK(artefact->passing == std::vector<device::Passing>(2));
  CHECK(artefact->parameter_bytes == 0);
  CHECK(artefact->workgroup == Extent3(1));
  CHECK(artefact->tile == Extent3(0, 16));
  CHECK(artefact->key == base::program_of(*kernel)->key(cpu).value());
  CHECK_FALSE(base::program_of(*kernel)->storable(cpu));

  std::vector<float> x{1, 2, 3, 4};
  Arguments arguments;
  arguments.push_back(Operand::host_span(std::span(x), Access::read_write));
  arguments.push_back(Operand::of_value(3.0f));
  const std::vector<Operand> operands{arguments[0], arguments[1]};
  artefact->host->run(Range{1, 3, Extent3(4)}, operands, StopToken());
  CHECK(x == std::vector<float>{1, 6, 9, 4});
}

TEST_CASE("a host function may take a StopToken last", "[kernel]") {
  bool asked = false;
  const auto kernel = Kernel<ReadWrite<float>>::make(
      {.name = "k",
       .sources = {host([&](Range, std::span<float>, StopToken stop) { asked = stop.stop_requested(); })}});
  DoubleDevice cpu("cpu:0", {"host"});
  std::vector<float> x(1);
  const std::vector<Operand> operands{Operand::host_span(std::span(x), Access::read_write)};
  const std::atomic<bool> flag{true};
  base::program_of(*kernel)->build(cpu)->host->run(Range{0, 1}, operands, StopToken(&flag));
  CHECK(asked);
}

#if WYE_WITH_GLSL

TEST_CASE("the kernel of programs.md 02 becomes SPIR-V that agrees with its parameters", "[kernel]") {
  const auto kernel = Kernel<ReadWrite<float>, float>::make(
      {.name = "scale",
       .sources = {Glsl{.text = test::scale_glsl}, host([](Range range, std::span<float> x, float s) {
                     for (auto i : range) x[i] *= s;
                   })}});
  REQUIRE(kernel);
  DoubleDevice gpu("vulkan:0", {"spirv"});
  CHECK_FALSE(base::program_of(*kernel)->refusal(gpu));
  CHECK(base::program_of(*kernel)->storable(gpu));
  const auto artefact = base::program_of(*kernel)->build(gpu);
  REQUIRE(artefact);
  CHECK(artefact->kernel == "scale");
  CHECK(artefact->language == "spirv");
  CHECK(artefact->entry == "main");
  CHECK(artefact->code.size() > 100);
  CHECK(to_string(artefact->schema) == "(buffer read_write float32 x, scalar float32 s)");
  using Kind = device::Passing::Kind;
  CHECK(artefact->passing == std::vector<device::Passing>{{Kind::descriptor, 0, 0}, {Kind::bytes, 0, 0}});
  CHECK(artefact->parameter_bytes == 4);
  CHECK(artefact->workgroup == Extent3(256));
  CHECK(artefact->tile == Extent3(256));
  CHECK(artefact->needs.empty());
  CHECK(artefact->key == base::program_of(*kernel)->key(gpu).value());
}

TEST_CASE("addresses in the push constants serve buffers as spans", "[kernel]") {
  const auto kernel = Kernel<ReadWrite<float>, float>::make(
      {.name = "scale", .sources = {Glsl{.text = test::scale_span_glsl}}});
  DoubleDevice gpu("vulkan:0", {"spirv"});
  const auto artefact = base::program_of(*kernel)->build(gpu);
  REQUIRE(artefact);
  using Kind = device::Passing::Kind;
  CHECK(artefact->passing == std::vector<device::Passing>{{Kind::span, 0, 0}, {Kind::bytes, 0, 16}});
  CHECK(artefact->parameter_bytes == 20);
  CHECK(artefact->schema.slots[0].name == "x");
}

TEST_CASE("SPIR-V is read when the kernel is made, and gives the parameters their names", "[kernel]") {
  const auto kernel = Kernel<ReadWrite<float>, float>::make(
      {.name = "scale",
       .sources = {nothing, SpirV{.words = test::compile(test::scale_glsl), .tile = Extent3(1024)}}});
  REQUIRE(kernel);
  CHECK(kernel->schema().slots[0].name == "x");
  CHECK(kernel->schema().slots[1].name == "s");
  DoubleDevice gpu("vulkan:0", {"spirv"}), cpu("cpu:0", {"host"});
  CHECK(base::program_of(*kernel)->storable(gpu));
  CHECK(base::program_of(*kernel)->build(gpu)->tile == Extent3(1024));
  CHECK(base::program_of(*kernel)->build(cpu)->schema.slots[0].name == "x");
}

TEST_CASE("SPIR-V is preferred to GLSL: it needs no compiler", "[kernel]") {
  const auto words = test::compile(test::scale_glsl);
  const auto both = Kernel<ReadWrite<float>, float>::make(
      {.name = "scale",
       .sources = {Glsl{.text = "#version 450\nthis does not compile"}, SpirV{.words = words}}});
  DoubleDevice gpu("vulkan:0", {"spirv"});
  CHECK(base::program_of(*both)->build(gpu).has_value());
}

TEST_CASE("invalid or contradicting SPIR-V is refused when the kernel is created", "[kernel]") {
  auto words = test::compile(test::scale_glsl);
  auto wrong = Kernel<ReadWrite<double>, float>::make({.name = "scale", .sources = {SpirV{.words = words}}});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code() == Errc::invalid_argument);
  CHECK(wrong.error().sentence() ==
        "Parameter 1 'x' of kernel 'scale' is declared as read_write buffer of float64, but binding 0 ('x') "
        "of its "
        "source has elements of float32, 4 bytes apart.");
  CHECK(wrong.error().context()[0] == "in the SpirV source of kernel 'scale'");

  words.resize(words.size() / 2);
  auto half = Kernel<ReadWrite<float>, float>::make({.name = "scale", .sources = {SpirV{.words = words}}});
  REQUIRE_FALSE(half);
  CHECK(half.error().code() == Errc::invalid_argument);

  auto text = Kernel<ReadWrite<float>, float>::make(
      {.name = "scale", .sources = {SpirV{.words = {1, 2, 3, 4, 5, 6}}}});
  REQUIRE_FALSE(text);
  CHECK(text.error().code() == Errc::invalid_argument);
}

TEST_CASE("a feature the device lacks is a refusal that names both", "[kernel]") {
  const auto words = test::compile(R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer X { double x[]; };
void main() { x[gl_GlobalInvocationID.x] *= 2.0lf; })");
  const auto kernel = Kernel<ReadWrite<double>>::make({.name = "twice", .sources = {SpirV{.words = words}}});
  REQUIRE(kernel);
  DoubleDevice poor("vulkan:0", {"spirv"}), rich("vulkan:1", {"spirv"}, {Feature::float64});
  CHECK(base::program_of(*kernel)->refusal(poor)->sentence() ==
        "Kernel 'twice' needs float64, which 'vulkan:0' does not have.");
  CHECK_FALSE(base::program_of(*kernel)->refusal(rich));
  CHECK(base::program_of(*kernel)->build(rich)->needs == Features{Feature::float64});
}

TEST_CASE("errors in GLSL are reported with file and line", "[kernel]") {
  const auto build = [](std::string file) {
    const auto kernel = Kernel<ReadWrite<float>>::make(
        {.name = "scale",
         .sources = {Glsl{.text = "#version 450\nvoid main() { foo = 1;\n  float y = bar(3);\n}\n",
                          .file = std::move(file)}}});
    DoubleDevice gpu("vulkan:0", {"spirv"});
    return base::program_of(*kernel)->build(gpu);
  };
  auto named = build("shaders/mine.glsl");
  REQUIRE_FALSE(named);
  CHECK(named.error().code() == Errc::compile_failed);
  CHECK(named.error().sentence() ==
        "Kernel 'scale' does not compile: shaders/mine.glsl:2:15: 'foo' : undeclared identifier.");
  REQUIRE(named.error().context().size() == 1);
  CHECK(named.error().context()[0] ==
        "shaders/mine.glsl:3:13: 'bar' : no matching overloaded function found");
  CHECK(build("").error().sentence() ==
        "Kernel 'scale' does not compile: scale.comp:2:15: 'foo' : undeclared identifier.");
}

TEST_CASE("GLSL that disagrees with the parameters is refused when it is built", "[kernel]") {
  const auto kernel =
      Kernel<ReadWrite<float>, int>::make({.name = "scale", .sources = {Glsl{.text = test::scale_glsl}}});
  DoubleDevice gpu("vulkan:0", {"spirv"});
  auto built = base::program_of(*kernel)->build(gpu);
  REQUIRE_FALSE(built);
  CHECK(built.error().code() == Errc::invalid_argument);
  CHECK(built.error().sentence() ==
        "Parameter 2 's' of kernel 'scale' is declared as int32, but push constant 's' (offset 0) of its "
        "source is "
        "float32.");
  CHECK(built.error().context()[0] == "in the Glsl source of kernel 'scale'");
}

TEST_CASE("one kernel compiles on many threads at once", "[kernel]") {
  const auto kernel =
      Kernel<ReadWrite<float>, float>::make({.name = "scale", .sources = {Glsl{.text = test::scale_glsl}}});
  DoubleDevice gpu("vulkan:0", {"spirv"});
  const auto one = base::program_of(*kernel)->build(gpu);
  std::vector<std::vector<std::byte>> codes(8);
  std::vector<std::thread> threads;
  for (auto& code : codes)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        auto built = base::program_of(*kernel)->build(gpu);
        if (built) code = built->code;
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& code : codes) CHECK(code == one->code);
}

#endif
