#pragma once
/// Errors of a set.
#include <wye/base/error.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace wye::inline v0::records {

/// Returns the error with text before its sentence, and text before its full stop.
inline Error reworded(const Error& error, std::string_view before, std::string_view after) {
  std::string sentence(before);
  sentence += error.sentence();
  if (sentence.ends_with('.')) sentence.pop_back();
  sentence += after;
  sentence += '.';
  const auto diagnostics = error.diagnostics();
  Error changed = error.native() ? Error(error.code(), std::move(sentence), *error.native(), error.place())
                  : diagnostics.empty()
                      ? Error(error.code(), std::move(sentence), error.place())
                      : Error(error.code(), std::move(sentence),
                              std::vector<Diagnostic>(diagnostics.begin(), diagnostics.end()), error.place());
  for (const std::string& line : error.context()) changed = changed.with_context(line);
  return changed;
}

}  // namespace wye::records
