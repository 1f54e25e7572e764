#include "base/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "base/text.hpp"

namespace wye::inline v0::base {
namespace {

// A child writes the steps that it reaches, then one of these. The result follows the latter.
constexpr std::uint8_t cannot_tell = 254, has_result = 255;

struct OwnFault {
  int number;
  std::string_view words;
};
/// The signals that a process gets for faults of its own threads.
constexpr OwnFault own_faults[] = {
    {SIGSEGV, "a segmentation fault"}, {SIGABRT, "a call of abort"},       {SIGBUS, "a bus error"},
    {SIGFPE, "a floating-point trap"}, {SIGILL, "an illegal instruction"}, {SIGTRAP, "a trap"},
    {SIGSYS, "a refused system call"},
};

const OwnFault* own_fault(int number) noexcept {
  for (const OwnFault& fault : own_faults)
    if (fault.number == number) return &fault;
  return nullptr;
}

/// Blocks all signals of the calling thread, and so at first of a child that it starts.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;  // restores once
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

void send(int to, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = uninterrupted([&] { return ::write(to, bytes.data(), bytes.size()); });
    if (written <= 0) return;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void write_byte(int to, std::uint8_t value) noexcept {
  const std::byte byte{value};
  send(to, {&byte, 1});
}

/// Makes the child independent of the host: its handlers, its terminal, its core files. Returns
/// false if the parent has ended already.
bool leave_host(pid_t parent) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) return false;
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);  // some cannot be changed
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_DUMPABLE, 0);  // the limit does not apply to a program that receives core files
  if (const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC); null >= 0) {
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
  }
  return true;
}

[[noreturn]] void run_child(const ChildBody& body, int to, pid_t parent) noexcept {
  if (!leave_host(parent)) ::_exit(0);
  try {
    if (const auto result = body([to](std::uint8_t step) { write_byte(to, step); })) {
      write_byte(to, has_result);
      const std::uint64_t size = result->size();
      send(to, std::as_bytes(std::span(&size, 1)));
      send(to, *result);
      ::_exit(0);
    }
  } catch (...) {  // such as std::bad_alloc: no crash
  }
  write_byte(to, cannot_tell);
  ::_exit(0);
}

/// The bytes that a parent has read from its child.
struct Received {
  std::uint8_t step = 0;
  bool told_nothing = false;
  bool in_result = false;
  std::vector<std::byte> rest;

  void add(std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (in_result)
        return (void)rest.insert(rest.end(), bytes.begin() + static_cast<std::ptrdiff_t>(i), bytes.end());
      const auto value = std::to_integer<std::uint8_t>(bytes[i]);
      if (value == has_result)
        in_result = true;
      else if (value == cannot_tell)
        told_nothing = true;
      else
        step = value;
    }
  }
  std::optional<std::vector<std::byte>> result() const {
    std::uint64_t size = 0;
    if (!in_result || rest.size() < sizeof(size)) return std::nullopt;
    for (std::size_t i = 0; i < sizeof(size); ++i) reinterpret_cast<std::byte*>(&size)[i] = rest[i];
    if (rest.size() - sizeof(size) != size) return std::nullopt;
    return std::vector<std::byte>(rest.begin() + sizeof(size), rest.end());
  }
};

/// Reads the bytes of the child until it ends. Returns false if `limit` passes without a byte.
bool receive(int from, int child, Duration limit, Received& received) {
  const auto milliseconds =
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(limit).count());
  std::array<std::byte, 4096> piece{};
  for (;;) {
    // The pipe has no end while another child of the host has it open; the process has one.
    pollfd waited[] = {{from, POLLIN, 0}, {child, POLLIN, 0}};
    const int ready = ::poll(waited, 2, milliseconds);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = uninterrupted([&] { return ::read(from, piece.data(), piece.size()); });
    if (got > 0) {
      received.add(std::span(piece).first(static_cast<std::size_t>(got)));
      continue;
    }
    if (got == 0 || errno != EAGAIN) return true;
    if (waited[1].revents != 0) return true;
  }
}

ChildEnd unknown(std::string why) { return {.why = std::move(why)}; }

std::string reason_of(const char* call, int number) {
  return text("No child process could be started: {}: {}.", call, std::generic_category().message(number));
}

}  // namespace

std::string Crash::text() const {
  if (how == by_exit) return "a call of exit";
  const OwnFault* const fault = own_fault(how);
  return base::text("signal {} ({})", how, fault ? fault->words : "unknown");
}

ChildEnd run_in_child(const ChildBody& body, Duration limit) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return unknown(reason_of("pipe2", errno));
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  ::fcntl(from.number(), F_SETFL, O_NONBLOCK);
  const pid_t parent = ::getpid();
  pid_t child = -1;
  int refused = 0;
  {
    const AllSignalsBlocked blocked;
    child = ::fork();
    refused = errno;
    if (child == 0) run_child(body, to.number(), parent);
  }
  if (child < 0) return unknown(reason_of("fork", refused));
  to = Descriptor();
  const Descriptor process(
      static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));  // -1: older than Linux 5.3
  Received received;
  bool in_time = false;
  try {
    in_time = receive(from.number(), process.number(), limit, received);
  } catch (...) {
    ::kill(child, SIGKILL);
    (void)uninterrupted([&] { return ::waitpid(child, nullptr, 0); });
    throw;
  }
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  const bool has_status = uninterrupted([&] { return ::waitpid(child, &status, 0); }) == child;
  ChildEnd end{.step = received.step};
  if (!in_time) {
    end.why = text("A child process did not continue within {} s.",
                   std::chrono::duration_cast<std::chrono::seconds>(limit).count());
  } else if (auto result = received.result()) {
    end.how = ChildEnd::How::completed;
    end.result = *std::move(result);
  } else if (received.told_nothing) {
    end.why = "A child process could not use the driver.";
  } else if (!has_status) {
    end.why = "The application has collected the status of a child process.";
  } else if (WIFSIGNALED(status) && !own_fault(WTERMSIG(status))) {
    end.how = ChildEnd::How::killed;
    end.signal = WTERMSIG(status);
    end.why =
        text("A child process was ended by signal {}, which another process or the system sent.", end.signal);
  } else {
    end.how = ChildEnd::How::crashed;
    end.crash.how = WIFSIGNALED(status) ? static_cast<std::uint8_t>(WTERMSIG(status)) : Crash::by_exit;
  }
  return end;
}

}  // namespace wye::base
