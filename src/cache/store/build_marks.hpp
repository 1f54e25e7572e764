#pragma once
/// Builds that ended their process, counted across processes.
#include <wye/base/result.hpp>
#include "base/digest.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/file.hpp"
#include "base/wall_time.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

/// A file of marks, each at the place of what it names: one is set before a build and taken away after it. Who holds
/// the claim on a key and finds its mark set knows that the one who set it has died.
///
/// Of two builds that share a place (one pair in 4096), the later one's mark counts: a death may be missed, none is
/// made up.
/// Threads: thread-safe; `begin` and `end` of one key under the claim on it.
class BuildMarks {
 public:
  /// After so many deaths in a row a build is not tried again until its mark expires.
  static constexpr unsigned most_deaths = 2;
  /// A mark expires so many minutes after it was set. One from further ahead than that, which a clock that was set back
  /// leaves behind, has expired too: no mark outlives twice this time.
  static constexpr std::uint32_t minutes_kept = 60;

  /// `now` returns the minutes since 1970.
  /// Errors: io.
  static Result<BuildMarks> open(const std::string& path, std::uint32_t (*now)() = base::minutes_since_1970);

  /// Deaths of those who have built `what`, since one of them ended well.
  /// Errors: io.
  Result<unsigned> deaths(const Digest& what) const;
  /// Sets the mark of `what`, if there have been fewer than `most_deaths`. Returns how many.
  /// Errors: io.
  Result<unsigned> begin(const Digest& what);
  /// Takes it away: the build is over and its process lives.
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

}  // namespace cache
}  // namespace v0
}  // namespace wye
