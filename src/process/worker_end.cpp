#include "process/worker_end.hpp"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/gate.hpp"
#include "base/spawn.hpp"
#include "process/worker_variable.hpp"

namespace wye::inline v0::process {
namespace {

/// Whether this process has joined its parent.
constinit std::atomic<bool> has_joined{false};

/// Returns the number of the process that has started this one as a worker, if one has.
std::optional<int> parent_of_worker() noexcept {
  const char* const value = std::getenv(worker_variable);
  if (!value) return std::nullopt;
  const std::string_view text(value);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

bool WorkerEnd::is_worker_process() noexcept { return has_joined || parent_of_worker().has_value(); }

Result<std::optional<WorkerEnd>> WorkerEnd::join() {
  const auto parent = parent_of_worker();
  if (!parent) return std::optional<WorkerEnd>();
  ::unsetenv(worker_variable);  // programs that this process starts are no workers
  has_joined = true;
  if (*parent != base::parent_number())
    return Error(Errc::unavailable, "The process that has started this worker process has ended.");
  auto watch = base::end_with_parent(*parent);
  if (!watch) return std::move(watch).error();
  auto block = base::SharedBlock::map(base::Descriptor(block_descriptor));
  if (!block) return std::move(block).error();
  auto bell = base::SharedBlock::map(base::Descriptor(bell_descriptor));
  if (!bell) return std::move(bell).error();
  const std::span<std::byte> bytes = block->bytes();
  auto* const header = reinterpret_cast<BlockHeader*>(bytes.data());
  auto state = std::make_unique<State>(State{
      .header = header,
      .bell = reinterpret_cast<std::atomic<std::uint32_t>*>(bell->bytes().data()),
      .message = bytes.subspan(aligned(sizeof(BlockHeader)), header->message_bytes),
      .memory = bytes.subspan(header->memory_offset),
      .joined = JoinedMemory{*std::move(block), *std::move(bell), *std::move(watch)},
  });
  header->has_joined = 1;
  base::signal_change(*state->bell);
  return std::optional<WorkerEnd>(WorkerEnd(std::move(state)));
}

WorkerEnd::WorkerEnd(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
WorkerEnd::WorkerEnd(WorkerEnd&&) noexcept = default;
WorkerEnd::~WorkerEnd() = default;

std::span<const std::byte> WorkerEnd::message() const noexcept { return state_->message; }
std::span<std::byte> WorkerEnd::memory() const noexcept { return state_->memory; }
std::uint32_t WorkerEnd::calls() const noexcept { return state_->header->calls; }
void WorkerEnd::wait(std::uint32_t seen) const noexcept {
  if (!base::seen_before_parking([&] { return calls() != seen; }))
    base::await_change(state_->header->calls, seen, Instant::max());
}
void WorkerEnd::ring() const noexcept { base::signal_change(*state_->bell); }
bool WorkerEnd::is_ending() const noexcept { return state_->header->is_ending; }
const std::atomic<bool>& WorkerEnd::ending() const noexcept { return state_->header->is_ending; }

}  // namespace wye::process
