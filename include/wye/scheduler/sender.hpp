#pragma once
/// Jobs as senders of stdexec, NVIDIA's implementation of `std::execution` of C++26. Needs its
/// headers.
#include <wye/base/result.hpp>
#include <wye/scheduler/ticket.hpp>

#include <optional>
#include <utility>

#if __has_include(<stdexec/execution.hpp>)
#include <stdexec/execution.hpp>

namespace wye::inline v0 {

/// The operation of a job that is connected to a receiver. Its memory holds all that it needs;
/// starting it allocates as `Ticket::then` does.
/// Threads: one thread at a time.
template <class Receiver>
class TicketOperation {
 public:
  TicketOperation(Ticket ticket, Receiver receiver)
      : ticket_(std::move(ticket)), receiver_(std::move(receiver)) {}
  TicketOperation(TicketOperation&&) = delete;  // the job and the stop token have its address

  void start() noexcept {
    // A stop that was requested before cancels the job here, while no function can complete the
    // operation yet.
    on_stop_.emplace(stdexec::get_stop_token(stdexec::get_env(receiver_)), Cancel{this});
    ticket_.then([this](const Result<Outcome>& result) { complete(result); });
    // The operation may have completed, and been destroyed.
  }

 private:
  /// Cancels the job, on the thread that requests the stop.
  struct Cancel {
    TicketOperation* operation;
    void operator()() const noexcept {
      // Cancelling a queued job completes the operation here, which may destroy the ticket.
      const Dependency keeps_job(operation->ticket_);
      operation->ticket_.cancel();
    }
  };
  using OnStop = stdexec::stop_callback_for_t<stdexec::stop_token_of_t<stdexec::env_of_t<Receiver>>, Cancel>;

  void complete(const Result<Outcome>& result) noexcept {
    on_stop_.reset();  // waits for a call of it on another thread, which uses the ticket
    if (result)
      stdexec::set_value(std::move(receiver_), Outcome(*result));
    else if (result.error() == Errc::cancelled)
      stdexec::set_stopped(std::move(receiver_));
    else
      stdexec::set_error(std::move(receiver_), Error(result.error()));
  }

  Ticket ticket_;
  Receiver receiver_;
  std::optional<OnStop> on_stop_;
};

/// Sends the result of a job: its `Outcome`, its `Error`, or that it was cancelled.
/// Threads: thread-compatible.
class TicketSender {
 public:
  using sender_concept = decltype(stdexec::just())::sender_concept;  // `sender_t` or `sender_tag`, by version
  using completion_signatures =
      stdexec::completion_signatures<stdexec::set_value_t(Outcome), stdexec::set_error_t(Error),
                                     stdexec::set_stopped_t()>;

  explicit TicketSender(Ticket ticket) : ticket_(std::move(ticket)) {}
  template <class Receiver>
  TicketOperation<Receiver> connect(Receiver receiver) && {
    return TicketOperation<Receiver>(std::move(ticket_), std::move(receiver));
  }

 private:
  Ticket ticket_;
};

/// Returns the result of a job as a sender of one result:
/// `stdexec::sync_wait(to_sender(runtime->submit(...)))`. The job runs whether the sender is
/// started or not. Destroying a sender or an operation destroys the ticket: see `~Ticket`.
/// Threads: the operation completes on the thread that completes the job, as `Ticket::then` says;
///          on the thread that starts it, if the job has completed. A stop token of the receiver's
///          environment cancels the job.
inline TicketSender to_sender(Ticket ticket) { return TicketSender(std::move(ticket)); }

}  // namespace wye

#else

namespace wye::inline v0 {

template <class T>
void to_sender(T&&) {
  static_assert(sizeof(T) == 0, "wye::to_sender needs stdexec: <stdexec/execution.hpp> was not found.");
}

}  // namespace wye

#endif
