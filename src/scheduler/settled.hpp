#pragma once
/// One job that settles, for all that watches jobs.
#include <wye/scheduler/scheduler.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace wye::inline v0::scheduler {

struct Decision;
struct Row;
struct TypeRow;

/// How a job came to its device, and its times there without builds.
struct HowPlaced {
  bool has_moved = false;  ///< the device was idle, and took it from those that waited for others
  bool was_trial = false;
  Duration expected{};  ///< zero: it was not known
  Duration taken{};
};

/// The facts about a job that settles.
/// Threads: a value; the texts and decisions are those of the job's record.
struct Settled {
  Id id;                     ///< `Ticket::id`
  std::uint64_t number = 0;  ///< of the job, in the order of submission, from 1
  std::string_view job, tag;
  WorkloadType type;
  TypeRow* row = nullptr;  ///< of its type; null: it is not counted there
  Instant at{};            ///< when it settles
  Bytes size;              ///< of its operands
  Bytes bytes_transferred;
  JobTimes times;
  std::span<const Decision> decisions = {};
  const Row* order = nullptr;  ///< of the devices; null: they had no order
  std::size_t device = 0;      ///< an index, if it completed
  Errc error{};                ///< zero: it completed
  std::uint8_t batch_size = 1;
  std::uint8_t launch_size = 1;
  bool leads_batch = false;
  bool has_run = false;    ///< it had started
  bool fell_back = false;  ///< it had failed on another device
  HowPlaced placed;
};

}  // namespace wye::scheduler
