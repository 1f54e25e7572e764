#pragma once
/// Reads the includes of a source once: the texts in the key are the texts that are compiled.
#include <wye/base/bytes.hpp>
#include <wye/kernel/source.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wye::inline v0::kernel {

/// The largest size of a source with its includes. The compiler needs about ten seconds for it.
inline constexpr Bytes most_source{4 << 20};
/// The largest size of a SPIR-V file.
inline constexpr Bytes most_module{64 << 20};
/// The most includes that one compile follows, and their deepest nesting.
inline constexpr std::size_t most_inclusions = 10'000;
inline constexpr std::size_t most_depth = 64;

/// One `#include` or `import` of a text.
struct IncludeUse {
  std::string name;      ///< as written; for an `import`, the name of its file
  bool angled = false;   ///< <x>, not "x"
  std::size_t text = 0;  ///< index of the included text; 0 if there is none
  std::string why = {};  ///< why there is none
};

/// The text of a source or of an include.
struct SourceText {
  std::string shown;      ///< its name in messages
  std::string name = {};  ///< its name relative to its place
  std::string path = {};  ///< its file; empty if it is not from a file
  std::string text = {};  ///< empty for the source itself, which is the first
  std::size_t place = 0;  ///< index of the place that has it
  std::vector<IncludeUse> uses = {};
};

/// A text, and the places to search for its includes. Borrows both.
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
  bool imports;  ///< whether it may import modules, as Slang does
};

/// Checks that the names of `includes` are distinct and not empty.
/// Errors: invalid_argument.
Result<void> check_includes(const std::vector<Include>& includes, const std::string& kernel);

/// Returns the source, with the name `shown`, and every text that it includes directly or
/// indirectly, each once. Conditions and comments are ignored, so the result contains at least all
/// texts that the compiler can request. An unreadable include is therefore not an error here.
/// Appends every searched path to `looked`.
std::vector<SourceText> read_includes(const IncludePlaces& places, const std::string& shown,
                                      std::vector<std::string>* looked = nullptr);
inline std::vector<SourceText> read_includes(const Glsl& source, const std::string& shown) {
  return read_includes(IncludePlaces(source), shown);
}

/// Reads includes, and the files that an `import` or `__include` names. A name with underscores
/// stands for two files, "a_b.slang" and "a-b.slang", as in the compiler.
inline std::vector<SourceText> read_imports(const Slang& source, const std::string& shown) {
  return read_includes(IncludePlaces(source, true), shown);
}

/// Returns "a.glsl" for "lib/../a.glsl".
std::string normal_path(std::string_view name);

/// Rewrites the `#include`s of `text`, for a compiler that opens files by itself. `name` returns
/// the replacement of a quoted name, or of the whole directive if it begins with "error ". Its
/// argument is null if the `#include` has no literal name. Line numbers do not change.
std::string with_includes(std::string_view text, const std::vector<IncludeUse>& uses,
                          const std::function<std::string(const IncludeUse*)>& name);

/// Reads a text file; returns nothing if it does not exist. Removes a byte order mark.
/// Errors: io, invalid_argument (larger than `at_most`, or not UTF-8).
Result<std::optional<std::string>> read_text(const std::string& path, Bytes at_most);

}  // namespace wye::kernel
