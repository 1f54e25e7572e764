#pragma once
/// The work of a worker.
#include <wye/base/result.hpp>
#include <wye/records/record_function.hpp>
#include <wye/runtime/runtime.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "process/helpers.hpp"
#include "process/workers.hpp"
#include "slots.hpp"

namespace wye::inline v0::records {

/// A worker that serves one set, on its own thread or in its own process.
/// Threads: one thread at a time.
class Serving {
 public:
  struct Options {
    SlotLayout layout;
    std::string device;
    std::uint32_t number = 0;
    std::uint32_t io_workers = 0;
    std::function<Result<Runtime>()> open_runtime;
  };
  Serving(process::WorkerEnd& end, const RecordFunction& function, Options options)
      : end_(end), function_(function), options_(std::move(options)) {}

  /// Prepares the worker, then runs batches until the set asks it to end.
  void run() noexcept;

 private:
  /// A batch whose items are loaded.
  struct Loading;
  Result<void> prepare();
  void begin_serving() noexcept;
  void run_batch(Slot& slot) noexcept;
  void run_loaded_batches();
  std::unique_ptr<Loading> load_batch(process::Helpers& helpers) noexcept;
  void run_loaded(Loading& batch) noexcept;
  template <class Call>
  void answer(Slot& slot, Call call) noexcept;
  Slot* next_batch() noexcept;
  std::byte* input_of(const Slot& slot) const noexcept;
  std::byte* output_of(const Slot& slot) const noexcept;
  process::WorkerEnd& end_;
  const RecordFunction& function_;
  const Options options_;
  std::optional<Runtime> runtime_;
  std::optional<RecordWorker> worker_;
  std::shared_ptr<void> state_;  // ends first
};

/// Tells the set that the worker cannot serve it.
void refuse(process::WorkerEnd& end, const Error& error);

/// The parts of the message to a worker process.
struct Order {
  SlotLayout layout;
  std::string function;
  std::string device;
  std::uint32_t number = 0;
  std::uint32_t io_workers = 0;
  Variables options;
};
std::vector<std::byte> to_bytes(const Order& order);
std::optional<Order> order_from(std::span<const std::byte> bytes);

}  // namespace wye::records
