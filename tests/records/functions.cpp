#include "functions.hpp"

#include "slots.hpp"

#ifdef WYE_TEST_WORKLOADS
#include <wye/workloads/axpy.hpp>
#endif

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

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

struct Which {
  std::string device;
  Uuid uuid;
  std::string visible;
};

/// Allocates more than the process may have.
void need_memory() {
  const rlimit limit{std::size_t{1} << 30, RLIM_INFINITY};
  ::setrlimit(RLIMIT_DATA, &limit);
  std::vector<char> bytes(std::size_t{2} << 30);
  bytes[bytes.size() / 2] = 1;
}

/// Does what a record does to its worker.
Result<void> act(const State* state, const ActRecord& record) {
  switch (record.act) {
    case Act::compute: break;
    case Act::fail:
      return Error(Errc::unavailable, "The model is busy.", NativeError{"launch", 719, "LAUNCH_FAILED"});
    case Act::throw_exception: throw std::runtime_error("no model");
    case Act::throw_no_memory: throw std::bad_alloc();
    case Act::need_memory: need_memory(); break;
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
    case Act::write_garbage: break;
    case Act::work: {
      volatile std::uint64_t value = record.value;
      for (int i = 0; i < 20000; ++i) value = mixed(value);
      break;
    }
  }
  return {};
}

/// Runs a kernel with a loop. If it is to hang, it has so many workgroups that it takes hours, because lavapipe ends
/// the loops of an invocation after 65,535 iterations.
Result<void> run_kernel(Runtime& runtime, bool hangs) {
  static const auto kernel = Kernel<ReadWrite<float>>::make(
      {.name = "loop",
       .sources = {Glsl{"#version 450\n"
                        "layout(local_size_x = 64) in;\n"
                        "layout(set = 0, binding = 0) buffer X { float x[]; };\n"
                        "void main() {\n"
                        "  uint i = gl_GlobalInvocationID.x;\n"
                        "  if (i >= x.length()) return;\n"
                        "  float value = x[i];\n"
                        "  for (uint n = 0; n < 65000; ++n) value = fract(value * 1.7 + sin(value));\n"
                        "  x[i] = value;\n"
                        "}\n"}}});
  if (!kernel) return kernel.error();
  std::vector<float> x(hangs ? std::size_t{1} << 24 : 8, 0.5f);
  const auto done = runtime.submit((*kernel)(x), {.fallback = Fallback::forbid}).wait();
  if (!done) return done.error();
  return {};
}

Act act_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value ? static_cast<Act>(std::atoi(value)) : Act::compute;
}

/// Overwrites the words by which the worker and the set understand each other. A set of the tests has
/// batches of 16 records there.
void write_garbage(std::byte* out) {
  const records::SlotLayout layout{.batch = 16, .input = sizeof(ActRecord), .output = sizeof(std::uint64_t)};
  const std::span<std::byte> all(out - layout.size()->count, 2 * layout.size()->count);
  for (std::size_t slot = 0; slot < 2; ++slot) {
    const auto offset = layout.output_of(all, slot).data() - all.data();
    records::SlotHeader& header = records::header_of({out - offset, 1});
    if (!header.slots[slot].is(records::SlotState::running)) continue;
    std::memset(static_cast<void*>(&header), 0xee, sizeof(header));
    hang();
  }
}

Result<void> run(State* state, std::span<const ActRecord> in, std::span<std::uint64_t> out) {
  for (std::size_t r = 0; r < in.size(); ++r) {
    out[r] = mixed(in[r].value);
    if (in[r].act == Act::write_garbage) write_garbage(reinterpret_cast<std::byte*>(out.data()));
    if (auto ok = act(state, in[r]); !ok) return ok;
  }
  return {};
}

constexpr auto state_of = [](RecordWorker& worker) { return State{worker.device(), worker.stop()}; };
constexpr auto run_in_state = [](State& state, std::span<const ActRecord> in, std::span<std::uint64_t> out) {
  return run(&state, in, out);
};

RecordFunction loads() {
  return {"load", state_of,
          [](const State&, const ActRecord& record) -> Result<std::string> {
            if (auto ok = act(nullptr, record); !ok) return ok.error();
            return std::to_string(record.value);
          },
          [](State&, std::span<std::string> items, std::span<std::uint64_t> out) {
            for (std::size_t r = 0; r < items.size(); ++r) out[r] = mixed(std::stoull(items[r]));
          }};
}

/// On Vulkan: runs a kernel for each record. For a record that hangs, the kernel takes hours.
RecordFunction runs_kernels() {
  return {"kernel", [](RecordWorker& worker) { return worker.runtime(); },
          [](Runtime& runtime, std::span<const ActRecord> in, std::span<std::uint64_t> out) -> Result<void> {
            for (std::size_t r = 0; r < in.size(); ++r) {
              out[r] = mixed(in[r].value);
              if (auto done = run_kernel(runtime, in[r].act == Act::hang); !done) return done;
            }
            return {};
          }};
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
      {"act with a state", state_of, run_in_state},
      {"one device",  // fails unless the runtime of the worker has one device, with number 0
       [](RecordWorker& worker) -> Result<State> {
         const auto devices = worker.runtime().devices();
         if (devices.size() != 1 || !devices[0].id().ends_with(":0"))
           return Error(Errc::internal, "The worker has another device than its own.");
         return state_of(worker);
       },
       run_in_state},
      loads(),
      {"count letters",
       [](std::span<const Line> in, std::span<std::uint64_t> out) {
         for (std::size_t r = 0; r < in.size(); ++r) {
           out[r] = in[r].size;
           for (const char c : in[r].view()) out[r] = mixed(out[r] + static_cast<unsigned char>(c));
         }
       }},
      {"which device",  // the number of its device in the application, and the last byte of its UUID
       [](RecordWorker& worker) -> Result<Which> {
         const auto devices = worker.runtime().devices();
         if (devices.size() != 1 || devices[0].id() != "cuda:0")
           return Error(Errc::internal, "The worker has another device than its own.");
         const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
         return Which{worker.device(), devices[0].info().device_uuid, visible ? visible : ""};
       },
       [](Which& which, std::span<const ActRecord>, std::span<std::uint64_t> out) {
         const bool is_masked = which.visible.empty() || which.visible == "GPU-" + to_string(which.uuid);
         for (std::uint64_t& one : out)
           one =
               is_masked ? 1000 * static_cast<std::uint64_t>(which.device.back() - '0') + which.uuid[15] : 0;
       }},
#ifdef WYE_TEST_WORKLOADS
      {"axpy", [](RecordWorker& worker) { return worker.runtime(); },
       [](Runtime& runtime, std::span<const ActRecord> in, std::span<std::uint64_t> out) -> Result<void> {
         std::vector<float> x(in.size(), 2.0f), y(in.size(), 1.0f);
         const auto done = runtime.submit(workloads::axpy(3.0f, x, y), {.fallback = Fallback::forbid}).wait();
         if (!done) return done.error();
         for (std::size_t r = 0; r < in.size(); ++r) out[r] = y[r] == 7.0f ? mixed(in[r].value) : 0;
         return {};
       }},
#endif
      {"init fails",
       [](RecordWorker&) -> Result<State> { return Error(Errc::not_found, "There is no model 'x'."); },
       run_in_state},
      {"init fails on null",
       [](RecordWorker& worker) -> Result<State> {
         if (worker.device() == "null:0") return Error(Errc::not_found, "There is no model 'x'.");
         return state_of(worker);
       },
       run_in_state},
      runs_kernels(),
      {"init acts",  // as the variable WYE_TEST_INIT says
       [](RecordWorker& worker) -> Result<State> {
         if (auto ok = act(nullptr, {.act = act_of("WYE_TEST_INIT")}); !ok) return ok.error();
         return state_of(worker);
       },
       run_in_state},
      {"null fails",  // on one of two devices, each batch
       state_of,
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
  if (argc > 1 && !std::strcmp(argv[1], "wye-worker")) {
    for (const int number : {SIGSEGV, SIGABRT}) ::signal(number, SIG_DFL);  // not those of a sanitizer
    (void)wye::test::act(nullptr, {.act = wye::test::act_of("WYE_TEST_BEFORE_JOINING")});
  }
  return wye::worker_main(argc, argv, wye::test::functions()).value_or(-1);
}
