#include <atomic>

void wake(std::atomic<int>& value) { value.notify_all(); }
