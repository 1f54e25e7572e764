#pragma once
/// Errors for use when no memory is left to make one.
#include <wye/base/error.hpp>

#include <new>

namespace wye::inline v0::scheduler {

/// Errors made in advance.
struct SpareErrors {
  Error out_of_memory{Errc::out_of_memory, "The host has no memory left for this job."};
  Error timed_out{Errc::timed_out, "The job did not complete in time."};
  Error cancelled{Errc::cancelled, "The job was cancelled."};
  Error closed{Errc::closed, "The scheduler was closed before the job started."};
  Error abandoned{Errc::closed, "The job was abandoned: it still ran when the deadline of closing passed."};
  Error close_timed_out{Errc::timed_out,
                        "Jobs still ran when the deadline of closing passed, and are abandoned."};
  Error full{Errc::over_budget, "The job was refused: too many jobs wait already."};
  Error internal{Errc::internal, "Running the job threw an exception that is not an allocation failure."};
};

/// Returns the error that `make` makes, or a copy of `spare` if there is no memory to make it.
template <class F>
Error error_or(const Error& spare, F make) noexcept {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return spare;
  }
}

}  // namespace wye::scheduler
