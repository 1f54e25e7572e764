#pragma once
/// Errors that pass from one process to another. For components of wye; not installed.
#include <wye/base/error.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace wye::inline v0::process {

/// `to_bytes` returns at most as many bytes.
constexpr std::size_t most_error_bytes = 16384;

/// Writes an error without its place. Long texts are cut; of many diagnostics and lines of context,
/// the first eight are kept.
WYE_API std::vector<std::byte> to_bytes(const Error& error);

/// Reads an error that `to_bytes` wrote. Returns nothing if the bytes are those of no error.
WYE_API std::optional<Error> error_from(std::span<const std::byte> bytes);

}  // namespace wye::process
