#include "kernel/description.hpp"

#include <wye/wye.hpp>

#include <functional>
#include <set>

#include "support/catch.hpp"

using namespace wye;

namespace {

using Scale = Kernel<ReadWrite<float>, float>;

Glsl glsl() {
  return {.text = "#version 450\nvoid main() { int a = 1; }",
          .constants = {{0, 16u}},
          .macros = {{"A", "1"}},
          .includes = {{"a.glsl", "int f();"}}};
}
Slang slang() {
  return {
      .text = "[shader(\"compute\")] void main() {}", .constants = {{"tile", 16u}}, .macros = {{"A", "1"}}};
}
CudaCpp cuda() { return {.text = "extern \"C\" __global__ void scale() {}", .macros = {{"A", "1"}}}; }

KernelDescription described(AnySource source) { return {"scale", {}, {std::move(source)}}; }

/// Checks that descriptions of equal sources are equal, and that they differ after `change`.
template <class Source>
void differs(const char* what, const Source& source, const std::function<void(Source&)>& change) {
  INFO(what);
  Source other = source;
  REQUIRE(kernel::equal(described(source), described(other)));
  CHECK(kernel::sample(described(source)) == kernel::sample(described(other)));
  change(other);
  CHECK_FALSE(kernel::equal(described(source), described(other)));
  CHECK_FALSE(kernel::equal(described(other), described(source)));
}

}  // namespace

TEST_CASE("descriptions are equal if all parts are equal", "[kernel]") {
  differs<Glsl>("text", glsl(), [](Glsl& s) { s.text[s.text.size() / 2] ^= 1; });
  differs<Glsl>("longer text", glsl(), [](Glsl& s) { s.text += ' '; });
  differs<Glsl>("file", glsl(), [](Glsl& s) { s.file = "a.comp"; });
  differs<Glsl>("entry", glsl(), [](Glsl& s) { s.entry = "other"; });
  differs<Glsl>("constant", glsl(), [](Glsl& s) { s.constants[0].bits = 17; });
  differs<Glsl>("constant's id", glsl(), [](Glsl& s) { s.constants[0].id = 1; });
  differs<Glsl>("more constants", glsl(), [](Glsl& s) { s.constants.push_back({1, 2.0f}); });
  differs<Glsl>("macro", glsl(), [](Glsl& s) { s.macros[0].value = "2"; });
  differs<Glsl>("macro's name", glsl(), [](Glsl& s) { s.macros[0].name = "B"; });
  differs<Glsl>("tile", glsl(), [](Glsl& s) { s.tile = Extent3(4); });
  differs<Glsl>("include", glsl(), [](Glsl& s) { s.includes[0].text = "int g();"; });
  differs<Glsl>("directory", glsl(), [](Glsl& s) { s.include_directories = {"shaders"}; });
  differs<Glsl>("file it is from", glsl(), [](Glsl& s) { s.path = "a.comp"; });
  differs<Glsl>("callback", glsl(), [](Glsl& s) {
    s.find_include = [](const std::string&) { return std::optional<std::string>(); };
  });
  differs<Slang>("text", slang(), [](Slang& s) { s.text += ' '; });
  differs<Slang>("constant's type", slang(), [](Slang& s) { s.constants = {{"tile", 16}}; });
  differs<Slang>("module", slang(), [](Slang& s) {
    s.module.resize(s.text.size());
    std::memcpy(s.module.data(), s.text.data(), s.text.size());
  });
  differs<CudaCpp>("text", cuda(), [](CudaCpp& s) { s.text += ' '; });
  differs<CudaCpp>("workgroup", cuda(), [](CudaCpp& s) { s.workgroup = Extent3(64); });
  differs<CudaCpp>("dynamic shared memory", cuda(), [](CudaCpp& s) { s.dynamic_shared = Bytes{16}; });
  differs<CudaCpp>("registers", cuda(), [](CudaCpp& s) { s.max_registers = 32; });
  differs<CudaCpp>("fast math", cuda(), [](CudaCpp& s) { s.fast_math = true; });
  differs<CudaCpp>("standard", cuda(), [](CudaCpp& s) { s.standard = 20; });
  differs<CudaCpp>("cluster", cuda(), [](CudaCpp& s) { s.launch.cluster = Extent3(2); });
  differs<Ptx>("cooperative launch", Ptx{.text = ".version 8.2"},
               [](Ptx& s) { s.launch.cooperative = true; });
  differs<Cubin>("carve-out", Cubin{.bytes = {std::byte{1}}},
                 [](Cubin& s) { s.launch.shared_carveout = 50; });
  differs<Ptx>("entry", Ptx{.text = ".version 8.2"}, [](Ptx& s) { s.entry = "scale"; });
  differs<Cubin>("bytes", Cubin{.bytes = {std::byte{1}}}, [](Cubin& s) { s.bytes[0] = std::byte{2}; });
  differs<SpirV>("words", SpirV{.words = {1, 2, 3}}, [](SpirV& s) { s.words[1] = 4; });
}

TEST_CASE("descriptions differ by name, schema, language, number of sources, adapters and features",
          "[kernel]") {
  const KernelDescription one = described(glsl());
  KernelDescription other = one;
  CHECK(kernel::equal(one, other));
  other.name = "other";
  CHECK_FALSE(kernel::equal(one, other));
  other = one;
  other.schema = Scale::describe({.name = "scale", .sources = {glsl()}}).schema;
  CHECK_FALSE(kernel::equal(one, other));
  other = one;
  other.sources.push_back(cuda());
  CHECK_FALSE(kernel::equal(one, other));
  other = one;
  other.adapters = {AdapterType::discrete};
  CHECK_FALSE(kernel::equal(one, other));
  other = one;
  other.features = {Feature::subgroups};
  CHECK_FALSE(kernel::equal(one, other));
  CHECK_FALSE(kernel::equal(described(Glsl{.text = "same"}), described(CudaCpp{.text = "same"})));
  CHECK(kernel::equal({}, {}));
}

TEST_CASE("functions are equal if their sources are copies", "[kernel]") {
  const auto describe = [] {
    return Scale::describe({.name = "scale", .sources = {host([](Range, std::span<float>, float) {})}});
  };
  const KernelDescription one = describe();
  const KernelDescription copy = one;
  CHECK(kernel::equal(one, copy));
  CHECK_FALSE(kernel::equal(one, describe()));
}

TEST_CASE("a description with external sources is not complete", "[kernel]") {
  const auto complete = [](AnySource source) { return kernel::is_complete(described(std::move(source))); };
  CHECK(complete(glsl()));
  CHECK(complete(cuda()));
  CHECK(complete(SpirV{.words = {1}}));
  Glsl source = glsl();
  source.include_directories = {"shaders"};
  CHECK_FALSE(complete(source));
  source = glsl();
  source.find_include = [](const std::string&) { return std::optional<std::string>(); };
  CHECK_FALSE(complete(source));
  source = glsl();
  source.path = "a.comp";
  CHECK_FALSE(complete(source));
  CHECK_FALSE(complete(Ptx{.text = "x", .path = "a.ptx"}));
}

TEST_CASE("samples of generated texts are mostly apart", "[kernel]") {
  std::set<std::uint64_t> samples;
  for (int i = 0; i < 1000; ++i)
    samples.insert(kernel::sample(
        described(Glsl{.text = "#version 450\n#define N " + std::to_string(i) + std::string(4000, 'x')})));
  CHECK(samples.size() == 1000);
  for (std::size_t size = 0; size < 40; ++size)
    CHECK(kernel::sample(described(Glsl{.text = std::string(size, 'a')})) !=
          kernel::sample(described(Glsl{.text = std::string(size + 1, 'a')})));
}

TEST_CASE("the size of a description is that of its texts, modules and includes", "[kernel]") {
  KernelDescription description = described(Glsl{.text = "12345", .includes = {{"a", "123"}}});
  description.sources.push_back(SpirV{.words = {1, 2}});
  CHECK(kernel::size_of(description) == Bytes{5 + 3 + 8});
}
