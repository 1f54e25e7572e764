#include "functions.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

namespace wye::test {
namespace {

[[noreturn]] void hang() {
  ::alarm(300);
  for (;;) ::pause();
}

struct State {
  std::string device;
  StopToken stop;
};

Result<void> act(State* state, const ActRecord& record) {
  switch (record.act) {
    case Act::compute: break;
    case Act::fail:
      return Error(Errc::device_lost, "The device is lost.", NativeError{"launch", 719, "LAUNCH_FAILED"});
    case Act::throw_exception: throw std::runtime_error("no model");
    case Act::throw_no_memory: throw std::bad_alloc();
    case Act::segv: ::raise(SIGSEGV); break;
    case Act::kill: ::raise(SIGKILL); break;
    case Act::stop: ::raise(SIGSTOP); break;
    case Act::exit_3: std::exit(3);
    case Act::exit_0: ::_exit(0);
    case Act::hang:
      if (!state) hang();
      while (!state->stop.stop_requested()) std::this_thread::yield();
      return Error(Errc::cancelled, "Stopped.");
    case Act::write_text: std::fprintf(stderr, "the model is broken\n"); ::abort();
    case Act::work: {
      volatile std::uint64_t value = record.value;
      for (int i = 0; i < 20000; ++i) value = mixed(value);
      break;
    }
  }
  return {};
}

Result<void> run(State* state, std::span<const ActRecord> in, std::span<std::uint64_t> out) {
  for (std::size_t r = 0; r < in.size(); ++r) {
    out[r] = mixed(in[r].value);
    if (auto ok = act(state, in[r]); !ok) return ok;
  }
  return {};
}

}  // namespace

const std::vector<RecordFunction>& functions() {
  static const std::vector<RecordFunction> all{
      {"mix",
       [](std::span<const ActRecord> in, std::span<std::uint64_t> out) {
         for (std::size_t r = 0; r < in.size(); ++r) out[r] = mixed(in[r].value);
       }},
      {"act",
       [](std::span<const ActRecord> in, std::span<std::uint64_t> out) { return run(nullptr, in, out); }},
      {"act with a state",
       [](RecordWorker& worker) {
         return State{worker.device(), worker.stop()};
       },
       [](State& state, std::span<const ActRecord> in, std::span<std::uint64_t> out) {
         return run(&state, in, out);
       }},
      {"one device",  // fails unless the runtime of the worker has one device, with number 0
       [](RecordWorker& worker) -> Result<State> {
         const auto devices = worker.runtime().devices();
         if (devices.size() != 1 || !devices[0].id().ends_with(":0"))
           return Error(Errc::internal, "The worker has another device than its own.");
         return State{worker.device(), worker.stop()};
       },
       [](State& state, std::span<const ActRecord> in, std::span<std::uint64_t> out) {
         return run(&state, in, out);
       }},
      {"init fails",
       [](RecordWorker&) -> Result<State> { return Error(Errc::not_found, "There is no model 'x'."); },
       [](State& state, std::span<const ActRecord> in, std::span<std::uint64_t> out) {
         return run(&state, in, out);
       }},
      {"init fails on null",
       [](RecordWorker& worker) -> Result<State> {
         if (worker.device() == "null:0") return Error(Errc::not_found, "There is no model 'x'.");
         return State{worker.device(), worker.stop()};
       },
       [](State& state, std::span<const ActRecord> in, std::span<std::uint64_t> out) {
         return run(&state, in, out);
       }},
      {"init dies", [](RecordWorker&) -> State { ::raise(SIGSEGV), ::_exit(9); },
       [](State& state, std::span<const ActRecord> in, std::span<std::uint64_t> out) {
         return run(&state, in, out);
       }},
      {"init hangs", [](RecordWorker&) -> State { hang(); },
       [](State& state, std::span<const ActRecord> in, std::span<std::uint64_t> out) {
         return run(&state, in, out);
       }},
      {"null fails",  // on one of two devices, each batch
       [](RecordWorker& worker) {
         return State{worker.device(), worker.stop()};
       },
       [](State& state, std::span<const ActRecord> in, std::span<std::uint64_t> out) -> Result<void> {
         if (state.device == "null:0") return Error(Errc::device_lost, "The device is lost.");
         return run(&state, in, out);
       }},
  };
  return all;
}

const RecordFunction& function(const std::string& name) {
  for (const RecordFunction& one : functions())
    if (one.name() == name) return one;
  std::abort();
}

}  // namespace wye::test

/// Worker processes of this program.
int run_as_worker(int, char**);
int run_as_worker(int argc, char** argv) {
  if (std::getenv("WYE_TEST_NO_WORKER_MAIN")) {
    if (argc > 1 && !std::strcmp(argv[1], "wye-worker")) {
      const char* const how = std::getenv("WYE_TEST_NO_WORKER_MAIN");
      if (!std::strcmp(how, "exits")) return 5;
      if (!std::strcmp(how, "hangs")) wye::test::hang();
      // Distributes, as an application without the line would.
      auto runtime = wye::Runtime::open({.pool = {.backends = {"cpu"}}}).value();
      std::vector<wye::test::ActRecord> records(10);
      std::vector<std::uint64_t> results(10);
      const auto report =
          wye::distribute(runtime, wye::test::function("mix"), records, results, {.processes = true});
      return report ? 0 : 6;
    }
    return -1;
  }
  return wye::worker_main(argc, argv, wye::test::functions()).value_or(-1);
}
