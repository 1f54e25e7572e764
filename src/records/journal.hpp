#pragma once
/// The journal of a set: which records are done, and their results.
#include <wye/base/result.hpp>
#include <wye/records/record_function.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "division.hpp"
#include "process/entry_file.hpp"
#include "source.hpp"

namespace wye::inline v0::records {

/// Notes the batches that are done, for a later call with the same set.
/// Threads: one thread at a time.
class Journal {
 public:
  /// Opens a journal, writes the results that it has to `sink`, and adds the ranges that are done to
  /// `done`. Results in a file that have changed since are not done.
  /// Errors: see `process::EntryFile::open`; those of the sink.
  static Result<Journal> open(const std::string& path, const RecordFunction& function, std::uint64_t batch,
                              const Source& source, Sink& sink, std::vector<RecordRange>& done);
  /// Notes a batch whose results are in the output.
  /// Errors: io.
  Result<void> note(const RecordRange& range, std::span<const std::byte> results);

 private:
  Journal(process::EntryFile file, bool has_results) : file_(std::move(file)), has_results_(has_results) {}
  process::EntryFile file_;
  bool has_results_;  // otherwise their checksums: they are in a file
};

}  // namespace wye::records
