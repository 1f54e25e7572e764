// A runtime in a process that may start no thread.
#include <wye/wye.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <vector>

#include "base/worker.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/kernels.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

/// Root may have any number of threads.
bool refuse_threads() {
  if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return false;
  const rlimit none{0, 0};
  return ::setrlimit(RLIMIT_NPROC, &none) == 0;
}

/// Runs jobs on the CPU without a thread of wye. Returns the number of the check that failed, or 0.
int run_on_own_threads() {
  WYE_CHILD_CHECK(1, refuse_threads());
  if (base::Worker::start("wye-test", [] {})) return 0;  // this system gives them all the same
  auto runtime = Runtime::open({.pool = {.backends = {"cpu"}}});
  WYE_CHILD_CHECK(2, runtime.has_value());
  const auto kernel = test::scale();
  std::vector<float> x(100'000, 1.0f);
  WYE_CHILD_CHECK(3, runtime->submit(Job(kernel(x, 2.0f))).wait().has_value() && x.back() == 2.0f);
  WYE_CHILD_CHECK(4, runtime->submit(Job(kernel(x, 2.0f))).wait(1min).has_value() && x.back() == 4.0f);
  WYE_CHILD_CHECK(5, runtime->run(Job(kernel(x, 2.0f))).has_value() && x.back() == 8.0f);
  // A long chain of jobs that follow each other, with no ticket kept.
  auto array = runtime->array(std::vector<float>(100, 1.0f));
  for (int i = 0; i < 10'000; ++i) (void)runtime->submit(Job(kernel(array, 1.0f)));
  (void)runtime->submit(Job(kernel(array, 3.0f)));
  const auto read = array.read(1min);
  WYE_CHILD_CHECK(6, read && (*read)[99] == 3.0f);
  // A lane whose work no call waits for.
  auto lease = runtime->pool().lease();
  WYE_CHILD_CHECK(7, lease.has_value());
  auto buffer = lease->buffer<float>(100);
  WYE_CHILD_CHECK(8, buffer.has_value());
  lease->fill(*buffer, 7);
  const SyncPoint point = lease->point();
  WYE_CHILD_CHECK(9, point.wait(1min).has_value());
  WYE_CHILD_CHECK(10, lease->wait(1min).has_value());
  WYE_CHILD_CHECK(11, base::Worker::alive() == 0);
  return 0;
}

}  // namespace

TEST_CASE("if no thread can be started, the CPU runs jobs on the application's threads", "[runtime]") {
  CHECK(test::in_own_process("run jobs without threads") == test::success);
}

TEST_CASE("run jobs without threads", "[.]") {
  ::_exit(run_on_own_threads());  // a sanitizer would start a thread in `exit`
}

TEST_CASE(
    "if no thread can be started, a Vulkan job whose kernel is compiled runs on the application's thread",
    "[runtime][no_sanitizer]") {
  const auto body = []() -> int {
    auto runtime = Runtime::open({.pool = {.backends = {"vulkan"}}});  // lavapipe needs threads of its own
    if (!runtime) return 0;
    WYE_CHILD_CHECK(1, refuse_threads());
    if (base::Worker::start("wye-test", [] {})) return 0;  // this system gives them all the same
    const auto kernel =
        Kernel<ReadWrite<float>, float>::make({.name = "scale", .sources = {Glsl{.text = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
layout(push_constant) uniform Scalars { float factor; };
void main() { if (gl_GlobalInvocationID.x < x.length()) x[gl_GlobalInvocationID.x] *= factor; }
)"}}});
    WYE_CHILD_CHECK(2, kernel.has_value());
    std::vector<float> x(1000, 1.0f);
    const auto first = runtime->run(Job((*kernel)(x, 2.0f)));
    if (!first) std::fprintf(stderr, "%s\n", first.error().describe().c_str());
    WYE_CHILD_CHECK(3, first && x.back() == 2.0f);
    const auto second = runtime->submit(Job((*kernel)(x, 3.0f)), {.time_limit = 1min}).wait();
    if (!second) std::fprintf(stderr, "%s\n", second.error().describe().c_str());
    WYE_CHILD_CHECK(4, second && x.back() == 6.0f);
    return 0;
  };
  CHECK(test::in_child(body, test::Leave::at_once) == test::success);
}
