#pragma once
/// Builds in which their process ended, counted across processes.
#include <wye/base/result.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/child_process.hpp"
#include "base/digest.hpp"
#include "base/file.hpp"
#include "base/wall_time.hpp"

namespace wye::inline v0::cache {

/// The processes that have ended in a build, or in another call that is marked.
struct Deaths {
  /// Processes in a row that ended in it for a reason that is not known: it crashed, or the process
  /// was killed.
  unsigned interrupted = 0;
  /// How a child process that repeated it has ended; unset if none has.
  std::optional<base::Crash> crash = {};
  std::uint8_t step = 0;     ///< in which the last process ended
  std::uint32_t minute = 0;  ///< of the last try, since 1970

  /// Returns the minutes after the last try in which it is not tried again if no child process can
  /// tell why it ends: none after one interruption, then 1, 2, 4 ... 60.
  std::uint32_t pause() const noexcept;
  friend bool operator==(const Deaths&, const Deaths&) = default;
};

/// A file of marks. The key of a build determines the place of its mark. A mark is set before the
/// build and cleared after it. If the holder of a key's claim finds its mark set, the process that
/// set it has died. The mark does not tell why.
///
/// If two builds share a place (one pair in 4096), the later mark counts. A death may be missed,
/// but none is invented.
/// Threads: thread-safe; all but `deaths` and `clear` of one key under the claim on it.
class BuildMarks {
 public:
  /// A mark expires after this number of minutes. A mark that lies further in the future, because
  /// the clock was set back, has expired too: no mark lives longer than twice this time.
  static constexpr std::uint32_t minutes_kept = 60;

  /// `now` returns the minutes since 1970.
  /// Errors: io.
  static Result<BuildMarks> open(const std::string& path, std::uint32_t (*now)() = base::minutes_since_1970);

  /// Returns the deaths in the build of `what` since its last success, without a build in progress.
  /// Errors: io.
  Result<Deaths> deaths(const Digest& what) const;
  /// Counts the process that has left the mark of `what` set, if there is one. Returns the deaths.
  /// Errors: io.
  Result<Deaths> settle(const Digest& what);
  /// Sets the mark of `what`, whose build begins `step`. `before` has its deaths.
  void reach(const Digest& what, const Deaths& before, std::uint8_t step) noexcept;
  /// Notes that a child process has crashed: `deaths` says how.
  void note_crash(const Digest& what, const Deaths& deaths) noexcept;
  /// Returns whether `deaths` are too recent for another try: see `Deaths::pause`.
  bool is_paused(const Deaths& deaths) const noexcept;
  /// Clears the mark and forgets the deaths: the build has ended and its process lives.
  void end(const Digest& what) noexcept;
  /// Forgets all deaths.
  /// Errors: io.
  Result<void> clear();

 private:
  struct Mark;
  BuildMarks(base::RandomFile file, std::uint32_t (*now)()) : file_(std::move(file)), now_(now) {}
  Result<std::optional<Mark>> read(const Digest& what) const;
  Result<void> write(const Digest& what, const Mark& mark);

  base::RandomFile file_;
  std::uint32_t (*now_)();
};

}  // namespace wye::cache
