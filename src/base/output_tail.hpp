#pragma once
/// The end of the text that a child process writes.
#include <wye/base/result.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "base/descriptor.hpp"

namespace wye::inline v0::base {

/// A pipe for the standard error of a child process. Its text goes on to the standard error of this
/// process, and the end of it is kept. Text that this process cannot write at once is kept only.
/// Threads: thread-safe.
class OutputTail {
 public:
  /// Errors: unavailable (no descriptor is free).
  static Result<OutputTail> open();

  int reading_end() const noexcept { return from_.number(); }
  /// Returns the end that the child process inherits.
  int writing_end() const noexcept { return to_.number(); }
  /// Closes the writing end of this process, so that the end of the child is the end of the text.
  void close_writing_end() noexcept { to_ = Descriptor(); }
  /// Reads all text that has arrived. Returns false at its end.
  bool read_arrived() noexcept;
  /// Returns the last 4 KiB.
  std::string text() const;

 private:
  OutputTail(Descriptor from, Descriptor to) noexcept : from_(std::move(from)), to_(std::move(to)) {}
  Descriptor from_, to_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  std::string text_;  // up to twice as long
};

}  // namespace wye::base
