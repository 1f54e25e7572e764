#pragma once
/// Builds that ended their process, counted across processes.
#include <wye/base/result.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/digest.hpp"
#include "base/file.hpp"
#include "base/wall_time.hpp"

namespace wye::inline v0::cache {

/// A file of marks. The key of a build determines the place of its mark. A mark is set before the
/// build and cleared after it. If the holder of a key's claim finds its mark set, the process that
/// set it has died.
///
/// If two builds share a place (one pair in 4096), the later mark counts. A death may be missed,
/// but none is invented.
/// Threads: thread-safe; `begin` and `end` of one key under the claim on it.
class BuildMarks {
 public:
  /// After so many deaths in a row a build is not tried again until its mark expires.
  static constexpr unsigned most_deaths = 2;
  /// A mark expires after this number of minutes. A mark that lies further in the future, because
  /// the clock was set back, has expired too: no mark lives longer than twice this time.
  static constexpr std::uint32_t minutes_kept = 60;

  /// `now` returns the minutes since 1970.
  /// Errors: io.
  static Result<BuildMarks> open(const std::string& path, std::uint32_t (*now)() = base::minutes_since_1970);

  /// Returns the number of processes that the build of `what` has ended since its last success.
  /// Errors: io.
  Result<unsigned> deaths(const Digest& what) const;
  /// Sets the mark of `what` if there were fewer than `most_deaths` deaths. Returns their number.
  /// Errors: io.
  Result<unsigned> begin(const Digest& what);
  /// Clears the mark: the build has ended and its process lives.
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
