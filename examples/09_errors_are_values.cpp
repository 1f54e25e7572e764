// Errors are values: a code to compare and a sentence to show.
#include <cstdio>
#include <vector>
#include <wye/workloads/axpy.hpp>
#include <wye/wye.hpp>

int main() {
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  // A device that does not exist, without fallback.
  std::vector<float> x(1000, 1.0f), y(1000, 2.0f);
  auto done = runtime
                  ->submit(wye::workloads::axpy(2.0f, x, y),
                           {.fallback = wye::Fallback::forbid, .on = "cuda:99", .tag = "preview"})
                  .wait();
  if (done) return std::puts("a job ran on a device that does not exist"), 1;
  std::puts(done.error().describe().c_str());
  if (done.error() == wye::Errc::device_lost) return 1;  // an application would rebuild and retry here

    // value() throws the error as an exception, with the same sentence.
#ifdef __cpp_exceptions
  try {
    done.value();
    return 1;
  } catch (const wye::Exception& exception) {
    std::puts(exception.what());
  }
#endif

  // The data is intact: the same job runs on another device.
  auto again = runtime->submit(wye::workloads::axpy(2.0f, x, y)).wait();
  return again && y[0] == 4.0f ? 0 : 1;
}
