#include "progress.hpp"

#include <unistd.h>

#include <cstdio>

namespace document_network {

std::string progress_line(const char* work, std::size_t done, std::size_t total) {
  constexpr std::size_t width = 30;
  const double part =
      total == 0 ? 1.0 : static_cast<double>(done < total ? done : total) / static_cast<double>(total);
  const auto filled = static_cast<std::size_t>(part * width);
  char line[120];
  std::snprintf(line, sizeof line, "%-12.40s [%s%s] %3d %%", work, std::string(filled, '#').c_str(),
                std::string(width - filled, '.').c_str(), static_cast<int>(part * 100));
  return line;
}

Progress::Progress()
    : terminal_(::isatty(STDERR_FILENO) == 1), next_(Clock::now() + std::chrono::seconds(1)) {}

Progress::~Progress() { clear(); }

void Progress::show(const char* work, std::size_t done, std::size_t total) {
  if (!terminal_ || Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  visible_ = true;
  std::fprintf(stderr, "\r\x1b[K%s", progress_line(work, done, total).c_str());
  std::fflush(stderr);
}

void Progress::clear() {
  if (visible_) std::fprintf(stderr, "\r\x1b[K");
  std::fflush(stderr);
  visible_ = false;
}

}  // namespace document_network
