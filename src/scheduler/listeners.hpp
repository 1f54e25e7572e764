#pragma once
/// The functions of tickets, and the threads that wait for jobs.
#include <wye/base/result.hpp>

#include <functional>
#include <vector>

#include "scheduler/record.hpp"

namespace wye::inline v0::scheduler {

using Continuation = std::function<void(const Result<Outcome>&)>;

/// Makes the result of a record visible, and wakes the threads that wait for it. Returns the
/// functions to call. From now on `Ticket::then` calls at once.
std::vector<Continuation> publish(Record& record) noexcept;
/// Calls functions of a ticket. Drops their exceptions, which must not end a thread that runs jobs.
void call(const std::vector<Continuation>& continuations, Record& record) noexcept;
void call(const Continuation& then, Record& record) noexcept;
/// Returns whether the calling thread is in such a call.
bool calls_function() noexcept;

}  // namespace wye::scheduler
