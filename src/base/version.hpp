#pragma once
/// The version check of headers and library.
#include <wye/base/config.hpp>
#include <wye/base/result.hpp>

namespace wye::inline v0::base {

/// Refuses headers if their major.minor differs from the library's.
/// Errors: unsupported, with both versions.
Result<void> check_header(Version header);

}  // namespace wye::base
