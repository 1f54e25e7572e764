#include <wye/records/progress_bars.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "text.hpp"

namespace wye::inline v0 {
namespace {

constexpr Duration bar_period = std::chrono::milliseconds(100);
constexpr Duration line_period = std::chrono::seconds(5);

std::size_t columns_of(std::FILE* terminal) {
  winsize size{};
  const bool is_known = ::ioctl(::fileno(terminal), TIOCGWINSZ, &size) == 0 && size.ws_col != 0;
  return is_known ? size.ws_col : 80;
}

/// Returns the numbers of a bar: "500 of 1,000, 1 failed, 250/s, 2.0 s left".
std::string numbers_of(const ProgressBar& bar) {
  std::string line = records::text(records::grouped(bar.done), " of ", records::grouped(bar.total));
  if (bar.failed != 0) line += records::text(", ", records::grouped(bar.failed), " failed");
  if (bar.rate >= 0.5)
    line += records::text(", ", records::grouped(static_cast<std::uint64_t>(bar.rate + 0.5)), "/s");
  if (!bar.note.empty()) line += ", " + bar.note;
  return line;
}

}  // namespace

namespace detail {

std::string progress_line(const ProgressBar& bar, std::size_t name_columns, std::size_t columns) {
  constexpr std::size_t width = 20;
  const double part =
      bar.total == 0 ? 1.0
                     : static_cast<double>(std::min(bar.done, bar.total)) / static_cast<double>(bar.total);
  const auto filled = static_cast<std::size_t>(part * width);
  const std::string percent = std::to_string(static_cast<int>(part * 100));
  std::string line = bar.name;
  line.resize(std::max(name_columns, line.size()), ' ');
  line += records::text("  [", std::string(filled, '#'), std::string(width - filled, '.'), "] ",
                        std::string(3 - percent.size(), ' '), percent, " %  ", numbers_of(bar));
  if (line.size() > columns) line.resize(columns);
  return line;
}

}  // namespace detail

struct ProgressBars::State {
  std::FILE* to;
  bool is_terminal;
  const Clock& clock;
  Instant next;           // time of the next drawing
  std::size_t lines = 0;  // drawn
};

ProgressBars::ProgressBars(std::FILE* to, Duration quiet, const Clock& clock) {
  const bool is_terminal = ::isatty(::fileno(to)) == 1;
  const Duration first = is_terminal ? quiet : std::max(quiet, line_period);
  state_ = std::make_unique<State>(State{to, is_terminal, clock, clock.now() + first});
}
ProgressBars::ProgressBars(ProgressBars&&) noexcept = default;
ProgressBars::~ProgressBars() = default;

void ProgressBars::clear() {
  if (state_->lines == 0) return;
  std::fprintf(state_->to, "\x1b[%zuA\r\x1b[J", state_->lines);
  std::fflush(state_->to);
  state_->lines = 0;
}

void ProgressBars::draw(std::span<const ProgressBar> bars) {
  const Instant now = state_->clock.now();
  if (now < state_->next) return;
  state_->next = now + (state_->is_terminal ? bar_period : line_period);
  finish(bars);
}

void ProgressBars::finish(std::span<const ProgressBar> bars) {
  if (bars.empty()) return;
  if (!state_->is_terminal) {
    std::fprintf(state_->to, "%s: %s\n", bars.back().name.c_str(), numbers_of(bars.back()).c_str());
    std::fflush(state_->to);
    return;
  }
  const std::size_t columns = columns_of(state_->to) - 1;  // the last column may begin a new line
  std::size_t name_columns = 0;
  for (const ProgressBar& bar : bars) name_columns = std::max(name_columns, bar.name.size());
  std::string all;
  if (state_->lines != 0) all += records::text("\x1b[", state_->lines, "A\r");
  for (const ProgressBar& bar : bars) all += detail::progress_line(bar, name_columns, columns) + "\x1b[K\n";
  all += "\x1b[J";
  std::fputs(all.c_str(), state_->to);
  std::fflush(state_->to);
  state_->lines = bars.size();
}

std::function<void(const RecordProgress&)> progress_bars(std::FILE* to) {
  return [bars = std::shared_ptr<ProgressBars>(new ProgressBars(to))](const RecordProgress& progress) {
    std::vector<ProgressBar> lines;
    for (const RecordProgress::Device& device : progress.devices)
      lines.push_back({.name = device.name,
                       .done = device.done + device.failed,
                       .total = device.records,
                       .failed = device.failed,
                       .rate = device.rate,
                       .note = device.is_out ? "taken out" : ""});
    ProgressBar all{.name = "all",
                    .done = progress.done + progress.failed,
                    .total = progress.records,
                    .failed = progress.failed,
                    .rate = progress.rate};
    if (progress.is_end)
      all.note = records::seconds(std::chrono::duration<double>(progress.took).count());
    else if (progress.left)
      all.note = records::seconds(std::chrono::duration<double>(*progress.left).count()) + " left";
    if (lines.size() == 1) {  // one bar says the same as two
      all.name = std::exchange(lines[0].name, {});
      lines.clear();
    }
    lines.push_back(std::move(all));
    progress.is_end ? bars->finish(lines) : bars->draw(lines);
  };
}

}  // namespace wye
