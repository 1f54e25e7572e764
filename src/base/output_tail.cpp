#include "base/output_tail.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <system_error>

#include "base/text.hpp"
#include "base/write_signals.hpp"

namespace wye::inline v0::base {
namespace {

constexpr std::size_t kept = 4096;

void write_on(std::string_view text) noexcept {
  const WriteSignalsBlocked blocked;
  pollfd error{STDERR_FILENO, POLLOUT, 0};
  while (!text.empty() && ::poll(&error, 1, 0) == 1 && error.revents == POLLOUT) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Result<OutputTail> OutputTail::open() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return Error(Errc::unavailable,
                 base::text("The output of a child process could not be read: {}.",
                            std::generic_category().message(errno)),
                 NativeError{"pipe2", errno, ""});
  Descriptor from(ends[0]), to(ends[1]);
  ::fcntl(from.number(), F_SETFL, O_NONBLOCK);
  return OutputTail(std::move(from), std::move(to));
}

bool OutputTail::read_arrived() noexcept {
  std::array<char, kept> piece{};  // a pipe that can be written takes as much without blocking
  const std::lock_guard lock(*mutex_);
  for (;;) {
    const ssize_t got = uninterrupted([&] { return ::read(from_.number(), piece.data(), piece.size()); });
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN;
    const std::string_view arrived(piece.data(), static_cast<std::size_t>(got));
    write_on(arrived);
    try {
      text_ += arrived;
    } catch (const std::bad_alloc&) {
    }
    if (text_.size() > 2 * kept) text_.erase(0, text_.size() - kept);
  }
}

std::string OutputTail::text() const {
  const std::lock_guard lock(*mutex_);
  return text_.substr(text_.size() - std::min(text_.size(), kept));
}

}  // namespace wye::base
