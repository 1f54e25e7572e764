#pragma once
/// Reads the sizes of classes and functions from the text of C++ source files.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace walls {

struct Size {
  std::string kind;  // "class-functions", "class-members" or "function-branches"
  std::string name;  // "Core::settle", without the namespaces around it; of two, "get" and "get (2)"
  long count;
};

/// The sizes of everything that a file defines, the largest of each name first.
struct Sizes {
  std::vector<Size> all;
  bool is_balanced = true;  // otherwise brackets do not match and `all` is empty
};

std::string text_of(const std::filesystem::path& path);

/// Returns the sizes in a source file, without preprocessing and without a compiler.
///
/// Functions of a class: the member functions that its body declares; overloads and templates count
/// one each. Defaulted and deleted functions, friends and types do not count.
/// Members of a class: the declarators of its non-static data members, with those of its anonymous
/// unions and structs. Types, aliases and static members do not count.
/// Branches of a function: its cyclomatic complexity, which is 1 and 1 for each `if`, `for`,
/// `while`, `case`, `catch`, `&&`, `||` and `?`. The `while` of a `do` counts; `else`, `default` and
/// conditions in `static_assert`, `decltype` and `noexcept` do not. A lambda counts for the function
/// or variable that contains it. A function of a local class counts by itself.
///
/// Limits:  macros are not expanded and their bodies are not read. Of the branches of an `#if`, those
///          are read whose brackets match. If the first one's do not match, it is read alone. Text
///          under `#if 0` is not read. A name of capitals is taken for a macro if another name
///          follows.
///          `a && b` is taken for a declaration of a reference if a parameter list contains it, or if
///          it is followed by `=`.
/// Source:  T. J. McCabe, "A Complexity Measure", IEEE Transactions on Software Engineering SE-2(4),
///          1976, with its count of compound conditions.
Sizes sizes_of(std::string_view text);

}  // namespace walls
