#include "process/error_bytes.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/byte_fields.hpp"

namespace wye::inline v0::process {
namespace {

constexpr std::size_t most_entries = 8;

/// Writes a text, cut before a character that does not fit.
void add(base::ByteWriter& out, std::string_view text, std::size_t most) {
  if (text.size() > most) {
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
    text = text.substr(0, most);
  }
  out.text(text);
}

}  // namespace

std::vector<std::byte> to_bytes(const Error& error) {
  base::ByteWriter out;
  out.number(static_cast<std::uint8_t>(error.code()));
  add(out, error.sentence(), 4096);
  const NativeError* const native = error.native();
  out.number(static_cast<std::uint8_t>(native ? 1 : 0));
  if (native) {
    add(out, native->api, 256);
    out.number(native->number);
    add(out, native->name, 256);
  }
  const auto diagnostics = error.diagnostics().first(std::min(error.diagnostics().size(), most_entries));
  out.number(static_cast<std::uint8_t>(diagnostics.size()));
  for (const Diagnostic& one : diagnostics) {
    add(out, one.file, 256);
    out.number(one.line);
    out.number(one.column);
    out.word(one.severity, Diagnostic::Severity::warning);
    add(out, one.text, 512);
  }
  const auto context = error.context().first(std::min(error.context().size(), most_entries));
  out.number(static_cast<std::uint8_t>(context.size()));
  for (const std::string& line : context) add(out, line, 512);
  return out.take();
}

std::optional<Error> error_from(std::span<const std::byte> bytes) {
  base::ByteReader in(bytes);
  Errc code{};
  in.word(code, Errc::internal);
  std::string sentence;
  in.text(sentence);
  std::uint8_t has_native = 0, count = 0;
  in.number(has_native);
  NativeError native;
  if (has_native == 1) {
    in.text(native.api);
    in.number(native.number);
    in.text(native.name);
  }
  in.number(count);
  std::vector<Diagnostic> diagnostics(std::min<std::size_t>(count, most_entries));
  for (Diagnostic& one : diagnostics) {
    in.text(one.file);
    in.number(one.line);
    in.number(one.column);
    in.word(one.severity, Diagnostic::Severity::warning);
    in.text(one.text);
  }
  in.number(count);
  std::vector<std::string> context(std::min<std::size_t>(count, most_entries));
  for (std::string& line : context) in.text(line);
  if (!in.at_end() || code == Errc{} || has_native > 1) return std::nullopt;
  Error error = has_native != 0       ? Error(code, std::move(sentence), std::move(native))
                : diagnostics.empty() ? Error(code, std::move(sentence))
                                      : Error(code, std::move(sentence), std::move(diagnostics));
  for (std::string& line : context) error = error.with_context(std::move(line));
  return error;
}

}  // namespace wye::process
