#pragma once
/// Which of several kernels that do the same is the quickest, for each device and size of work: found out by running them.
#include <wye/base/clock.hpp>
#include <wye/base/error.hpp>
#include <wye/kernel/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/contract.hpp"

namespace wye {
inline namespace v0 {
namespace scheduler {

/// The variants of one kernel, on one device, for work of one size. Each is run three times, in turns; one that took over twice
/// the time of another in two runs each is left alone. The least time of a variant counts: what else the device had to do
/// only adds to it, and so does loading, which the first run has.
/// Threads: thread-safe.
class Trial {
 public:
  /// Of those of `programs` that have a source for `device`; of the first, where none has.
  Trial(const detail::Programs& programs, const device::DeviceBase& device);

  struct Turn {
    std::size_t program = 0;
    bool timed = false;  ///< `took` wants to know
  };
  /// The variant to run next: one that has a run left, where the job `may_try`, else the quickest. Where all were given up, all
  /// begin anew.
  Turn next(bool may_try);
  void took(std::size_t program, Duration time);
  /// It cannot be used here, for the reason in `why`.
  void give_up(std::size_t program, Error why);
  /// What a job that ran `program` can say of it now; nothing where there is one kernel only.
  std::string text(std::size_t program) const;

 private:
  struct Variant {
    std::size_t program;
    std::string name;
    std::uint32_t begun = 0;  // runs that were to be timed: those of jobs that failed count too
    std::uint32_t runs = 0;   // that were
    Duration best = Duration::max();
    std::optional<Error> why = std::nullopt;  // it was given up
  };
  Variant& variant_of(std::size_t program);
  std::size_t usable() const;
  bool has_run_left(const Variant& variant) const;
  bool is_open() const;

  mutable std::mutex mutex_;
  std::vector<Variant> variants_;
};

/// Every trial of a scheduler. Those of kernels that are no more stay until there are 4096, when all begin anew.
/// Threads: thread-safe.
class Trials {
 public:
  /// That of `call` on device number `device`.
  std::shared_ptr<Trial> of(const Call& call, std::size_t device, const device::DeviceBase& base);

 private:
  /// Device, programs, of which no two have one number, and the sizes of the grid and the operands.
  using Key = std::vector<std::uint64_t>;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Trial>> trials_;
};

/// The quarter of an octave that `n` lies in: 0 of 0 and 1, 4 of 2, 6 of 3, 8 to 11 of 4 to 7.
std::uint32_t size_class(std::uint64_t n) noexcept;

}  // namespace scheduler
}  // namespace v0
}  // namespace wye
