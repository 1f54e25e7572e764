#pragma once
/// The includes of a source, read once: the digested texts are those that are compiled.
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

/// The largest source, with its includes. The compiler takes some ten seconds for it.
inline constexpr Bytes most_source{4 << 20};
/// The largest file of SPIR-V.
inline constexpr Bytes most_module{64 << 20};
/// Includes that one compile follows, and how deep in each other.
inline constexpr std::size_t most_inclusions = 10'000;
inline constexpr std::size_t most_depth = 64;

/// One `#include` or `import` of a text.
struct IncludeUse {
  std::string name;      ///< as it is written; of an `import`, the file it means
  bool angled = false;   ///< <x>, not "x"
  std::size_t text = 0;  ///< index of the included text; 0: there is none
  std::string why = {};  ///< there is none
};

/// A source, or something that is included.
struct SourceText {
  std::string shown;      ///< its name in messages
  std::string name = {};  ///< its name in the include, from the place where it was found
  std::string path = {};  ///< of the file it is from; empty if it is from none
  std::string text = {};  ///< of the source itself, the first of all, empty: it has that
  std::size_t place = 0;  ///< index of the place where it was found
  std::vector<IncludeUse> uses = {};
};

/// A text, and the places where its includes are looked for. Borrows all of it.
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

/// The same, with the files that an `import` or `__include` names. A name with underscores means two files,
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

/// Reads a file of text; nothing if there is none. A byte order mark is left out.
/// Errors: io, invalid_argument (larger than `at_most`, or not UTF-8).
Result<std::optional<std::string>> read_text(const std::string& path, Bytes at_most);

}  // namespace kernel
}  // namespace v0
}  // namespace wye
