#pragma once
/// The batches of a lane: in flight, or idle until a later submission uses them.
#include <wye/base/result.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace wye::inline v0::device {

/// Recycles the batches of a lane. A batch is a submission, or a part of one, with all objects that
/// it needs until the device has completed it. `Batch` has `value`, a list `downloads` and
/// `staging.held`, the bytes of staging memory that it holds.
/// Threads: one thread at a time.
/// Cost:    allocates only when more batches are in flight than ever before.
template <class Batch>
class Batches {
 public:
  /// Returns an idle batch. If there is none, `make()` creates one
  /// (Result<std::unique_ptr<Batch>>).
  template <class Make>
  Result<Batch*> take(Make make) {
    if (idle_.empty()) {
      all_.reserve(all_.size() + 1);
      in_flight_.reserve(all_.capacity());
      idle_.reserve(all_.capacity());
      auto made = make();
      if (!made) return std::move(made).error();
      idle_.push_back(made->get());
      all_.push_back(*std::move(made));
    }
    Batch* const batch = idle_.back();
    idle_.pop_back();
    return batch;
  }
  /// Returns a batch that was taken and holds nothing.
  void give_back(Batch& batch) noexcept { idle_.push_back(&batch); }
  /// Adds a batch to those in flight: it was submitted to the driver, or is pending.
  void start(Batch& batch) noexcept { in_flight_.push_back(&batch); }
  /// Calls `retire` with every batch up to the value `reached` that has no downloads, and makes it
  /// idle.
  template <class Retire>
  void collect(std::uint64_t reached, Retire retire) noexcept {
    const auto completed = [&](Batch* batch) {
      if (batch->value > reached || !batch->downloads.empty()) return false;
      retire(*batch);
      idle_.push_back(batch);
      return true;
    };
    in_flight_.erase(std::remove_if(in_flight_.begin(), in_flight_.end(), completed), in_flight_.end());
  }
  bool has_idle() const noexcept { return !idle_.empty(); }
  /// Returns the batches in flight, in submission order.
  const std::vector<Batch*>& in_flight() const noexcept { return in_flight_; }
  /// Returns the first batch that frees staging memory when it completes; null if there is none.
  const Batch* first_with_staging() const noexcept {
    const auto found = std::find_if(in_flight_.begin(), in_flight_.end(), [](const Batch* batch) {
      return batch->staging.held != 0 && batch->downloads.empty();
    });
    return found == in_flight_.end() ? nullptr : *found;
  }
  void clear() noexcept {
    in_flight_.clear();
    idle_.clear();
    all_.clear();
  }

 private:
  std::vector<std::unique_ptr<Batch>> all_;
  std::vector<Batch*> in_flight_;
  std::vector<Batch*> idle_;
};

}  // namespace wye::device
