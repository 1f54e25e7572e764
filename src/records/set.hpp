#pragma once
/// `distribute` with another pace, for tests.
#include <wye/records/distribute.hpp>

#include "failures.hpp"

namespace wye::inline v0::records {

/// See `distribute`. Throws: std::bad_alloc.
Result<RecordReport> run_set(Runtime& runtime, const RecordFunction& function, RecordInput in,
                             RecordOutput out, const RecordOptions& options, const Pace& pace);

}  // namespace wye::records
