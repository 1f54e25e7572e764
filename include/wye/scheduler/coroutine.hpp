#pragma once
/// Coroutines that wait for jobs: `wye::Result<wye::Outcome> done = co_await ticket;`
#include <wye/base/result.hpp>
#include <wye/scheduler/ticket.hpp>

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace wye::inline v0 {

/// The wait of a coroutine for a job; `co_await` takes it. The ticket must outlive it. A coroutine
/// that is destroyed while it waits is not resumed; its ticket then waits or cancels as `~Ticket`
/// says.
/// Threads: the coroutine continues on the thread that completes the job, as `Ticket::then` says,
///          and must not block it; with an executor, on a thread of the executor. If the job has
///          completed already, it continues at once.
/// Cost:    an allocation; none if the job has completed.
class TicketAwaiter {
 public:
  explicit TicketAwaiter(Ticket& ticket, Executor executor = {})
      : ticket_(&ticket), executor_(std::move(executor)) {}
  TicketAwaiter(TicketAwaiter&&) noexcept = default;
  ~TicketAwaiter() {
    if (wait_) wait_->stage = Stage::abandoned;
  }

  bool await_ready() const noexcept { return !executor_ && ticket_->ready(); }
  bool await_suspend(std::coroutine_handle<> waiting) {
    const auto wait = std::make_shared<Wait>(waiting);
    wait_ = wait;
    const auto complete = [wait](const Result<Outcome>& result) {
      wait->result = result;
      if (wait->stage.exchange(Stage::completed) == Stage::suspended) wait->waiting.resume();
    };
    if (executor_)
      ticket_->then(complete, executor_);
    else
      ticket_->then(complete);
    // Suspends, unless the job has completed meanwhile. Once it is suspended, this object may be
    // gone.
    Stage stage = Stage::running;
    return wait->stage.compare_exchange_strong(stage, Stage::suspended);
  }
  Result<Outcome> await_resume() { return wait_ ? *std::move(wait_->result) : ticket_->wait(); }

 private:
  enum class Stage : std::uint8_t { running, suspended, completed, abandoned };
  struct Wait {
    explicit Wait(std::coroutine_handle<> handle) : waiting(handle) {}
    const std::coroutine_handle<> waiting;
    std::atomic<Stage> stage{Stage::running};
    std::optional<Result<Outcome>> result;
  };
  Ticket* ticket_;
  Executor executor_;
  std::shared_ptr<Wait> wait_;
};

/// Waits for a job. A ticket made in the same expression lives until the coroutine continues.
inline TicketAwaiter operator co_await(Ticket& ticket) { return TicketAwaiter(ticket); }
inline TicketAwaiter operator co_await(Ticket&& ticket) { return TicketAwaiter(ticket); }
/// Waits for a job, and continues on a thread of `executor`: `co_await resume_on(ticket,
/// executor)`.
inline TicketAwaiter resume_on(Ticket& ticket, Executor executor) {
  return TicketAwaiter(ticket, std::move(executor));
}

}  // namespace wye
