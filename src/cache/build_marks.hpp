#pragma once
/// Builds that ended their process, counted across processes.
#include <wye/base/digest.hpp>
#include <wye/base/result.hpp>

#include <optional>

#include "base/file.hpp"

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
  /// So many deaths in a row, and it is not tried again.
  static constexpr unsigned most_deaths = 2;

  /// Errors: io.
  static Result<BuildMarks> open(const std::string& path);

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
  explicit BuildMarks(base::RandomFile file) : file_(std::move(file)) {}
  Result<std::optional<Mark>> read(const Digest& what) const;
  Result<void> write(const Digest& what, const Mark& mark);

  base::RandomFile file_;
};

}  // namespace cache
}  // namespace v0
}  // namespace wye
