#pragma once
/// Commands as data: what a lane is given. Barriers are part of the data, computed here and nowhere else.
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/barriers.hpp"
#include "device/operand.hpp"

namespace wye {
inline namespace v0 {
namespace device {

class BufferBase;
class ExecutableBase;

/// Elements of a buffer: bytes [offset, offset + size).
struct BufferRange {
  std::shared_ptr<BufferBase> buffer;
  Bytes offset;
  Bytes size;
};

struct Command {
  enum class Kind : std::uint8_t {
    upload,    ///< `source` -> operand 0
    download,  ///< operand 0 -> `target`
    copy,      ///< operand 0 -> operand 1, same size
    fill,      ///< operand 0, 4-byte `pattern`; offset and size are multiples of 4
    dispatch,  ///< `executable` over `items`
    release,   ///< operand 0, which another driver has too, is that one's to use from here on
    acquire,   ///< operand 0, the same, is this device's again, with what the other driver left in it
  };
  Kind kind = Kind::dispatch;
  bool barrier = false;     ///< what came before must have finished and be visible to this command
  std::uint32_t first = 0;  ///< its operands in the recording
  std::uint32_t count = 0;
  std::uint32_t pattern = 0;
  Bytes host_bytes;  ///< at `source` or `target`: as many as operand 0 has
  Extent3 items;
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  std::shared_ptr<ExecutableBase> executable;
};

/// A list of commands that is filled and closed, and then handed to lanes, any number of times. It may be opened again, to
/// be added to or given other arguments, when nobody else holds it.
/// Operands are of kind buffer, host (only for devices with Feature::host_memory), value or address.
/// Threads: one thread at a time until closed, thread-safe after.
class Recording {
 public:
  void upload(std::span<const std::byte> source, BufferRange target);
  void download(BufferRange source, std::span<std::byte> target);
  void copy(BufferRange source, BufferRange target);
  void fill(BufferRange target, std::uint32_t pattern);
  void release(BufferRange memory);
  void acquire(BufferRange memory);
  /// `arguments` in the order of the executable's schema; their access is set from it.
  void dispatch(std::shared_ptr<ExecutableBase> executable, const Arguments& arguments, Extent3 items);

  /// Makes `operand` the argument in `slot` of the dispatch that is command number `command`.
  /// Errors: invalid_argument: it is closed, or has no such command, or that no such argument.
  Result<void> set(std::size_t command, std::size_t slot, Operand operand);

  /// Plans the barriers; nothing can be added after.
  void close();
  /// Open again, with the commands it has.
  void reopen() noexcept { closed_ = false; }
  /// Different for all that was ever closed; equal for copies.
  std::uint64_t revision() const noexcept { return revision_; }
  /// Makes this one a copy, keeping its memory.
  void assign(const Recording& other);
  bool closed() const noexcept { return closed_; }
  /// What was added after `close`, if anything: misuse, found by the checked decorator.
  bool misused() const noexcept { return misused_; }
  /// Empty and open again, keeping its memory.
  void clear() noexcept;

  bool empty() const noexcept { return commands_.empty(); }
  std::span<const Command> commands() const noexcept { return commands_; }
  std::span<const Operand> operands(const Command& command) const noexcept {
    return std::span(operands_).subspan(command.first, command.count);
  }

 private:
  Command* add(Command::Kind kind);
  void add_operand(Command& command, Operand operand);
  static void declare(const Command& command, std::size_t slot, Operand& operand);
  std::vector<Command> commands_;
  std::vector<Operand> operands_;
  BarrierPlanner planner_;
  std::vector<Touch> touches_;  // of one command, while planning
  std::uint64_t revision_ = 0;
  bool closed_ = false;
  bool misused_ = false;
};

/// Whether nobody but the caller holds `recording`. What the last other holder did comes before what the caller does next.
bool unused(const std::shared_ptr<Recording>& recording) noexcept;

}  // namespace device
}  // namespace v0
}  // namespace wye
