#pragma once
/// What a source includes, read once: what is digested is what is compiled.
#include <wye/base/bytes.hpp>
#include <wye/kernel/source.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wye {
inline namespace v0 {
namespace kernel {

/// What a source may have, with all it includes. The compiler takes some ten seconds for so much.
inline constexpr Bytes most_source{4 << 20};
/// What a file of SPIR-V may have.
inline constexpr Bytes most_module{64 << 20};
/// Includes that one compile follows, and how deep in each other.
inline constexpr std::size_t most_inclusions = 10'000;
inline constexpr std::size_t most_depth = 64;

/// One `#include` or `import` of a text.
struct IncludeUse {
  std::string name;      ///< as it is written; of an `import`, the file it means
  bool angled = false;   ///< <x>, not "x"
  std::size_t text = 0;  ///< the one that is meant, by its place among the texts; 0: there is none
  std::string why = {};  ///< there is none
};

/// A source, or something that is included.
struct SourceText {
  std::string shown;      ///< its name in messages
  std::string name = {};  ///< what it is included as, from where it was found
  std::string path = {};  ///< of the file it is from; empty where it is from none
  std::string text = {};  ///< of the source itself, the first of all, empty: it has that
  std::size_t place = 0;  ///< where it was found: an index of that
  std::vector<IncludeUse> uses = {};
};

/// A text, and where what it includes is looked for. Borrows all of it.
struct IncludePlaces {
  template <class Source>
  explicit IncludePlaces(const Source& source, bool has_imports = false)
      : text(source.text),
        includes(source.includes),
        directories(source.include_directories),
        find_include(source.find_include),
        imports(has_imports) {}
  std::string_view text;
  const std::vector<Include>& includes;
  const std::vector<std::string>& directories;
  const IncludeFinder& find_include;
  bool imports;  ///< it can import modules too, as Slang can
};

/// Whether the names of `includes` can be told apart.
/// Errors: invalid_argument.
Result<void> check_includes(const std::vector<Include>& includes, const std::string& kernel);

/// The source, shown as `shown`, and every text that it, or what it includes, names in an `#include`, each
/// once. These are at least those that the compiler can ask for: whether it comes to an `#include` that a
/// condition or a comment excludes is not looked at, and so nothing that cannot be read is an error here.
/// `looked` gets every file that was looked for.
std::vector<SourceText> read_includes(const IncludePlaces& places, const std::string& shown,
                                      std::vector<std::string>* looked = nullptr);
inline std::vector<SourceText> read_includes(const Glsl& source, const std::string& shown) {
  return read_includes(IncludePlaces(source), shown);
}

/// The same, and what is named in an `import` or `__include`. A name with underscores means two files,
/// "a_b.slang" and "a-b.slang", as it does to the compiler.
inline std::vector<SourceText> read_imports(const Slang& source, const std::string& shown) {
  return read_includes(IncludePlaces(source, true), shown);
}

/// "lib/../a.glsl" as "a.glsl".
std::string normal_path(std::string_view name);

/// `text` with other words in its `#include`s, for a compiler that looks for files by itself: `name` gives what
/// takes the place of a name with its quotes, or, after "error ", of the whole directive. It is asked with
/// null for an `#include` of something that is no name. Lines stay where they are.
std::string with_includes(std::string_view text, const std::vector<IncludeUse>& uses,
                          const std::function<std::string(const IncludeUse*)>& name);

/// Reads a file of text; nothing where there is none. A byte order mark is left out.
/// Errors: io, invalid_argument (larger than `at_most`, or not UTF-8).
Result<std::optional<std::string>> read_text(const std::string& path, Bytes at_most);

}  // namespace kernel
}  // namespace v0
}  // namespace wye
