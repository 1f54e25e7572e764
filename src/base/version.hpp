#pragma once
/// The check of headers and library.
#include <wye/base/config.hpp>
#include <wye/base/result.hpp>

namespace wye::inline v0::base {

/// Refuses headers whose major.minor differs from the library's, or whose options have another size
/// than the library's, `options` bytes.
/// Errors: unsupported, with both versions or sizes.
Result<void> check_headers(Headers headers, std::size_t options);

template <class Options>
Result<void> check_headers(Headers headers) {
  return check_headers(headers, sizeof(Options));
}

}  // namespace wye::base
