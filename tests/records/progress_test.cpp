// Bars on a terminal, and lines elsewhere.
#include <wye/records/progress_bars.hpp>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "meter.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

/// A terminal of 60 columns, and the text that a program writes on it.
class Terminal {
 public:
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0) return;
    const int slave = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    if (slave < 0) return;
    const winsize size{.ws_row = 24, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
    REQUIRE(::ioctl(slave, TIOCSWINSZ, &size) == 0);
    termios raw{};
    ::tcgetattr(slave, &raw);
    ::cfmakeraw(&raw);
    ::tcsetattr(slave, TCSANOW, &raw);
    file = ::fdopen(slave, "w");
    ::fcntl(master_, F_SETFL, O_NONBLOCK);
  }
  Terminal(const Terminal&) = delete;  // closes once
  ~Terminal() {
    if (file) std::fclose(file);
    if (master_ >= 0) ::close(master_);
  }
  /// Returns whether there is one: a system without /dev/pts has none. Reports a skip if not.
  bool is_open() const {
    if (!file) test::skip("the system opens no terminal");
    return file != nullptr;
  }
  std::string text() const {
    std::string text;
    std::array<char, 4096> piece{};
    for (ssize_t got = 0; (got = ::read(master_, piece.data(), piece.size())) > 0;)
      text.append(piece.data(), static_cast<std::size_t>(got));
    return text;
  }
  std::FILE* file = nullptr;

 private:
  int master_;
};

}  // namespace

TEST_CASE("the line of a bar has its share, its numbers and its note", "[records][progress]") {
  CHECK(wye::detail::progress_line({.name = "GPU 0", .done = 1500, .total = 3000}, 5, 200) ==
        "GPU 0  [##########..........]  50 %  1,500 of 3,000");
  CHECK(wye::detail::progress_line(
            {.name = "all", .done = 10, .total = 10, .failed = 2, .rate = 1234.6, .note = "1.0 s left"}, 5,
            200) == "all    [####################] 100 %  10 of 10, 2 failed, 1,235/s, 1.0 s left");
  CHECK(wye::detail::progress_line({.name = "empty"}, 0, 200).find("100 %") != std::string::npos);
  CHECK(wye::detail::progress_line({.name = "GPU 0", .done = 1, .total = 9}, 5, 20).size() == 20);
}

TEST_CASE("bars are drawn over the earlier ones, cut at the width of the terminal", "[records][progress]") {
  const Terminal terminal;
  if (!terminal.is_open()) return;
  ManualClock clock;
  ProgressBars bars(terminal.file, 1s, clock);
  bars.draw({.name = "all", .total = 10});  // too early
  CHECK(terminal.text().empty());
  clock.advance(1s);
  bars.draw(std::vector<ProgressBar>{{.name = "GPU 0", .done = 1, .total = 10},
                                     {.name = "all", .total = 1000000000, .note = "7.1 s left"}});
  CHECK(terminal.text() ==
        "GPU 0  [##..................]  10 %  1 of 10\x1b[K\n"
        "all    [....................]   0 %  0 of 1,000,000,000, 7.\x1b[K\n\x1b[J");
  clock.advance(99ms);
  bars.draw({.name = "all", .done = 5, .total = 10});  // too often
  CHECK(terminal.text().empty());
  clock.advance(1ms);
  bars.draw({.name = "all", .done = 5, .total = 10});
  CHECK(terminal.text() == "\x1b[2A\rall  [##########..........]  50 %  5 of 10\x1b[K\n\x1b[J");
  bars.clear();
  CHECK(terminal.text() == "\x1b[1A\r\x1b[J");
  bars.clear();
  CHECK(terminal.text().empty());
}

TEST_CASE("progress of a set has a bar for each device and one for all", "[records][progress]") {
  const Terminal terminal;
  if (!terminal.is_open()) return;
  const auto sink = progress_bars(terminal.file);
  RecordProgress progress{
      .devices = {{.id = "cuda:0", .name = "GPU 0", .records = 6, .done = 3},
                  {.id = "cuda:1", .name = "GPU 1", .records = 4, .failed = 1, .is_out = true}},
      .records = 10,
      .done = 3,
      .failed = 1,
      .left = 6s,
      .took = 4s};
  sink(progress);
  const std::string text = terminal.text();
  CHECK(text.find("GPU 0  [") != std::string::npos);
  CHECK(text.find(" 25 %  1 of 4, 1 failed, ") != std::string::npos);
  CHECK(text.find("all    [") != std::string::npos);
}

TEST_CASE("a file that is no terminal gets a line every 5 s, and no bar", "[records][progress]") {
  std::FILE* const file = std::tmpfile();
  ManualClock clock;
  ProgressBars bars(file, {}, clock);
  for (std::uint64_t second = 0; second < 12; ++second) {
    bars.draw(std::vector<ProgressBar>{{.name = "GPU 0"}, {.name = "all", .done = second, .total = 12}});
    clock.advance(1s);
  }
  bars.clear();
  std::rewind(file);
  std::array<char, 200> text{};
  CHECK(std::string(text.data(), std::fread(text.data(), 1, text.size(), file)) ==
        "all: 5 of 12\nall: 10 of 12\n");
  std::fclose(file);
}

TEST_CASE("a rate is that of the last seconds", "[records][progress]") {
  records::Meter meter(2);
  Instant now{};
  CHECK(meter.rate(0, 0, now) == 0);
  CHECK(meter.rate(0, 100, now += 1s) == 100);
  CHECK(meter.rate(0, 300, now += 1s) == 150);
  for (int second = 0; second < 10; ++second) (void)meter.rate(0, 300, now += 1s);
  CHECK(meter.rate(0, 300, now += 1s) == 0);
  CHECK(meter.rate(1, 5, now) == 0);
}
