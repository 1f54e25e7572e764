#pragma once
/// Messages of compilers as errors.
#include <wye/base/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wye {
inline namespace v0 {
namespace kernel {

/// The first error is the sentence, the others are its context, all are its diagnostics. There must be one.
Error compile_error(const std::string& kernel, std::vector<Diagnostic> errors);

/// The number of a line, or of anything else that is small.
std::optional<std::uint32_t> small_number(std::string_view digits);

/// `text` without the blanks around it.
std::string_view trimmed(std::string_view text);

}  // namespace kernel
}  // namespace v0
}  // namespace wye
