#pragma once
/// Commands as data. Barriers are part of the data and are planned only here.
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/barriers.hpp"
#include "device/operand.hpp"

namespace wye::inline v0::device {

class BufferBase;
class ExecutableBase;
class StampsBase;

/// Bytes [offset, offset + size) of a buffer.
struct BufferRange {
  std::shared_ptr<BufferBase> buffer;
  Bytes offset;
  Bytes size;
};

struct Command {
  enum class Kind : std::uint8_t {
    upload,       ///< `source` -> operand 0
    download,     ///< operand 0 -> `target`
    copy,         ///< operand 0 -> operand 1, same size
    fill,         ///< operand 0, 4-byte `pattern`; offset and size are multiples of 4
    dispatch,     ///< `executable` over `items`
    release,      ///< hands operand 0, shared memory, over to another driver
    acquire,      ///< takes operand 0 back, with the writes of the other driver
    stamp_begin,  ///< takes the time at which all earlier commands have completed
    stamp_end,    ///< takes that time too
  };
  Kind kind = Kind::dispatch;
  bool barrier = false;       ///< all earlier commands complete before it and are visible to it
  bool is_ordered = false;    ///< it has a barrier, even if its memory needs none
  std::uint32_t first = 0;    ///< index of its first operand in the recording
  std::uint32_t count = 0;    ///< of its operands
  std::uint32_t pattern = 0;  ///< of a fill; of a stamp: the index of its stamps
  Bytes host_bytes;           ///< at `source` or `target`; the size of operand 0
  Extent3 items;
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  std::shared_ptr<ExecutableBase> executable;
};

/// A list of commands that is filled, closed, and then submitted any number of times. If its owner
/// holds the only reference, it may open the recording again and add commands or replace arguments.
/// Operands are of kind buffer, host (only for devices with Feature::host_memory), value or
/// address.
/// Threads: one thread at a time until closed, thread-safe after.
class Recording {
 public:
  void upload(std::span<const std::byte> source, BufferRange target);
  void download(BufferRange source, std::span<std::byte> target);
  void copy(BufferRange source, BufferRange target);
  void fill(BufferRange target, std::uint32_t pattern);
  void release(BufferRange memory);
  void acquire(BufferRange memory);
  /// Adds a dispatch. `arguments` are in the order of the executable's schema, which sets their
  /// access.
  void dispatch(std::shared_ptr<ExecutableBase> executable, const Arguments& arguments, Extent3 items);
  /// Takes the time at which all earlier commands have completed. A barrier precedes it, so the
  /// commands between begin and end do not overlap with earlier ones. Stamps may enclose others.
  /// Null stamps add no command: the device has no clock.
  void stamp_begin(std::shared_ptr<StampsBase> stamps);
  /// Takes the time at which all commands so far have completed. Later commands may begin before
  /// that.
  void stamp_end(const std::shared_ptr<StampsBase>& stamps);

  /// Puts a barrier before the last command, also if the memory that it reads and writes needs
  /// none.
  void order() noexcept { commands_.back().is_ordered = true; }

  /// Replaces the argument in `slot` of the dispatch with number `command`.
  /// Errors: invalid_argument (the recording is closed, or has no such dispatch or argument).
  Result<void> set(std::size_t command, std::size_t slot, Operand operand);

  /// Plans the barriers. Commands cannot be added after this.
  void close();
  /// Opens the recording again and keeps its commands.
  void reopen() noexcept { closed_ = false; }
  /// Returns a number that differs for every `close` in this process; copies have the same number.
  std::uint64_t revision() const noexcept { return revision_; }
  /// Copies `other` into the memory of this recording.
  void assign(const Recording& other);
  bool closed() const noexcept { return closed_; }
  /// Returns whether a command was added after `close`. The checked decorator refuses such a
  /// recording.
  bool misused() const noexcept { return misused_; }
  /// Returns whether each begin of stamps has one end, which follows it.
  bool has_stamps_in_pairs() const noexcept { return open_stamps_.empty() && !has_unpaired_stamp_; }
  /// Removes all commands, opens the recording and keeps its memory.
  void clear() noexcept;

  bool empty() const noexcept { return commands_.empty(); }
  std::span<const Command> commands() const noexcept { return commands_; }
  std::span<const Operand> operands(const Command& command) const noexcept {
    return std::span(operands_).subspan(command.first, command.count);
  }
  std::span<const std::shared_ptr<StampsBase>> stamps() const noexcept { return stamps_; }
  /// Returns the stamps of a `stamp_begin` or `stamp_end`.
  StampsBase& stamps_of(const Command& command) const noexcept { return *stamps_[command.pattern]; }

 private:
  Command* add(Command::Kind kind);
  void add_operand(Command& command, Operand operand);
  static void declare(const Command& command, std::size_t slot, Operand& operand);
  std::vector<Command> commands_;
  std::vector<Operand> operands_;
  std::vector<std::shared_ptr<StampsBase>> stamps_;  // in the order of their begins
  std::vector<std::uint32_t> open_stamps_;           // those without an end so far
  BarrierPlanner planner_;
  std::vector<Touch> touches_;  // of one command, used by `close`
  std::uint64_t revision_ = 0;
  bool closed_ = false;
  bool misused_ = false;
  bool has_unpaired_stamp_ = false;
};

/// Returns whether the caller holds the only reference to `recording`. If so, all uses by earlier
/// holders happen before the return.
bool unused(const std::shared_ptr<Recording>& recording) noexcept;

}  // namespace wye::device
