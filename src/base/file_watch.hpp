#pragma once
/// Notification of changes to files.
#include <wye/base/result.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/worker.hpp"

namespace wye::inline v0::base {

/// Calls back when a watched file is written, replaced, created or removed.
/// Threads: one thread of its own makes the calls and is parked otherwise. The system cannot watch
///          a directory that is missing or on another machine, or when the user's watches are used
///          up. Then the thread examines the files twice a second.
class FileWatch {
 public:
  /// Starts the thread, with no file to watch. It calls `changed` once per burst of changes, 20 ms
  /// after the last change. `changed` must not throw.
  /// Errors: unavailable (no thread can be started), io (the system gives no descriptor).
  static Result<FileWatch> start(std::function<void()> changed);

  /// Replaces the set of watched files. They need not exist. Calls back once, because earlier
  /// changes cannot be detected.
  void watch(std::vector<std::string> paths);
  /// Calls back once, as after a change.
  void ring();

  FileWatch(FileWatch&&) noexcept = default;
  FileWatch& operator=(FileWatch&&) = delete;
  /// Waits for a call in progress, unless that call destroys the watch. No call follows.
  ~FileWatch();

 private:
  class Watcher;
  explicit FileWatch(std::shared_ptr<Watcher> watcher);
  std::shared_ptr<Watcher> watcher_;
  std::optional<Worker> worker_;
};

}  // namespace wye::base
