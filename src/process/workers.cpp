#include "process/workers.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <variant>

#include "base/gate.hpp"
#include "base/output_tail.hpp"
#include "base/shared_memory.hpp"
#include "base/spawn.hpp"
#include "base/text.hpp"
#include "base/worker.hpp"
#include "process/block.hpp"
#include "process/worker_end.hpp"
#include "process/worker_variable.hpp"

namespace wye::inline v0::process {

struct AlignedDelete {
  void operator()(std::byte* memory) const noexcept {
    ::operator delete[](memory, std::align_val_t{block_alignment});
  }
};

/// Memory that a thread shares with its parent: that of one process.
struct ThreadBlock {
  explicit ThreadBlock(std::uint64_t size)
      : memory(static_cast<std::byte*>(::operator new[](size, std::align_val_t{block_alignment}))),
        bytes(memory.get(), size) {
    std::ranges::fill(bytes, std::byte{});
  }
  std::unique_ptr<std::byte, AlignedDelete> memory;
  std::span<std::byte> bytes;
};

/// A process and the pipe of its standard error.
struct ChildParts {
  base::SharedBlock block;
  std::shared_ptr<base::OutputTail> output;
  base::SpawnedProcess process;
};

struct ThreadParts {
  ThreadBlock block;
  std::optional<WorkerEnd> end = std::nullopt;
  std::optional<base::Worker> thread = std::nullopt;  // joined first
};

struct Workers::State {
  base::SharedBlock bell_block;
  std::optional<base::DescriptorWatch> watch = std::nullopt;  // of processes

  std::atomic<std::uint32_t>& bell() const noexcept {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(bell_block.bytes().data());
  }
};

struct Worker::State {
  State(Workers::State& of, std::variant<ChildParts, ThreadParts> given)
      : workers(of), parts(std::move(given)) {}
  ~State() {
    if (auto* const child = std::get_if<ChildParts>(&parts)) unwatch(*child);
  }
  State(const State&) = delete;  // the watch and the thread have its address

  void unwatch(ChildParts& child) noexcept {
    workers.watch->remove(child.process.descriptor());
    workers.watch->remove(child.output->reading_end());
  }
  BlockHeader& header() const noexcept { return *reinterpret_cast<BlockHeader*>(bytes().data()); }
  std::span<std::byte> bytes() const noexcept {
    if (const auto* const child = std::get_if<ChildParts>(&parts)) return child->block.bytes();
    return std::get<ThreadParts>(parts).block.bytes;
  }

  Workers::State& workers;
  std::variant<ChildParts, ThreadParts> parts;
  std::uint64_t memory_offset = 0;  // that of the header, which the worker may change
  std::atomic<bool> has_ended{false};
};

Result<Workers> Workers::open() {
  auto bell = base::SharedBlock::create(Bytes{sizeof(std::atomic<std::uint32_t>)});
  if (!bell) return std::move(bell).error();
  return Workers(std::unique_ptr<State>(new State{*std::move(bell)}));
}

Workers::Workers(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Workers::Workers(Workers&&) noexcept = default;
Workers::~Workers() = default;

void Workers::ring() const noexcept { base::signal_change(state_->bell()); }
std::uint32_t Workers::calls() const noexcept { return state_->bell(); }

void Workers::wait(std::uint32_t seen, Instant until) const noexcept {
  if (!base::seen_before_parking([&] { return calls() != seen; }))
    base::await_change(state_->bell(), seen, until);
}

namespace {

/// Returns the size of a block: its header, the message and the memory.
Result<std::uint64_t> block_size(const WorkerOptions& options) {
  const std::uint64_t before = aligned(sizeof(BlockHeader)) + aligned(options.message.size());
  if (options.memory.count > ~0ull - before - block_alignment)
    return Error(Errc::out_of_memory,
                 base::text("The memory of a worker ({}) cannot be allocated.", to_string(options.memory)));
  return before + options.memory.count;
}

/// Returns the offset of the memory.
std::uint64_t write_header(std::span<std::byte> bytes, std::span<const std::byte> message) {
  auto* const header = new (bytes.data()) BlockHeader;
  header->message_bytes = message.size();
  header->memory_offset = aligned(sizeof(BlockHeader)) + aligned(message.size());
  std::ranges::copy(message, bytes.begin() + static_cast<std::ptrdiff_t>(aligned(sizeof(BlockHeader))));
  return header->memory_offset;
}

}  // namespace

Result<Worker> Workers::start(const WorkerOptions& options) {
  const auto size = block_size(options);
  if (!size) return size.error();
  return options.body ? start_thread(options, *size) : start_process(options, *size);
}

Result<Worker> Workers::start_thread(const WorkerOptions& options, std::uint64_t size) {
  std::unique_ptr<Worker::State> state;
  try {
    state = std::make_unique<Worker::State>(*state_, ThreadParts{ThreadBlock(size)});
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory,
                 base::text("The host has no memory for a worker ({}).", to_string(Bytes{size})));
  }
  auto& parts = std::get<ThreadParts>(state->parts);
  state->memory_offset = write_header(parts.block.bytes, options.message);
  BlockHeader& header = state->header();
  header.has_joined = 1;
  parts.end.emplace(WorkerEnd(std::make_unique<WorkerEnd::State>(WorkerEnd::State{
      .header = &header,
      .bell = &state_->bell(),
      .message = parts.block.bytes.subspan(aligned(sizeof(BlockHeader)), options.message.size()),
      .memory = parts.block.bytes.subspan(state->memory_offset)})));
  auto thread = base::Worker::start(options.name, [worker = state.get(), body = options.body] {
    auto& own = std::get<ThreadParts>(worker->parts);
    body(*own.end);
    worker->has_ended = true;
    own.end->ring();
  });
  if (!thread) return std::move(thread).error();
  parts.thread.emplace(*std::move(thread));
  return Worker(std::move(state));
}

Result<Worker> Workers::start_process(const WorkerOptions& options, std::uint64_t size) {
  if (!state_->watch) {
    auto watch = base::DescriptorWatch::start("wye-workers");
    if (!watch) return std::move(watch).error();
    state_->watch.emplace(*std::move(watch));
  }
  auto block = base::SharedBlock::create(Bytes{size});
  if (!block) return std::move(block).error();
  const std::uint64_t memory_offset = write_header(block->bytes(), options.message);
  auto output = base::OutputTail::open();
  if (!output) return std::move(output).error();
  base::SpawnOptions spawn{.arguments = {"wye-worker", options.name},
                           .variables = options.variables,
                           .descriptors = {block->descriptor(), state_->bell_block.descriptor()},
                           .standard_error = output->writing_end()};
  spawn.variables.emplace_back(worker_variable, std::to_string(base::process_number()));
  auto process = base::SpawnedProcess::start(spawn);
  if (!process) return std::move(process).error();
  output->close_writing_end();
  auto state = std::make_unique<Worker::State>(
      *state_, ChildParts{*std::move(block), std::make_shared<base::OutputTail>(*std::move(output)),
                          *std::move(process)});
  state->memory_offset = memory_offset;
  const auto& child = std::get<ChildParts>(state->parts);
  state_->watch->add(child.output->reading_end(), [output = child.output] { return output->read_arrived(); });
  state_->watch->add(child.process.descriptor(), [worker = state.get()] {
    worker->has_ended = true;
    base::signal_change(worker->workers.bell());
    return false;
  });
  return Worker(std::move(state));
}

Worker::Worker(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Worker::Worker(Worker&&) noexcept = default;
Worker::~Worker() {
  if (state_) ask_to_end();
}

std::span<std::byte> Worker::memory() const noexcept {
  return state_->bytes().subspan(state_->memory_offset);
}

void Worker::wake() noexcept { base::signal_change(state_->header().calls); }

void Worker::ask_to_end() noexcept {
  state_->header().is_ending = true;
  wake();
}

bool Worker::is_process() const noexcept { return std::holds_alternative<ChildParts>(state_->parts); }

std::int64_t Worker::process_number() const noexcept {
  const auto* const child = std::get_if<ChildParts>(&state_->parts);
  return child ? child->process.number() : 0;
}

bool Worker::has_joined() const noexcept { return state_->header().has_joined != 0; }

bool Worker::has_ended() const noexcept { return state_->has_ended; }

void Worker::kill() noexcept {
  if (auto* const child = std::get_if<ChildParts>(&state_->parts)) child->process.kill();
}

WorkerExit Worker::collect() {
  auto* const child = std::get_if<ChildParts>(&state_->parts);
  if (!child) {
    std::get<ThreadParts>(state_->parts).thread.reset();
    return {.reason = "returned", .output = {}};
  }
  state_->unwatch(*child);
  const base::ProcessEnd end = child->process.collect();
  (void)child->output->read_arrived();
  return {.reason = end.text(),
          .is_by_signal = end.how == base::ProcessEnd::How::killed,
          .number = end.number,
          .output = child->output->text()};
}

}  // namespace wye::process
