// A callback when a job completes, for hosts with an event loop: no thread waits for the job.
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <queue>
#include <string>
#include <vector>
#include <wye/workloads/axpy.hpp>
#include <wye/wye.hpp>

// A minimal event loop: other threads post messages, one thread takes them.
class Loop {
 public:
  void post(std::string message) {
    {
      const std::lock_guard lock(mutex_);
      messages_.push(std::move(message));
    }
    posted_.notify_one();
  }
  std::string take() {
    std::unique_lock lock(mutex_);
    posted_.wait(lock, [&] { return !messages_.empty(); });
    std::string message = std::move(messages_.front());
    messages_.pop();
    return message;
  }

 private:
  std::mutex mutex_;
  std::condition_variable posted_;
  std::queue<std::string> messages_;
};

int main() {
  Loop loop;
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  const std::vector<float> x(100'000, 1.0f);
  std::vector<std::vector<float>> sums(3, std::vector<float>(x.size(), 2.0f));
  std::vector<wye::Ticket> tickets;  // each borrows x and one of sums until its job completes
  for (std::vector<float>& sum : sums) {
    tickets.push_back(runtime->submit(wye::workloads::axpy(2.0f, x, sum)));
    // The callback runs on the thread that completes the job, so it only posts the result.
    tickets.back().then([&loop](const wye::Result<wye::Outcome>& done) {
      loop.post(done ? "completed on " + done->device().id : done.error().describe());
    });
  }
  for (std::size_t i = 0; i < tickets.size(); ++i) std::puts(loop.take().c_str());

  for (const std::vector<float>& sum : sums)
    if (sum.back() != 4.0f) return 1;
  return 0;
}
