#pragma once
/// The one error type: a stable code, a sentence that a person can act on, and its place in wye's
/// source.
#include <wye/base/config.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wye::inline v0 {

/// The kind of a failure. The list is final. The sentence of an `Error` gives the details.
enum class Errc : std::uint8_t {
  invalid_argument = 1,  ///< an argument of the call has no meaning
  not_found,             ///< a name, file or device does not exist
  unsupported,           ///< this device, backend or build never supports the request
  unavailable,           ///< the request is possible, but not now or not on this machine
  out_of_memory,         ///< the memory of the device or the host is exhausted
  over_budget,           ///< a budget of the application is exhausted
  timed_out,             ///< a deadline or a time limit passed
  cancelled,             ///< the application cancelled the request
  device_lost,           ///< the device is lost; all later calls on it fail with this code
  compile_failed,        ///< a compiler refused a kernel source
  kernel_failed,         ///< a kernel or host function failed while it ran
  io,                    ///< a file or directory could not be read or written
  corrupt,               ///< stored bytes differ from the bytes that were written
  closed,                ///< the object was closed
  internal,              ///< an invariant of wye is broken: please report it
};

/// Returns "out_of_memory".
WYE_API std::string_view name(Errc code) noexcept;

/// The error of the driver or the operating system.
struct NativeError {
  std::string api;          ///< the call, "vkAllocateMemory"
  std::int64_t number = 0;  ///< its numeric code, -2
  std::string name;         ///< its symbolic code, "VK_ERROR_OUT_OF_DEVICE_MEMORY"
};

/// One message of a compiler.
struct Diagnostic {
  enum class Severity : std::uint8_t { error, warning };
  std::string file = {};     ///< the name under which the source or the included file is shown
  std::uint32_t line = 0;    ///< from 1; 0: the file as a whole
  std::uint32_t column = 0;  ///< from 1; 0: unknown
  Severity severity = Severity::error;
  std::string text = {};  ///< "'foo' : undeclared identifier"
  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// Returns "scale.comp:4: 'foo' : undeclared identifier".
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
  /// Returns one complete sentence: the request, the wrong value, the limit, the device.
  const std::string& sentence() const noexcept;
  /// Returns the driver's error, or null.
  const NativeError* native() const noexcept;
  /// Returns the messages of a compiler in their order. Empty if no compiler took part.
  std::span<const Diagnostic> diagnostics() const noexcept;
  /// Returns the operations in which the error occurred, innermost first: "while leasing a
  /// context".
  std::span<const std::string> context() const noexcept;
  Place place() const noexcept;

  /// Returns the same error with one more line of context.
  [[nodiscard]] Error with_context(std::string line) const;

  /// Returns "out_of_memory: <sentence>". If there is a native error, a line " vkAllocateMemory:
  /// VK_ERROR_OUT_OF_DEVICE_MEMORY (-2)" follows. The lines of context come last, each after two
  /// spaces. There is no trailing newline.
  std::string describe() const;

  friend bool operator==(const Error& error, Errc code) noexcept { return error.code() == code; }

 private:
  struct Detail;
  const Detail& read() const noexcept;
  std::shared_ptr<const Detail> detail_;
};

/// The exception that `Result::value()` throws on an error.
/// Threads: thread-compatible.
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
/// Throws `Exception`. Calls `std::terminate` if no frame can catch it.
[[noreturn]] WYE_API void throw_error(const Error& error);
}  // namespace detail

}  // namespace wye
