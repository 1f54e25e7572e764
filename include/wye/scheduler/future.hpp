#pragma once
/// The result of a job as a std::future.
#include <wye/base/result.hpp>
#include <wye/scheduler/ticket.hpp>

#include <future>
#include <memory>
#include <utility>

namespace wye::inline v0 {

/// Returns the result of a job as a future, and keeps the ticket until the job has completed. The
/// future has no exception: a failure is its `Result`. Its destructor neither waits nor cancels, so
/// memory that the job borrows must stay valid until the future is ready.
/// Threads: `get` and `wait` of the future run no job, unlike `Ticket::wait`.
inline std::future<Result<Outcome>> to_future(Ticket ticket) {
  struct Shared {
    explicit Shared(Ticket of) : ticket(std::move(of)) {}
    Ticket ticket;
    std::promise<Result<Outcome>> promise;
  };
  const auto shared = std::make_shared<Shared>(std::move(ticket));
  std::future<Result<Outcome>> future = shared->promise.get_future();
  shared->ticket.then([shared](const Result<Outcome>& result) { shared->promise.set_value(result); });
  return future;
}

}  // namespace wye
