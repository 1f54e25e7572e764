#pragma once
/// Manifests as text.
#include <wye/cache/shader_cache.hpp>

#include <string>
#include <string_view>

namespace wye::inline v0::cache {

/// Returns "wye manifest 1", a line for each entry, and a line with their number and the digest of
/// all lines before it. One space separates words. Spaces, control characters and '%' in names are
/// percent-encoded (%20).
std::string to_text(const Manifest& manifest);

/// Parses the output of `to_text`. `path` is for messages.
/// Errors: unsupported (a newer version), corrupt.
Result<Manifest> from_text(std::string_view text, const std::string& path);

}  // namespace wye::cache
