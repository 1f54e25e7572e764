#pragma once
/// Files and directories: every call of the file system that the library makes.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wye {
inline namespace v0 {
namespace base {

/// Reads a whole file; nothing where there is none.
/// Errors: io; out_of_memory where it is larger than `at_most`.
Result<std::optional<std::vector<std::byte>>> read_file(const std::string& path,
                                                        Bytes at_most = Bytes{~0ull});

/// Writes a file whole or not at all: to a temporary one beside it, ".<name>.<random>.tmp", then renamed. A
/// process that dies meanwhile leaves the temporary one. Owner-only permissions. Not synchronized to the
/// disk: after a power cut the file may be empty.
/// Errors: io.
Result<void> write_file(const std::string& path, std::span<const std::byte> content);

/// Removes a file; no error where there is none.
Result<void> remove_file(const std::string& path);

/// Makes a directory and its parents with owner-only permissions. A directory that others own or may write to
/// is refused: what is read from it becomes code.
/// Errors: io, naming the path and the reason.
Result<void> make_private_directory(const std::string& path);

/// Names of the entries of a directory, sorted.
/// Errors: io.
Result<std::vector<std::string>> list_directory(const std::string& path);

/// The absolute path of the shared object or program that this library is linked into; empty where the system
/// does not say.
std::string own_path();

}  // namespace base
}  // namespace v0
}  // namespace wye
