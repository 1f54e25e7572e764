#pragma once
/// File descriptors that are exchanged with another driver.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>

#include "backend/cuda/stand_in.hpp"

namespace wye::test {

/// Descriptors that this process has open.
inline long open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

/// A number in a file, as the stand-in takes it for the timeline semaphore of another driver.
class FileTimeline final : public Timeline {
 public:
  FileTimeline() : file_(memfd_create("wye timeline", MFD_CLOEXEC)) {
    REQUIRE(ftruncate(file_, sizeof(std::uint64_t)) == 0);
    value_ = static_cast<std::uint64_t*>(
        mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
  }
  ~FileTimeline() override {
    munmap(value_, sizeof(std::uint64_t));
    close(file_);
  }
  int another_file() const { return dup(file_); }
  std::uint64_t reached() noexcept override { return std::atomic_ref(*value_).load(); }
  bool is_known(std::uint64_t value) noexcept override { return reached() >= value; }
  Result<void> wait(std::uint64_t value, Instant until) override {
    while (reached() < value) {
      if (Clock::steady().now() >= until) return Error(Errc::timed_out, "Not yet.");
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return {};
  }
  Result<void> signal(std::uint64_t value) override {
    std::atomic_ref(*value_).store(value);
    return {};
  }
  const DeviceBase* owner() const noexcept override { return nullptr; }

 private:
  int file_;
  std::uint64_t* value_;
};

}  // namespace wye::test
