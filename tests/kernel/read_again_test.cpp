/// Sources that follow their files.
#include <algorithm>
#include <filesystem>
#include <variant>

#include "kernel/program.hpp"
#include "kernel/source.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using kernel::files_of;
using kernel::KernelProgram;

namespace {

template <class Source>
Source read_anew(const Source& source) {
  return std::get<Source>(kernel::read_again(AnySource(source)).value().data()->source);
}

template <class Source>
void expect_new_text(const TemporaryFolder& folder) {
  const std::string file = folder.put("source", "before");
  Source source = Source::from_file(file).value();
  source.tile = Extent3(7);
  CHECK(kernel::is_from_file(source));
  folder.put("source", "after");
  const Source now = read_anew(source);
  CHECK(now.text == "after");
  CHECK(now.tile == Extent3(7));
  CHECK(now.path == file);
  source.path.clear();
  CHECK_FALSE(kernel::is_from_file(source));
  CHECK(read_anew(source).text == "before");
  CHECK(files_of(source).empty());
}

}  // namespace

TEST_CASE("a source from a file is read again with its options, another source is unchanged", "[kernel]") {
  const TemporaryFolder folder;
  expect_new_text<Glsl>(folder);
  expect_new_text<Slang>(folder);
  expect_new_text<CudaCpp>(folder);
  expect_new_text<Ptx>(folder);
  SpirV module{.words = {1, 2, 3},
               .path = folder.put("module.spv", std::string("\x03\x02\x23\x07", 4) + std::string(16, '\0'))};
  CHECK(read_anew(module).words.size() == 5);
}

TEST_CASE("the files of a source are its own and all candidates of its includes", "[kernel]") {
  const TemporaryFolder folder;
  const std::string a = folder.put("a.glsl", "#include \"lib/b.glsl\"\n"), far = folder / "far";
  const std::string file = folder.put("k.comp", "#version 450\n#include \"a.glsl\"\nvoid main() {}\n");
  Glsl source = Glsl::from_file(file).value();
  source.include_directories.push_back(far);
  const std::vector<std::string> files = files_of(source);
  const auto has = [&](const std::string& one) {
    return std::find(files.begin(), files.end(), one) != files.end();
  };
  CHECK(has(file));
  CHECK(has(a));
  CHECK(has(folder / "lib/b.glsl"));  // it would be found here if it existed
  CHECK(has(folder / "far/lib/b.glsl"));
  CHECK_FALSE(has(folder / "far/a.glsl"));  // it is found before that

  const std::string imports = folder.put("k.slang", "import lib.more;\n");
  const std::vector<std::string> modules = files_of(Slang::from_file(imports).value());
  CHECK(std::find(modules.begin(), modules.end(), folder / "lib/more.slang") != modules.end());
}

TEST_CASE("a replaced program stays alive, and its successor uses it", "[kernel]") {
  const TemporaryFolder folder;
  const auto text = [](const char* what) {
    return std::string("extern \"C\" __global__ void k(wye_span<float> x) { ") + what + " }";
  };
  const std::string file = folder.put("k.cu", text(""));
  Slot x;
  x.kind = SlotKind::buffer;
  x.access = Access::read_write;
  x.element = ElementType::float32;
  x.size = 4;
  const ParamSchema schema{{x}};
  const auto first = KernelProgram::make("k", schema, {CudaCpp::from_file(file).value()}).value();
  CHECK(&first->current() == first.get());
  CHECK(first->read_again().value()->digests().in_process == first->digests().in_process);
  folder.put("k.cu", text("x[0] = 1;"));
  const auto second = first->read_again().value();
  CHECK_FALSE(second->digests().in_process == first->digests().in_process);
  CHECK(second->id() != first->id());
  first->replace(second);
  CHECK(&first->current() == second.get());
  CHECK(&second->current() == second.get());
  std::filesystem::remove(file);
  CHECK(first->read_again().error() == Errc::not_found);
  CHECK_FALSE(KernelProgram::make("k", schema, {CudaCpp{.text = text("")}}).value()->is_from_files());
}
