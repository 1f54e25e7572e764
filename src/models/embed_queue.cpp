#include <wye/models/embed_queue.hpp>

#include <new>
#include <optional>
#include <utility>

#include "batcher.hpp"

namespace wye::inline v0::models {

struct EmbedTicket::State {
  struct Cancel {
    BatchRequest* request;
    void operator()() const noexcept { request->cancel(); }
  };
  std::shared_ptr<BatchRequest> request;
  std::optional<std::stop_callback<Cancel>> on_stop = std::nullopt;  // ends before the request
};

EmbedTicket::EmbedTicket(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
EmbedTicket::EmbedTicket(EmbedTicket&& other) noexcept = default;

EmbedTicket& EmbedTicket::operator=(EmbedTicket&& other) noexcept {
  EmbedTicket(std::move(other)).state_.swap(state_);
  return *this;
}

EmbedTicket::~EmbedTicket() {
  if (!state_) return;
  if (state_->request->is_inherited())
    (void)state_.release();  // a thread of the parent may have been registering a callback
  else
    state_->request->cancel();
}

Result<std::vector<float>> EmbedTicket::wait(Deadline deadline) {
  if (!state_) return Error(Errc::invalid_argument, "The ticket was moved from.");
  return state_->request->wait(deadline);
}

bool EmbedTicket::ready() const noexcept { return state_ && state_->request->ready(); }

void EmbedTicket::cancel() noexcept {
  if (state_) state_->request->cancel();
}

Result<EmbedQueue> EmbedQueue::open(Encoder encoder, EmbedQueueOptions options) {
  try {
    auto run = [encoder = std::move(encoder), long_text = options.long_text, tag = std::move(options.tag)](
                   std::span<const std::string_view> texts, std::stop_token stop) -> Result<Vectors> {
      const Result<Embeddings> rows =
          encoder.embed(texts, {.long_text = long_text, .stop = std::move(stop), .tag = tag});
      if (!rows) return rows.error();
      Vectors vectors;
      for (std::size_t row = 0; row < rows->rows(); ++row)
        vectors.emplace_back((*rows)[row].begin(), (*rows)[row].end());
      return vectors;
    };
    Result<std::shared_ptr<Batcher>> batcher = Batcher::open(
        std::move(run),
        {.delay = options.delay, .batch_texts = options.batch_texts, .max_waiting = options.max_waiting});
    if (!batcher) return std::move(batcher).error();
    return EmbedQueue(*std::move(batcher));
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to open a queue.");
  }
}

EmbedQueue::EmbedQueue(std::shared_ptr<Batcher> batcher) noexcept : batcher_(std::move(batcher)) {}

Result<std::vector<float>> EmbedQueue::embed(std::string_view text, EmbedRequest options) const {
  Result<EmbedTicket> ticket = submit(text, std::move(options));
  if (!ticket) return std::move(ticket).error();
  return ticket->wait();
}

Result<EmbedTicket> EmbedQueue::submit(std::string_view text, EmbedRequest options) const {
  Result<std::shared_ptr<BatchRequest>> request = batcher_->submit(text, options.deadline);
  if (!request) return std::move(request).error();
  try {
    EmbedTicket ticket(std::unique_ptr<EmbedTicket::State>(new EmbedTicket::State{*request}));
    if (options.stop.stop_possible())
      ticket.state_->on_stop.emplace(std::move(options.stop), EmbedTicket::State::Cancel{request->get()});
    return ticket;
  } catch (const std::bad_alloc&) {
    (*request)->cancel();
    return Error(Errc::out_of_memory, "The host has no memory left to submit a request.");
  }
}

EmbedQueueMetrics EmbedQueue::metrics() const { return batcher_->metrics(); }

void EmbedQueue::close() noexcept { batcher_->close(); }

}  // namespace wye::models
