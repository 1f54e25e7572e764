#include <wye/base/error.hpp>
#include <wye/base/result.hpp>

#include <optional>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace wye::inline v0 {

std::string_view name(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument: return "invalid_argument";
    case Errc::not_found: return "not_found";
    case Errc::unsupported: return "unsupported";
    case Errc::unavailable: return "unavailable";
    case Errc::out_of_memory: return "out_of_memory";
    case Errc::over_budget: return "over_budget";
    case Errc::timed_out: return "timed_out";
    case Errc::cancelled: return "cancelled";
    case Errc::device_lost: return "device_lost";
    case Errc::compile_failed: return "compile_failed";
    case Errc::kernel_failed: return "kernel_failed";
    case Errc::io: return "io";
    case Errc::corrupt: return "corrupt";
    case Errc::closed: return "closed";
    case Errc::internal: return "internal";
  }
  return "unknown";
}

std::string to_string(const Diagnostic& diagnostic) {
  std::string place = diagnostic.file;
  if (diagnostic.line != 0) place += base::text(":{}", diagnostic.line);
  if (diagnostic.column != 0) place += base::text(":{}", diagnostic.column);
  return base::text("{}: {}", place, diagnostic.text);
}

struct Error::Detail {
  Errc code;
  std::string sentence;
  Place place;
  std::optional<NativeError> native = {};
  std::shared_ptr<const std::vector<Diagnostic>> diagnostics = {};  // one list for all copies
  std::vector<std::string> context = {};
};

Error::Error(Errc code, std::string sentence, Place place)
    : detail_(std::make_shared<Detail>(Detail{code, std::move(sentence), place})) {}

Error::Error(Errc code, std::string sentence, NativeError native, Place place)
    : detail_(std::make_shared<Detail>(Detail{code, std::move(sentence), place, std::move(native)})) {}

Error::Error(Errc code, std::string sentence, std::vector<Diagnostic> diagnostics, Place place)
    : detail_(std::make_shared<Detail>(
          Detail{code,
                 std::move(sentence),
                 place,
                 {},
                 std::make_shared<const std::vector<Diagnostic>>(std::move(diagnostics))})) {}

const Error::Detail& Error::read() const noexcept {
  if (detail_) return *detail_;
  // Reading a moved-from error is a bug, but must not crash.
  static const Detail moved_from{Errc::internal, "This error was moved from.", Place::here()};
  return moved_from;
}

Errc Error::code() const noexcept { return read().code; }
const std::string& Error::sentence() const noexcept { return read().sentence; }
const NativeError* Error::native() const noexcept { return read().native ? &*read().native : nullptr; }
std::span<const Diagnostic> Error::diagnostics() const noexcept {
  const auto& list = read().diagnostics;
  return list ? std::span<const Diagnostic>(*list) : std::span<const Diagnostic>();
}
std::span<const std::string> Error::context() const noexcept { return read().context; }
Place Error::place() const noexcept { return read().place; }

Error Error::with_context(std::string line) const {
  auto longer = std::make_shared<Detail>(read());
  longer->context.push_back(std::move(line));
  Error error = *this;
  error.detail_ = std::move(longer);
  return error;
}

std::string Error::describe() const {
  std::string lines = base::text("{}: {}", name(code()), sentence());
  if (const NativeError* from = native()) {
    lines += from->name.empty() ? base::text("\n  {}: {}", from->api, from->number)
                                : base::text("\n  {}: {} ({})", from->api, from->name, from->number);
  }
  for (const std::string& line : context()) lines += base::text("\n  {}", line);
  return lines;
}

Exception::Exception(Error error) : error_(std::move(error)), text_(error_.describe()) {}
Exception::~Exception() = default;
const char* Exception::what() const noexcept { return text_.c_str(); }

void detail::throw_error(const Error& error) { throw Exception(error); }

const Error& detail::no_error() noexcept {
  static const Error error(Errc::internal, "Result::error() was called on a result that holds a value.");
  return error;
}

}  // namespace wye
