#pragma once
/// Reads the records of a set, and writes its results.
#include <wye/base/result.hpp>
#include <wye/records/record_io.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "division.hpp"
#include "whole_file.hpp"

namespace wye::inline v0::records {

/// The records of a set.
/// Threads: one thread at a time.
class Source {
 public:
  /// Errors: invalid_argument (a cut last record), io, not_found.
  static Result<Source> open(RecordInput input);
  std::uint64_t count() const noexcept { return count_; }
  /// Returns whether the records are in the file of this name.
  bool is_file(const std::string& path) const noexcept { return file_ && file_->is_named(path); }
  /// Reads records. `to` has their size.
  /// Errors: io; those of the function that makes them.
  Result<void> read(const RecordRange& range, std::span<std::byte> to) const;

 private:
  Source(RecordInput input, std::uint64_t count) : input_(std::move(input)), count_(count) {}
  RecordInput input_;
  std::uint64_t count_;
  std::optional<WholeFile> file_;
};

/// The results of a set.
/// Threads: one thread at a time.
class Sink {
 public:
  /// Errors: invalid_argument (another number of results than of records, or the file of the records), io.
  static Result<Sink> open(RecordOutput output, const Source& source);
  /// Errors: io.
  Result<void> write(const RecordRange& range, std::span<const std::byte> results);
  /// Writes the result of failures, if there is one.
  Result<void> write_failed(const RecordRange& range);

 private:
  explicit Sink(RecordOutput output) : output_(std::move(output)) {}
  RecordOutput output_;
  std::optional<WholeFile> file_;
};

}  // namespace wye::records
