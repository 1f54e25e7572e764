#pragma once
/// Whether headers and library belong together.
#include <wye/base/config.hpp>
#include <wye/base/result.hpp>

namespace wye {
inline namespace v0 {
namespace base {

/// Refuses headers whose major.minor is not the library's.
/// Errors: unsupported, with both versions.
Result<void> check_header(Version header);

}  // namespace base
}  // namespace v0
}  // namespace wye
