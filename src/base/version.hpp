#pragma once
/// The version check of headers and library.
#include <wye/base/config.hpp>
#include <wye/base/result.hpp>

namespace wye {
inline namespace v0 {
namespace base {

/// Refuses headers if their major.minor differs from the library's.
/// Errors: unsupported, with both versions.
Result<void> check_header(Version header);

}  // namespace base
}  // namespace v0
}  // namespace wye
