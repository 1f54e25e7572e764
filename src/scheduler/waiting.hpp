#pragma once
/// The part of a job that the queue of its scheduler owns.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/scheduler/job.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "scheduler/time_book.hpp"

namespace wye::inline v0::scheduler {

struct Line;
struct TagState;

enum class State : std::uint8_t {
  waiting,    ///< for its predecessors: the users of its arrays that it follows
  queued,     ///< ready to run
  staging,    ///< ready to run, while a worker prepares its device (`Workers::stage`)
  running,    ///< on a thread, which prepares, runs or completes it
  in_flight,  ///< submitted to a device; it holds no thread
  returned,   ///< its submission has completed, failed or run out of time; a worker runs it next
  settled,
  abandoned,  ///< settled while it runs: see `Core::close`
};

/// The place of a job that runs on wye's threads, and its line. Device `d` has place `1 + d`, and a
/// line with that number for jobs that run there only.
inline constexpr std::uint16_t on_threads = 0;

/// Returns the line of jobs that may run on the devices equal to `first`, which is the first of them,
/// and move to others. A pool has at most `devices`.
constexpr std::uint16_t shared_line(std::size_t devices, std::size_t first) noexcept {
  return static_cast<std::uint16_t>(devices + 2 + first);
}

/// The priorities of jobs, the highest first.
inline constexpr std::size_t levels = 3;

/// Why a device has taken a job.
enum class Chosen : std::uint8_t {
  by_order,  ///< it is one of the first devices that can run the job, in the order of the table
  by_time,   ///< it has run jobs like it in less time than these
  idle,      ///< it had less to do
  trial,     ///< how long it takes now is not known
};

/// A job in its line.
struct InLine {
  Line* line = nullptr;       ///< null: it does not wait
  std::uint32_t entries = 0;  ///< made for it in lines: see `Entry`
  bool is_staged = false;     ///< one of the staged jobs of its place
  bool is_held = false;       ///< set aside until its tag has room
  bool is_due_here = false;   ///< it prefers these devices because they start it by its `start_by`
  Duration expected{};        ///< its run time, while its line expects it
};

/// The choice of the device of a job that begins to run.
struct Choosing {
  Chosen chosen = Chosen::by_order;
  Duration estimate{};             ///< of its time there; zero: it was not known
  TimeBook::Row* times = nullptr;  ///< of its kind there; null: they are not observed
  Instant committed{};             ///< when its place took it
  Instant ends{};                  ///< `estimate` after that; under the mutex of the scheduler
  Duration share{};                ///< of its processor (`Places::share`) at that time
  double part = 1;                 ///< of the time until it settled, that it had the processor
};

struct Waiting;

/// A job in a list: of jobs that wait for the limit of their tag, of returned jobs, or of the members of
/// a batch.
struct Listed {
  Waiting* next = nullptr;
  std::shared_ptr<Waiting> self;  ///< while it is in one of these lists
};

/// A job as `Ready` keeps it.
/// Threads: the state changes by compare-and-swap. The members up to `may_share` are set before the
///          job is ready; the others are under the mutex of the scheduler.
struct Waiting {
  std::atomic<State> state{State::queued};
  Priority priority = Priority::normal;
  bool uses_arrays = false;
  bool has_own_limits = false;      ///< its options have a `start_by` or a time limit
  bool may_share = false;           ///< a submission with other jobs: `Queue::take_batch_locked`
  std::uint16_t line = on_threads;  ///< of the places that it waits for
  /// It runs here, or is staged here. `on_threads` while it waits in a line of several devices.
  std::uint16_t place = on_threads;
  std::uint64_t sequence = 0;   ///< in the order of submission
  std::uint64_t kernels = 0;    ///< `number_of_kernels`
  std::uint64_t movable = 0;    ///< bit `d`: device `d`, which is not of its line, can run it too
  std::uint64_t preferred = 0;  ///< bit `d`: it prefers device `d`; 0: it prefers none
  TimeBook::Named named;
  Bytes size;  ///< of its operands
  Instant submitted{};
  Instant start_by = Instant::max();
  Instant due{};  ///< its place in the order within its priority
  InLine waits;
  Choosing runs;
  TagState* tag_state = nullptr;  ///< null: nothing depends on its tag
  Listed listed;

  /// Returns its kind on a group of equal devices.
  TimeBook::Key kind(std::uint16_t group) const noexcept {
    return {
        .kernels = kernels, .size_class = static_cast<std::uint16_t>(size_class(size.count)), .group = group};
  }
  /// Returns whether a device that is not of the first ones of its line can run it.
  bool may_move_to(std::uint16_t at) const noexcept {
    return at != on_threads && at <= 64 && (movable >> (at - 1) & 1) != 0;
  }
  /// Returns the index of its priority among the levels.
  std::size_t level() const noexcept { return levels - 1 - static_cast<std::size_t>(priority); }
};

}  // namespace wye::scheduler
