#pragma once
/// How long jobs and kernels take.
#include <wye/base/clock.hpp>
#include <wye/scheduler/job.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/stamps.hpp"
#include "scheduler/stored_times.hpp"
#include "scheduler/timing.hpp"

namespace wye::inline v0::scheduler {

/// Returns a number for the kernels of the calls of a job, in their order: a part of
/// `ProgramDigests::in_process`, so kernels that are made again have the same number. They have another one if
/// their elements are of another type, because a digest contains the types of all parameters.
std::uint64_t number_of_kernels(const Job& job) noexcept;
/// Returns the number of one kernel.
std::uint64_t number_of_kernel(const device::Program& program) noexcept;
/// The same by `ProgramDigests::stored`, equal in every process. Functions of the application that have
/// the same kernel name and parameters have the same number.
std::uint64_t stored_number_of_kernels(const Job& job) noexcept;
std::uint64_t stored_number_of_kernel(const device::Program& program) noexcept;
/// Returns a number that differs, almost surely, for other numbers and for another order of them.
constexpr std::uint64_t combine(std::uint64_t first, std::uint64_t second) noexcept {
  const std::uint64_t mixed = (first ^ (second + 0x9e3779b97f4a7c15)) * 0xff51afd7ed558ccd;
  return mixed ^ mixed >> 32;
}

/// Keeps the times of jobs by kind: their kernels, the size of their operands to a quarter of an
/// octave, and their group of equal devices. An octave would be too wide: the times of products of
/// matrices differ in it by a factor of 2.8, which is no spread of one kind. Also keeps the times of
/// calls that were timed alone, to compare variants.
/// Rows are never removed: jobs refer to them. Beyond `most` kinds no further one gets a row.
/// Threads: thread-safe. Its mutex is a leaf. The functions of `Row`, `samples` and `known_kinds` take
/// no lock.
class TimeBook {
  struct History;

 public:
  struct Key {
    std::uint64_t kernels = 0;     ///< `number_of_kernels`; of a call, combined with its shape
    std::uint16_t size_class = 0;  ///< of the bytes of all operands
    std::uint16_t group = 0;       ///< of equal devices: the place of the first one
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// The workload type and the name of a job, and the number of its kernels in storage.
  struct Named {
    WorkloadType type = workload_types::custom;
    std::string_view job = {};
    std::uint64_t stored = 0;  ///< `stored_number_of_kernels`; 0: its times are not stored
  };
  /// The times of one kind.
  struct Times {
    Timing held;      ///< from the start of a job to its end, without builds
    Timing share;     ///< of these, the parts that the jobs had their processor: see `Places::share`
    Timing run;       ///< of these, the times without transfers and waits for a lane
    Instant last{};   ///< when the last job of the kind ended
    Timing commands;  ///< of the jobs that `samples` has chosen: their commands, all by `clock`
    /// Of `commands`. A first time by the device's clock replaces those by the host's clock; later
    /// ones by the host's clock are not added.
    device::StampClock clock = device::StampClock::host;
  };
  /// A kind in a book. It does not move.
  class Row {
   public:
    /// Returns the mean of `Times::share`, the time of a job that has its processor alone; zero: it
    /// is not known.
    Duration mean() const noexcept { return Duration(mean_.load(std::memory_order_relaxed)); }
    /// Returns the mean of `Times::held`; zero: it is not known.
    Duration held() const noexcept { return Duration(held_.load(std::memory_order_relaxed)); }
    /// Returns whether jobs of its kernels, of any size, have run on its group.
    bool has_run() const noexcept { return history_->has_run.load(std::memory_order_relaxed); }
    /// Returns how long jobs of its kernels have run on all groups.
    Duration run() const noexcept;
    /// Returns how long they have since one ran on its group; in all if none did.
    Duration run_since() const noexcept;
    /// Returns how many jobs of them have.
    std::uint64_t jobs_since() const noexcept;
    /// Returns whether they may be tried on its group: see `TimeBook::delay_trials`.
    bool may_be_tried() const noexcept;
    WorkloadType type() const noexcept;

   private:
    friend class TimeBook;
    void publish() noexcept {
      mean_.store(times_.share.mean.count(), std::memory_order_relaxed);
      held_.store(times_.held.mean.count(), std::memory_order_relaxed);
    }
    Times times_;
    std::atomic<Duration::rep> mean_{0}, held_{0};
    std::atomic<std::uint32_t> jobs_{0};  // that `samples` was asked about
    bool has_noted_ = false;              // a time since the book was made
    Key key_;
    History* history_ = nullptr;
  };

  explicit TimeBook(std::size_t most = 65'536) noexcept : most_(most) {}

  /// Returns the row of a kind, which lives as long as the book. Null: the book is full and has none
  /// of this kind, or there is no memory for it. `named`: of the first job of the kernels.
  Row* row(const Key& key, const Named& named) noexcept;
  Row* row(const Key& key) noexcept { return row(key, Named()); }
  /// Returns whether the commands of the next job of a kind are to be timed, and counts the job: of
  /// the first eight they are, and then of 1 job in 64. One atomic operation, without a lock.
  static bool samples(Row& row) noexcept;
  /// Adds the times of a job that ended at `when`. `run`: nothing if it shared its submission with
  /// others. `part`: of `held`, that it had its processor.
  void note(Row& row, Duration held, std::optional<Duration> run, Instant when, double part = 1) noexcept;
  /// Adds the time of the commands of a job that `samples` has chosen.
  void note_commands(Row& row, Duration took, device::StampClock clock) noexcept;
  /// Returns the mean time of a kind; if it is not known, a time that follows from the nearest sizes of
  /// its kernels on its group: between two sizes by interpolation of the logarithms of both times; with
  /// one, by the ratio of both sizes on another group, or in proportion to the size. Zero: none.
  Duration estimate(const Row& row) const noexcept;
  /// Returns the geometric mean of the time on the group of a row over that on another one: of the
  /// kinds of its workload type with known times on both, the first time of each, and of `believed`.
  double slowness(const Row& row, std::uint16_t other, double believed) const noexcept;
  /// Has the kernels of a row not be tried on its group before they have run `more` on others.
  void delay_trials(Row& row, Duration more) noexcept;
  /// Counts the kinds with a known time: `estimate` and `slowness` depend on it.
  std::uint64_t known_kinds() const noexcept { return known_kinds_.load(std::memory_order_relaxed); }
  /// A kind with a known time.
  struct Known {
    Key key;
    std::string job;  ///< the name of a job of its kernels
    WorkloadType type;
    Timing time;  ///< `Times::share`
    Instant last{};
  };
  /// Returns all kinds with a known time, by job, size and group. Throws: std::bad_alloc.
  std::vector<Known> known() const;
  /// Forgets all times but those of calls. The rows stay.
  void forget() noexcept;
  /// Returns the times of a kind; without a count if none is known.
  Times find(const Key& key) const noexcept;
  /// Returns the times of a row.
  Times read(const Row& row) const noexcept;

  /// A kind of calls.
  struct CallKind {
    Key key;
    std::uint64_t stored = 0;  ///< as `Key::kernels`, equal in every process; 0: its times are not stored
  };
  /// Adds the time of a call that ran alone, unless there is no memory for it.
  void note_call(const CallKind& kind, Duration took) noexcept;
  /// Returns the times of such calls.
  Timing find_call(const CallKind& kind) const noexcept;
  /// Removes the times of all calls.
  void forget_calls() noexcept;

  /// Gives kinds and calls on a group the times of an earlier process, until they have times of their
  /// own. Throws: std::bad_alloc.
  void adopt(std::uint16_t group, StoredTimes earlier);
  /// Returns the times on a group that were noted in this process, the last ones first. Throws:
  /// std::bad_alloc.
  StoredTimes noted(std::uint16_t group) const;
  /// Counts the times that were noted.
  std::uint64_t notes() const noexcept { return notes_.load(std::memory_order_relaxed); }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept {
      return static_cast<std::size_t>(combine(key.kernels, std::uint64_t{key.size_class} << 16 | key.group));
    }
  };
  struct Kernels;
  /// The jobs of some kernels on a group.
  struct History {
    Kernels* kernels = nullptr;
    std::atomic<bool> has_run{false};
    std::atomic<Duration::rep> run_before{0};   // `Kernels::run` when one last ended here
    std::atomic<std::uint64_t> jobs_before{0};  // `Kernels::jobs`, likewise
    std::atomic<Duration::rep> tried_from{0};   // of `Kernels::run`
    std::map<std::uint16_t, Row*> rows;         // by size class; null: there was no memory for it
    Duration mean(std::uint16_t size_class) const noexcept;
  };
  struct Kernels {
    WorkloadType type = workload_types::custom;
    std::string job;                     // the name of the first one
    std::uint64_t stored = 0;            // `Named::stored`
    std::atomic<Duration::rep> run{0};   // how long jobs have run, on all groups
    std::atomic<std::uint64_t> jobs{0};  // of these, since the book was made
    std::map<std::uint16_t, History> on;
  };
  /// Times of kinds on one group over those on another one.
  struct Ratios {
    double sum_of_logarithms = 0;
    std::uint32_t count = 0;
  };
  /// A group, another one, and a workload type.
  using Pair = std::tuple<std::uint16_t, std::uint16_t, std::string_view>;
  /// Times of an earlier process on a group.
  struct Earlier {
    std::unordered_map<std::uint64_t, StoredTimes::Kernels> kernels;  // by their numbers in storage
    std::map<std::pair<std::uint64_t, std::uint16_t>, Timing> calls;  // by number and size class
  };
  /// Times of the calls of one kind.
  struct CallTimes {
    Timing time;
    std::uint64_t stored = 0;
  };
  Row* add_row(const Key& key, const Named& named);
  Row& add_row(Kernels& kernels, const Key& key);
  Timing find_earlier_call(const CallKind& kind) const noexcept;
  void adopt(Kernels& kernels, std::uint64_t number, std::uint16_t group);
  void note_first_time(const Row& row) noexcept;
  static Duration follow(const Kernels& kernels, const Key& key, std::uint16_t known, Duration time) noexcept;

  const std::size_t most_;
  mutable std::mutex mutex_;
  std::unordered_map<Key, Row, Hash> rows_;
  std::unordered_map<std::uint64_t, Kernels> kernels_;
  std::map<Pair, Ratios> slowness_;
  std::atomic<std::uint64_t> known_kinds_{0};
  std::unordered_map<Key, CallTimes, Hash> calls_;
  std::map<std::uint16_t, Earlier> earlier_;  // by group
  std::atomic<std::uint64_t> notes_{0};
};

}  // namespace wye::scheduler
