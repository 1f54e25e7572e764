// A host with a static runtime forks: the child may use a runtime of its own, and exit.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wye/workloads/axpy.hpp>
#include <wye/wye.hpp>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

namespace {

std::optional<wye::Runtime> runtime;  // ends after main, in both processes

bool runs(wye::Runtime& on) {
  std::vector<float> x(1000, 1.0f), y(1000, 2.0f);
  const auto done = on.submit(wye::workloads::axpy(2.0f, x, y)).wait();
  return done && y[0] == 4.0f && y[999] == 4.0f;
}

bool is_closed() {
  std::vector<float> x(1000, 1.0f), y(1000, 2.0f);
  const auto done = runtime->submit(wye::workloads::axpy(2.0f, x, y)).wait();
  return !done && done.error() == wye::Errc::closed;
}

int child_of(const char* what, int (*body)()) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) std::printf("%s: status %d\n", what, status);
  return status;
}

}  // namespace

int main() {
  runtime = wye::Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  if (!runs(*runtime)) return 1;
  if (child_of("a child that uses nothing", [] { return 0; }) != 0) return 2;
  if (child_of("a child that uses what it inherited", [] { return is_closed() ? 0 : 1; }) != 0) return 3;
  if (child_of("a child with a runtime of its own", [] {
        auto own = wye::Runtime::open({.pool = {.backends = {"cpu"}}});
        return own && runs(*own) && is_closed() ? 0 : 1;
      }) != 0)
    return 4;
  // Mesa's drivers join their threads in `exit`; the child does not have them and ends by `_exit`.
  runtime = wye::Runtime::open().value();
  if (child_of("a child with every backend", []() -> int {
        auto own = wye::Runtime::open();
        const bool good = own && runs(*own) && own->devices().size() >= 1;
        if (own) own->close();
        _exit(good ? 0 : 1);
      }) != 0)
    return 5;
  if (!runs(*runtime)) return 6;
  std::puts("fork: the child and the parent go on");
}
