#pragma once
/// The one error type: a stable code, a sentence a person can act on, and where it came from.
#include <wye/base/config.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wye {
inline namespace v0 {

/// What kind of failure this is. The list is final; the sentence says the rest.
enum class Errc : std::uint8_t {
  invalid_argument = 1,  ///< the caller asked for something that cannot mean anything
  not_found,             ///< a name, file or device that does not exist
  unsupported,           ///< this device, backend or build cannot do it, and never will
  unavailable,           ///< it could be done, but not now or not on this machine
  out_of_memory,         ///< the device or the host has no room
  over_budget,           ///< a budget the host set has no room
  timed_out,             ///< a deadline or a time limit passed
  cancelled,             ///< somebody asked for it to stop
  device_lost,           ///< the device is gone; everything on it answers this for ever
  compile_failed,        ///< a kernel source was refused by its compiler
  kernel_failed,         ///< a kernel or host function failed while it ran
  io,                    ///< a file or directory could not be read or written
  corrupt,               ///< stored bytes are not what was stored
  closed,                ///< the object was closed
  internal,              ///< a broken invariant of wye: please report it
};

/// "out_of_memory".
WYE_API std::string_view name(Errc code) noexcept;

/// What the driver or the operating system said.
struct NativeError {
  std::string api;          ///< the call, "vkAllocateMemory"
  std::int64_t number = 0;  ///< its numeric code, -2
  std::string name;         ///< its symbolic code, "VK_ERROR_OUT_OF_DEVICE_MEMORY"
};

/// One thing a compiler said of a source.
struct Diagnostic {
  enum class Severity : std::uint8_t { error, warning };
  std::string file = {};     ///< the name the source, or what it includes, is shown by
  std::uint32_t line = 0;    ///< from 1; 0: the file as a whole
  std::uint32_t column = 0;  ///< from 1; 0: the compiler does not say
  Severity severity = Severity::error;
  std::string text = {};  ///< "'foo' : undeclared identifier"
  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// "scale.comp:4: 'foo' : undeclared identifier".
WYE_API std::string to_string(const Diagnostic& diagnostic);

/// A line of wye's own source.
struct Place {
  const char* file = "";
  unsigned line = 0;
  static constexpr Place here(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    return Place{file, line};
  }
};

/// A failure as a value. Copying is cheap (shared, immutable).
/// Threads: thread-compatible; copies may be used on different threads.
class WYE_API Error {
 public:
  Error(Errc code, std::string sentence, Place place = Place::here());
  Error(Errc code, std::string sentence, NativeError native, Place place = Place::here());
  Error(Errc code, std::string sentence, std::vector<Diagnostic> diagnostics, Place place = Place::here());

  Errc code() const noexcept;
  /// One complete sentence: what was asked, what was wrong, the limit, which device.
  const std::string& sentence() const noexcept;
  /// What the driver said, or null.
  const NativeError* native() const noexcept;
  /// What a compiler said, entry by entry, the first first; empty where none did.
  std::span<const Diagnostic> diagnostics() const noexcept;
  /// What was being done, innermost first: "while leasing a context".
  std::span<const std::string> context() const noexcept;
  Place place() const noexcept;

  /// The same error with one more line of context.
  [[nodiscard]] Error with_context(std::string line) const;

  /// "out_of_memory: <sentence>", then a line "  vkAllocateMemory: VK_ERROR_OUT_OF_DEVICE_MEMORY (-2)" where
  /// there is a native error, then the lines of context, each after two spaces; no trailing newline.
  std::string describe() const;

  friend bool operator==(const Error& error, Errc code) noexcept { return error.code() == code; }

 private:
  struct Detail;
  const Detail& read() const noexcept;
  std::shared_ptr<const Detail> detail_;
};

/// What `Result::value()` throws on an error, for hosts that use exceptions.
class WYE_API Exception : public std::exception {
 public:
  explicit Exception(Error error);
  ~Exception() override;
  const char* what() const noexcept override;
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
  std::string text_;
};

namespace detail {
/// Throws `Exception`; ends the process by `std::terminate` where no frame can catch it.
[[noreturn]] WYE_API void throw_error(const Error& error);
}  // namespace detail

}  // namespace v0
}  // namespace wye
