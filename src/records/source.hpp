#pragma once
/// Reads the records of a set, and writes its results.
#include <wye/base/result.hpp>
#include <wye/records/record_io.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  /// Describes the records: a checksum of memory, the size and time of a file. Records that a function
  /// makes have no description.
  std::string identity() const;
  /// Returns whether the records are in the file of this name.
  bool is_file(const std::string& path) const noexcept { return file_ && file_->is_named(path); }
  /// Reads records. `to` has their size.
  /// Errors: io; those of the function that makes them.
  Result<void> read(const RecordRange& range, std::span<std::byte> to) const;

 private:
  Source(RecordInput input, std::uint64_t count) : input_(std::move(input)), count_(count) {}
  Result<void> index_lines();
  Result<void> read_lines(const RecordRange& range, std::span<std::byte> to) const;
  RecordInput input_;
  std::uint64_t count_;
  std::optional<WholeFile> file_;
  std::vector<std::uint64_t> lines_;  // the beginning of each `indexed`-th line
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
  std::string identity() const;
  bool is_file() const noexcept { return file_.has_value(); }
  /// Returns whether a file has results with this checksum in place.
  Result<bool> has(const RecordRange& range, std::string_view checksum) const;
  /// Returns whether results are needed in their order.
  bool is_in_order() const noexcept { return static_cast<bool>(output_.take_); }
  /// Returns the first record whose result is needed next.
  std::uint64_t next() const noexcept { return next_; }

 private:
  explicit Sink(RecordOutput output) : output_(std::move(output)) {}
  Result<void> pass_on();
  RecordOutput output_;
  std::optional<WholeFile> file_;
  /// Results that wait for earlier ones, by their first record; without bytes: they have failed.
  std::map<std::uint64_t, std::pair<std::uint64_t, std::vector<std::byte>>> waiting_;
  std::uint64_t next_ = 0;
  std::optional<Error> refused_;  // by the function that takes results: it is not called again
};

}  // namespace wye::records
