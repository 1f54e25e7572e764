#include <thread>

void run() {
  std::thread([] {}).join();
}
