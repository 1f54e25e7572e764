#include "base/file_watch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "base/gate.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::base {
namespace {

/// The time without changes that ends a burst. Editors write a file in several steps.
constexpr int quiet_ms = 20;
/// The period at which files are examined if their directories cannot be watched.
constexpr int examination_ms = 500;

/// Returns the path with all links resolved, or the path itself if it does not exist.
std::string resolved(const std::string& path) {
  char* const real = ::realpath(path.c_str(), nullptr);
  if (!real) return path;
  std::string result = real;
  ::free(real);
  return result;
}

/// Returns whether the system reports all changes in a directory. For network and FUSE file systems
/// it reports only the changes that this machine makes.
bool reports_changes(const std::string& directory) {
  struct statfs found {};
  if (::statfs(directory.c_str(), &found) != 0) return false;
  constexpr std::array<std::uint32_t, 8> silent{
      0x6969,     0x517b,     0xff534d42, 0xfe534d42,   // NFS, SMB, CIFS, SMB 2
      0x01021997, 0x65735546, 0x00c36400, 0x5346414f};  // 9P, FUSE, Ceph, AFS
  return std::find(silent.begin(), silent.end(), static_cast<std::uint32_t>(found.f_type)) == silent.end();
}

}  // namespace

class FileWatch::Watcher {
 public:
  Watcher(Descriptor changes, Descriptor bell, std::function<void()> changed)
      : changes_(std::move(changes)), bell_(std::move(bell)), changed_(std::move(changed)) {}

  void watch(std::vector<std::string> paths) {
    {
      const Lock lock(mutex_);
      requested_ = std::move(paths);
    }
    ring();
  }

  void ring() {
    const std::uint64_t one = 1;
    (void)!::write(bell_.number(), &one, sizeof one);
  }

  void stop() {
    {
      const Lock lock(mutex_);
      stopping_ = true;
    }
    ring();
  }

  /// Runs the thread.
  void run() {
    bool pending = false;
    while (true) {
      std::array<pollfd, 2> waits{pollfd{bell_.number(), POLLIN, 0}, pollfd{changes_.number(), POLLIN, 0}};
      const int timeout = pending ? quiet_ms : all_watched_ ? -1 : examination_ms;
      const int ready = ::poll(waits.data(), waits.size(), timeout);
      if (ready < 0 && errno != EINTR) return;
      bool changed = waits[0].revents != 0;
      if (changed && !apply_requests()) return;
      changed |= waits[1].revents != 0 && read_changes();
      if (!all_watched_) watch_directories();
      changed |= files_changed();  // last: a file may have changed before its watch began
      if (pending && !changed && ready == 0) {
        changed_();
        pending = false;
      } else {
        pending = pending || changed;
      }
    }
  }

 private:
  /// Applies the requests of the owner. Returns false if the thread must end.
  bool apply_requests() {
    std::uint64_t rings = 0;
    (void)!::read(bell_.number(), &rings, sizeof rings);
    const Lock lock(mutex_);
    if (stopping_) return false;
    if (!requested_) return true;
    files_.clear();
    for (const std::string& path : *requested_) files_.push_back({path, attributes_of(path)});
    requested_.reset();
    all_watched_ = false;
    return true;
  }

  /// Watches the directory of each file, and that of each link's target.
  void watch_directories() {
    constexpr std::uint32_t events = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE |
                                     IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
    all_watched_ = true;
    const auto before = std::exchange(directories_, {});
    for (const auto& [path, attributes] : files_)
      for (const std::string& place : {path, resolved(path)}) {
        const std::size_t slash = place.rfind('/');
        const std::string directory = slash == std::string::npos ? "." : place.substr(0, slash + 1);
        const int number = ::inotify_add_watch(changes_.number(), directory.c_str(), events);
        all_watched_ = all_watched_ && number >= 0 && reports_changes(directory);
        if (number < 0) continue;
        directories_[number].push_back(place.substr(slash + 1));  // npos + 1 is 0
      }
    for (const auto& [number, names] : before)
      if (!directories_.contains(number)) ::inotify_rm_watch(changes_.number(), number);
  }

  /// Reads the system's events. Returns whether one is about a watched file.
  bool read_changes() {
    alignas(inotify_event) std::array<char, 4096> buffer;
    bool ours = false;
    ssize_t size = 0;
    while ((size = ::read(changes_.number(), buffer.data(), buffer.size())) > 0) {
      for (ssize_t at = 0; at < size;) {
        inotify_event event;
        std::memcpy(&event, buffer.data() + at, sizeof event);
        const std::string name(event.len == 0 ? "" : buffer.data() + at + sizeof event);
        at += static_cast<ssize_t>(sizeof event + event.len);
        if (event.mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF | IN_Q_OVERFLOW)) {
          ours = true;
          all_watched_ = false;  // tried again
          if (event.mask & IN_IGNORED) directories_.erase(event.wd);
        }
        const auto directory = directories_.find(event.wd);
        if (directory == directories_.end()) continue;
        const std::vector<std::string>& names = directory->second;
        ours = ours || std::find(names.begin(), names.end(), name) != names.end();
      }
    }
    return ours;
  }

  /// Returns whether a file differs from its last examination.
  bool files_changed() {
    bool different = false;
    for (auto& [path, attributes] : files_) {
      const Attributes now = attributes_of(path);
      different = different || now != attributes;
      attributes = now;
    }
    return different;
  }

  /// The attributes by which a change of a file is detected.
  struct Attributes {
    ino_t number = 0;
    off_t bytes = -1;  // -1: the file does not exist
    std::array<long, 2> changed{};
    friend bool operator==(const Attributes&, const Attributes&) = default;
  };

  static Attributes attributes_of(const std::string& path) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) return {};
    return {found.st_ino, found.st_size, {found.st_mtim.tv_sec, found.st_mtim.tv_nsec}};
  }

  struct File {
    std::string path;
    Attributes attributes;
  };

  const Descriptor changes_;
  const Descriptor bell_;
  const std::function<void()> changed_;

  std::mutex mutex_;
  std::optional<std::vector<std::string>> requested_;
  bool stopping_ = false;

  // Used only by the thread.
  std::vector<File> files_;
  std::map<int, std::vector<std::string>> directories_;  // watched names, by the system's number
  bool all_watched_ = true;
};

Result<FileWatch> FileWatch::start(std::function<void()> changed) {
  Descriptor bell(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (bell.number() < 0) {
    const std::error_code why(errno, std::generic_category());
    return Error(Errc::io, text("Files cannot be watched: {}.", why.message()),
                 NativeError{"eventfd", why.value(), ""});
  }
  Descriptor changes(::inotify_init1(
      IN_NONBLOCK | IN_CLOEXEC));  // a user has few; without one, the thread examines the files
  FileWatch watch(make_own<Watcher>(std::move(changes), std::move(bell), std::move(changed)));
  auto worker = Worker::start("wye-files", [watcher = watch.watcher_] { watcher->run(); });
  if (!worker) return std::move(worker).error();
  watch.worker_.emplace(*std::move(worker));
  return watch;
}

FileWatch::FileWatch(std::shared_ptr<Watcher> watcher) : watcher_(std::move(watcher)) {}

void FileWatch::watch(std::vector<std::string> paths) { watcher_->watch(std::move(paths)); }
void FileWatch::ring() { watcher_->ring(); }

FileWatch::~FileWatch() {
  if (watcher_) watcher_->stop();
}

}  // namespace wye::base
