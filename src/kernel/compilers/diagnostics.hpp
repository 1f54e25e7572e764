#pragma once
/// Messages of compilers as errors.
#include <wye/base/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wye::inline v0::kernel {

/// Makes an error of a compiler's messages, of which there must be at least one. The first message
/// becomes the sentence, the others become context, and all become diagnostics.
Error compile_error(const std::string& kernel, std::vector<Diagnostic> errors);

/// Parses a small number, such as the number of a line.
std::optional<std::uint32_t> small_number(std::string_view digits);

/// Returns `text` without surrounding blanks.
std::string_view trimmed(std::string_view text);

}  // namespace wye::kernel
