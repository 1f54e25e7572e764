#pragma once
/// Orders jobs by the arrays that they use, and by `JobOptions::after`.
#include <wye/base/result.hpp>

#include <optional>

#include "pool/pool.hpp"
#include "scheduler/record.hpp"
#include "scheduler/spare_errors.hpp"

namespace wye::inline v0::scheduler {

/// Makes a job follow those of `JobOptions::after`. If memory runs out, it may follow some of them
/// only.
/// Errors: invalid_argument (a moved-from ticket, a job of another runtime), out_of_memory.
Result<void> follow_jobs(Record& record, const SpareErrors& spare);
/// Makes a job, or the run of a plan, follow the users of its arrays. A job that is `refused`, or
/// gets an error here, follows those of its outputs only, which fail in its turn. No job of this
/// runtime can write an array of another one, or a read-only array. If memory runs out, it may
/// follow the users of some arrays only.
/// Errors: invalid_argument (an empty handle, an array of another runtime), out_of_memory.
/// Threads: jobs of one scheduler under its mutex: two jobs could each wait for the other.
Result<void> follow_arrays(Record& record, const pool::Pool& pool, const SpareErrors& spare, bool refused);
/// Returns the failure of a job that a record follows, if the record fails with it. All of them
/// have settled. In a chain the error names the job that failed, not each of its followers.
std::optional<Error> failure_before(Record& record, const SpareErrors& spare) noexcept;

/// Fails the outputs of a record that has settled with an error, and releases their arrays.
void fail_outputs(Record& record) noexcept;
/// Completes a record that has settled as a user of its arrays, which releases its followers.
void complete_arrays(Record& record) noexcept;
/// Releases the followers of a record that has settled while it waited for its predecessors, once
/// these are complete. Called when either has happened; the second call has an effect.
void release_followers(Record& record) noexcept;
/// Fails the outputs of an abandoned record, whose objects its thread still uses, with its error.
void abandon_outputs(const Record& record) noexcept;

}  // namespace wye::scheduler
