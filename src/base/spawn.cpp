#include "base/spawn.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>
#include <system_error>

#include "base/text.hpp"

extern char** environ;

namespace wye::inline v0::base {
namespace {

constexpr int first_inherited = 3;
constexpr auto by_descriptor = static_cast<idtype_t>(3);  // P_PIDFD, which glibc has from 2.36 on

Error failed(const char* call, int number) {
  return Error(Errc::unavailable,
               text("A child process could not be started: {}.", std::generic_category().message(number)),
               NativeError{call, number, ""});
}

Result<Descriptor> open_process(int number) {
  Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, number, 0)));
  if (process) return process;
  if (errno == ENOSYS)
    return Error(Errc::unsupported,
                 "Worker processes need Linux 5.4 or newer: the system has no pidfd_open.");
  return failed("pidfd_open", errno);
}

/// The arguments of posix_spawn, which end with the object.
class SpawnSetup {
 public:
  SpawnSetup() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;  // destroys once
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  posix_spawn_file_actions_t* actions() { return &actions_; }

  /// Gives the process these descriptors and no others.
  /// Errors: unavailable (no descriptor is free).
  Result<void> inherit(const std::vector<int>& descriptors, int standard_error) {
    const int end = first_inherited + static_cast<int>(descriptors.size());
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (standard_error >= 0) ::posix_spawn_file_actions_adddup2(&actions_, standard_error, STDERR_FILENO);
    for (std::size_t i = 0; i < descriptors.size(); ++i) {
      // Above the numbers that they get, so that none replaces another.
      above_.emplace_back(::fcntl(descriptors[i], F_DUPFD_CLOEXEC, end));
      if (!above_.back()) return failed("fcntl", errno);
      ::posix_spawn_file_actions_adddup2(&actions_, above_.back().number(),
                                         first_inherited + static_cast<int>(i));
    }
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, end);
    return {};
  }

  /// Makes the process independent of the handlers, masks and terminal of this one.
  posix_spawnattr_t* independent() {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    return &attributes_;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  std::vector<Descriptor> above_;
};

/// Returns the environment of this process with `variables` in place of its own.
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> all;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    bool is_replaced = false;
    for (const auto& [replaced, value] : variables) is_replaced = is_replaced || name == replaced;
    if (!is_replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& one : texts) pointers.push_back(one.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string own_program() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : std::string("program");
}

}  // namespace

std::string ProcessEnd::text() const {
  switch (how) {
    case How::exited: return base::text("ended with exit status {}", number);
    case How::killed: {
      const char* const name = ::sigabbrev_np(number);
      return base::text("killed by signal {} ({}{})", number, name ? "SIG" : "unknown", name ? name : "");
    }
    case How::unknown: break;
  }
  return "ended, and the application has collected its status";
}

Result<SpawnedProcess> SpawnedProcess::start(const SpawnOptions& options) {
  // Asked first: a child without such a descriptor could not be watched.
  if (auto possible = open_process(::getpid()); !possible) return std::move(possible).error();
  std::vector<std::string> arguments{own_program()};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> environment = environment_with(options.variables);
  SpawnSetup setup;
  if (auto ok = setup.inherit(options.descriptors, options.standard_error); !ok) return std::move(ok).error();
  pid_t number = -1;
  // The link opens the program that runs, not a file that has its name by now.
  const int refused = ::posix_spawn(&number, "/proc/self/exe", setup.actions(), setup.independent(),
                                    pointers_to(arguments).data(), pointers_to(environment).data());
  if (refused != 0) return failed("posix_spawn", refused);
  auto process = open_process(number);
  if (!process) {  // for lack of descriptors; ended and collected by the application, it has no number
    ::kill(number, SIGKILL);
    (void)uninterrupted([&] { return ::waitpid(number, nullptr, 0); });
    return std::move(process).error();
  }
  return SpawnedProcess(*std::move(process), number);
}

SpawnedProcess::~SpawnedProcess() {
  if (!process_ || origin_.is_inherited()) return;
  kill();
  (void)collect();
}

void SpawnedProcess::kill() noexcept {
  if (process_) ::syscall(SYS_pidfd_send_signal, process_.number(), SIGKILL, nullptr, 0);
}

ProcessEnd SpawnedProcess::collect() noexcept {
  siginfo_t end{};
  const int got = uninterrupted(
      [&] { return ::waitid(by_descriptor, static_cast<id_t>(process_.number()), &end, WEXITED); });
  process_ = Descriptor();
  if (got != 0 || end.si_pid == 0) return {};
  return {end.si_code == CLD_EXITED ? ProcessEnd::How::exited : ProcessEnd::How::killed, end.si_status};
}

Result<DescriptorWatch> end_with_parent(int parent) {
  auto process = open_process(parent);
  if (!process) return std::move(process).error();
  if (::getppid() != parent) ::_exit(1);  // the number may be that of another process by now
  auto watch = DescriptorWatch::start("wye-parent");
  if (!watch) return watch;
  const auto kept = std::make_shared<Descriptor>(*std::move(process));
  watch->add(kept->number(), [kept]() -> bool { ::_exit(1); });
  return watch;
}

int process_number() noexcept { return ::getpid(); }
int parent_number() noexcept { return ::getppid(); }

}  // namespace wye::base
