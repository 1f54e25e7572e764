#pragma once
/// The submissions of a lane that are in flight, and the objects that are used again for later ones.
#include <wye/base/result.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace wye {
inline namespace v0 {
namespace device {

/// Recycles the flights of a lane. A flight is a submission, or a part of one, with all that it needs until the device has
/// completed it. `Flight` has `value`, a list `downloads` and `staging.held`, the bytes of staging memory that it holds.
/// Threads: one thread at a time.
/// Cost:    allocates only when more flights are in flight than ever before.
template <class Flight>
class Flights {
 public:
  /// Returns a flight that is not in flight; `make()` makes one (Result<std::unique_ptr<Flight>>) if there is none.
  template <class Make>
  Result<Flight*> take(Make make) {
    if (idle_.empty()) {
      all_.reserve(all_.size() + 1);
      in_flight_.reserve(all_.capacity());
      idle_.reserve(all_.capacity());
      auto made = make();
      if (!made) return std::move(made).error();
      idle_.push_back(made->get());
      all_.push_back(*std::move(made));
    }
    Flight* const flight = idle_.back();
    idle_.pop_back();
    return flight;
  }
  /// Gives back a flight that was taken and holds nothing.
  void give_back(Flight& flight) noexcept { idle_.push_back(&flight); }
  /// Notes that the device was given a flight.
  void start(Flight& flight) noexcept { in_flight_.push_back(&flight); }
  /// Calls `retire` with every flight up to the value `reached` that has no download left, and takes it back.
  template <class Retire>
  void collect(std::uint64_t reached, Retire retire) noexcept {
    const auto completed = [&](Flight* flight) {
      if (flight->value > reached || !flight->downloads.empty()) return false;
      retire(*flight);
      idle_.push_back(flight);
      return true;
    };
    in_flight_.erase(std::remove_if(in_flight_.begin(), in_flight_.end(), completed), in_flight_.end());
  }
  bool has_idle() const noexcept { return !idle_.empty(); }
  /// Returns the flights in flight, in the order of their submission.
  const std::vector<Flight*>& in_flight() const noexcept { return in_flight_; }
  /// Returns the first flight that gives staging memory back as soon as it is completed; null if there is none.
  const Flight* first_with_staging() const noexcept {
    const auto found = std::find_if(in_flight_.begin(), in_flight_.end(), [](const Flight* flight) {
      return flight->staging.held != 0 && flight->downloads.empty();
    });
    return found == in_flight_.end() ? nullptr : *found;
  }
  void clear() noexcept {
    in_flight_.clear();
    idle_.clear();
    all_.clear();
  }

 private:
  std::vector<std::unique_ptr<Flight>> all_;
  std::vector<Flight*> in_flight_;
  std::vector<Flight*> idle_;
};

}  // namespace device
}  // namespace v0
}  // namespace wye
