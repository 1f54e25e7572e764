#pragma once
/// Manifests as text.
#include <wye/cache/manifest.hpp>

#include <string>
#include <string_view>

namespace wye {
inline namespace v0 {
namespace cache {

/// "wye manifest 1", a line for each entry, and a line with their number and the digest of all before it. Words are
/// separated by one space; in names, spaces, control characters and '%' are written as %20.
std::string to_text(const Manifest& manifest);

/// What `to_text` wrote. `path` is for messages.
/// Errors: unsupported (a newer version), corrupt.
Result<Manifest> from_text(std::string_view text, const std::string& path);

}  // namespace cache
}  // namespace v0
}  // namespace wye
