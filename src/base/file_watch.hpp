#pragma once
/// Being told when files change.
#include <wye/base/result.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/worker.hpp"

namespace wye {
inline namespace v0 {
namespace base {

/// Calls back when any of some files was written, replaced, made or removed.
/// Threads: one of its own, which makes the calls and is parked otherwise. Where the system can't watch a file's directory (it is
///          not there or on another machine, the user's watches are used up), that thread looks at the files twice a second
///          instead.
class FileWatch {
 public:
  /// `changed` is called once for a burst of changes, when nothing has changed for 20 ms. It must not throw. No file is
  /// watched yet.
  /// Errors: unavailable (no thread can be started), io (the system gives no descriptor).
  static Result<FileWatch> start(std::function<void()> changed);

  /// Watches these files from now on and no others. They need not exist. What changed before nobody can tell: it calls back
  /// once, as after a change.
  void watch(std::vector<std::string> paths);
  /// Calls back once, as after a change.
  void ring();

  FileWatch(FileWatch&&) noexcept = default;
  FileWatch& operator=(FileWatch&&) = delete;
  /// No call is made after it, and one under way has returned (but for one that ends the watch itself).
  ~FileWatch();

 private:
  class Watcher;
  explicit FileWatch(std::shared_ptr<Watcher> watcher);
  std::shared_ptr<Watcher> watcher_;
  std::optional<Worker> worker_;
};

}  // namespace base
}  // namespace v0
}  // namespace wye
