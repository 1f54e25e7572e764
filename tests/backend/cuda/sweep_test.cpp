// Any call of the driver may fail at any time: nothing crashes, hangs, leaks, changes the current
// context, or gives stale data for a result. Each function of the table is met in its part of the
// sweep, at each of its calls, with each of ten codes.
#include <functional>

#include "backend/cuda/cuda_error.hpp"
#include "backend/cuda/files.hpp"
#include "backend/cuda/rig.hpp"
#include "device/native.hpp"
#include "support/random_cases.hpp"

namespace wye::test {
namespace {

using Check = std::function<void()>;

std::vector<std::shared_ptr<BufferBase>> buffers(DeviceBase& device, std::size_t count) {
  std::vector<std::shared_ptr<BufferBase>> made;
  while (made.size() < count)
    if (auto buffer = device.create_buffer({.bytes = Bytes{4 * length}, .account = nullptr}))
      made.push_back(*buffer);
    else
      return {};
  return made;
}

Outcome failed(const Error& error) {
  Outcome outcome;
  outcome.error = error;
  return outcome;
}

/// Opens device number `index`.
Result<std::shared_ptr<DeviceBase>> open_device(std::size_t index) {
  const auto found = discover();
  if (index >= found.size()) return Error(Errc::not_found, found.at(0).info.reason);
  if (!found[index].adapter) return Error(Errc::unavailable, found[index].info.reason);
  return found[index].adapter->open();
}

/// In a context of the application: launches with attributes, graphs whose steps change, and the
/// total memory after pools have released their kept memory.
Outcome of_host(const StandIn& stand_in, const Check& check) {
  const auto driver = good(cuda::CudaDriver::open(WYE_STAND_IN_CUDA));
  CUcontext context = nullptr;
  REQUIRE(driver->cu.DevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  const std::shared_ptr<void> release(nullptr, [&](void*) { driver->cu.DevicePrimaryCtxRelease(0); });
  CUstream stream = nullptr;
  REQUIRE(driver->cu.CtxPushCurrent(context) == CUDA_SUCCESS);
  REQUIRE(driver->cu.StreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
  const std::shared_ptr<void> destroy(nullptr, [&](void*) {
    driver->cu.CtxPushCurrent(context);
    driver->cu.StreamDestroy(stream);
    driver->cu.CtxPopCurrent(&context);
  });
  REQUIRE(driver->cu.CtxPopCurrent(&context) == CUDA_SUCCESS);
  BackendOptions options;
  options.cuda_driver = WYE_STAND_IN_CUDA;
  auto brought = cuda_backend()->adopt(
      {.backend = "cuda", .device = reinterpret_cast<std::uintptr_t>(context)}, "cuda:host", options);
  check();
  if (!brought) return failed(brought.error());
  if (!brought->adapter) return failed(Error(Errc::unavailable, brought->info.reason));
  auto opened = brought->adapter->open();
  check();
  if (!opened) return failed(opened.error());
  const std::shared_ptr<DeviceBase> device = *opened;
  auto two = buffers(*device, 2);
  stand_in.fail("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_OUT_OF_MEMORY);
  auto third = device->create_buffer({.bytes = Bytes{4 * length}, .account = nullptr});
  check();
  if (two.empty() || !third) return failed(third ? Error(Errc::internal, "No buffers.") : third.error());
  const auto &a = two[0], &b = two[1], &c = *third;
  Artefact together = good(test_kernel("add", *device, Twin::addresses)), clustered = together;
  together.launch.cooperative = true;
  together.launch.shared_carveout = 50;
  together.dynamic_shared = 1024;
  clustered.launch.cluster = Extent3(12);
  auto all = device->create_executable(together), twelve = device->create_executable(clustered);
  check();
  if (!all || !twelve) return failed(all ? twelve.error() : all.error());
  auto made = device->create_lane();
  if (!made) return failed(made.error());
  Lane lane(*std::move(made));
  auto point = device->native_interop()->adopt_timeline(
      {.backend = "cuda", .queue = reinterpret_cast<std::uintptr_t>(stream)});
  check();
  if (!point) return failed(point.error());
  lane.wait_for({*point, 1});
  const auto words = numbers(1);
  const std::uint64_t groups = 12 * (*twelve)->artefact().workgroup.count();
  lane.upload(bytes_of(words), range(a));
  lane.dispatch(*all, arguments_of(a, Word{4}), length);
  lane.dispatch(*twelve, arguments_of(a, Word{5}), groups);
  SequenceState sequence(device);
  for (const Word round : {1u, 2u}) {
    Recording& recording = sequence.open();
    recording.clear();
    recording.dispatch(*all, arguments_of(a, round), length);
    recording.dispatch(*twelve, arguments_of(a, round), groups);
    recording.copy(range(a), range(round == 1 ? b : c));
    recording.fill(range(round == 1 ? c : b), round);
    lane.submit(sequence);
    check();
  }
  Outcome outcome;
  std::vector<Word> filled(length);
  lane.download(range(c), writable_bytes_of(outcome.out));
  lane.download(range(b), writable_bytes_of(filled));
  if (auto waited = lane.wait(Instant::max()); !waited) return check(), failed(waited.error());
  check();
  for (std::size_t i = 0; i < length; ++i) outcome.out[i] -= words[i] + 5 + filled[i] + (i < groups ? 8 : 0);
  return outcome;
}

/// Memory and a timeline that another driver has too.
Outcome with_others(const StandIn&, const Check& check) {
  auto opened = open_device(0);
  check();
  if (!opened) return failed(opened.error());
  const std::shared_ptr<DeviceBase> device = *opened;
  NativeInterop& interop = *device->native_interop();
  auto given = interop.create_shared(Bytes{4 * length});
  check();
  if (!given) return failed(given.error());
  auto taken = interop.open_shared(given->memory, Bytes{4 * length});
  check();
  if (!taken) return failed(taken.error());
  const auto original = std::make_shared<FileTimeline>();
  SharedTimeline shared{original, base::Descriptor(original->another_file())};
  auto timeline = interop.open_shared_timeline(shared);
  check();
  if (!timeline) return failed(timeline.error());
  auto made = device->create_lane();
  if (!made) return failed(made.error());
  Lane lane(*std::move(made));
  const auto words = numbers(7);
  CHECK(original->signal(1));
  lane.wait_for({*timeline, 1});
  lane.upload(bytes_of(words), range(given->buffer));
  lane.signal({*timeline, 2});
  check();
  Outcome outcome;
  lane.download(range(*taken), writable_bytes_of(outcome.out));
  if (auto waited = lane.wait(Instant::max()); !waited) return check(), failed(waited.error());
  check();
  for (std::size_t i = 0; i < length; ++i) outcome.out[i] -= words[i];
  CHECK(original->reached() == 2);
  return outcome;
}

/// A device that copies out of another one's memory.
Outcome of_two(const StandIn&, const Check& check) {
  auto first = open_device(0), second = open_device(1);
  check();
  if (!first || !second) return failed(first ? second.error() : first.error());
  const std::shared_ptr<DeviceBase> a = *first, b = *second;
  const auto from = buffers(*a, 1), to = buffers(*b, 1);
  auto lane_of_a = a->create_lane(), lane_of_b = b->create_lane();
  if (from.empty() || to.empty() || !lane_of_a || !lane_of_b)
    return failed(Error(Errc::internal, "No buffers, or no lanes."));
  Lane writes(*std::move(lane_of_a)), copies(*std::move(lane_of_b));
  const auto words = numbers(11);
  writes.upload(bytes_of(words), range(from[0]));
  if (auto waited = writes.wait(Instant::max()); !waited) return check(), failed(waited.error());
  (void)reaches(*b, *a);
  check();
  Outcome outcome;
  copies.copy(range(from[0]), range(to[0]));
  copies.download(range(to[0]), writable_bytes_of(outcome.out));
  if (auto waited = copies.wait(Instant::max()); !waited) return check(), failed(waited.error());
  check();
  const auto late = buffers(*a, 1);  // of a pool that the other one is already let into
  check();
  for (std::size_t i = 0; i < length; ++i) outcome.out[i] -= words[i];
  return outcome;
}

/// Most functions of the backend, on one device.
template <Isolation isolation>
Outcome alone(const StandIn&, const Check& check) {
  const auto found = discover(WYE_STAND_IN_CUDA, isolation);
  if (!found.at(0).adapter) return failed(Error(Errc::unavailable, found[0].info.reason));
  Outcome outcome = scenario(found[0].adapter, check);
  const auto wanted = expected();
  if (!outcome.error)
    for (std::size_t i = 0; i < length; ++i) outcome.out[i] -= wanted[i];
  return outcome;
}

/// A piece of work, which ends in nothing but zeros, and words in the names of the functions that
/// fail in it.
struct Part {
  Outcome (*work)(const StandIn&, const Check&);
  std::vector<std::string_view> words;
};
const Part parts[] = {
    {.work = alone<Isolation::partition>, .words = {"Green", "DevResource", "DevSm"}},
    {.work = alone<Isolation::device>, .words = {"CtxCreate", "CtxDestroy"}},
    {.work = of_two, .words = {"Peer", "MemPoolSetAccess"}},
    {.work = with_others,
     .words = {"External", "MemGetAllocation", "MemCreate", "MemRelease", "MemExport", "MemAddress", "MemMap",
               "MemUnmap", "MemSetAccess"}},
    {.work = of_host,
     .words = {"StreamIsCapturing", "CtxGetDevice", "MemPoolTrimTo", "KernelSet", "LaunchKernelEx", "Cluster",
               "GraphKernelNodeSet", "GraphExecMem"}},
    {.work = alone<Isolation::shared>, .words = {""}},
};
const Part& part_of(const std::string& function) {
  if (function == "cuMemFree") return parts[3];
  return *std::find_if(std::begin(parts), std::end(parts), [&](const Part& part) {
    return std::any_of(part.words.begin(), part.words.end(),
                       [&](std::string_view word) { return function.find(word) != std::string::npos; });
  });
}

/// Calls that destroy objects: if they fail, the objects leak.
bool gives_back(std::string_view function) {
  for (const char* word : {"Destroy", "Free", "Unload", "Unmap", "Release", "Ctx"})
    if (function.find(word) != std::string_view::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("any call of the driver may fail", "[cuda][no_tsan]") {
  if (!has_kernels()) return;
  const Setting devices("WYE_STANDIN_DEVICES", "2");
  const StandIn stand_in;
  stand_in.seed(0);
  std::vector<std::string> functions;
#define WYE_FUNCTION(name, version) functions.push_back("cu" #name);
  WYE_CUDA_FUNCTIONS(WYE_FUNCTION)
  WYE_CUDA_NEWER_FUNCTIONS(WYE_FUNCTION)
#undef WYE_FUNCTION
  int theirs = 0;
  stand_in.push(&theirs);
  std::size_t runs = 0, errors = 0, reached = 0;
  unsigned step = 0;
  for (const std::string& function : functions) {
    const Part& part = part_of(function);
    const std::size_t reached_before = reached;
    for (const int code : {1, 2, 46, 400, 600, 700, 719, 214, 710, 999}) {
      if (!is_of_part(step++)) continue;
      for (long n = 1;; ++n) {
        stand_in.reset();
        // Without a duration of each poll, their number would depend on the machine.
        if (function == "cuEventQuery") stand_in.latency(function, std::chrono::microseconds(10));
        REQUIRE(stand_in.alive().at("contexts") == 0);
        const long files = open_files();
        long calls = 0;
        bool lost = false;
        {
          const long before = stand_in.calls(function);
          stand_in.fail(function, n, code);
          INFO(function << ", call " << n << ", code " << code);
          const Outcome outcome = part.work(stand_in, [&] { REQUIRE(stand_in.current() == &theirs); });
          calls = stand_in.calls(function) - before;
          if (outcome.error) {
            ++errors;
            lost = *outcome.error == Errc::device_lost;
            CHECK_FALSE(outcome.error->sentence().empty());
          } else {
            CHECK(outcome.out == std::vector<Word>(length, 0));
          }
        }
        ++runs;
        INFO(function << ", call " << n << ", code " << code);
        CHECK(stand_in.depth() == 1);
        // The context frees the objects of a lost device.
        const bool fatal = cuda::ends_device(static_cast<CUresult>(code));
        if (!lost && !fatal && !gives_back(function)) {
          CHECK(stand_in.left_behind() == 0);
          CHECK(open_files() == files);
        }
        if (function != "cuDevicePrimaryCtxRelease" && function != "cuCtxDestroy") {
          CHECK(stand_in.alive().at("contexts") == 0);
        } else if (stand_in.alive().at("contexts") != 0) {
          stand_in.reset();
          const auto driver = good(cuda::CudaDriver::open(WYE_STAND_IN_CUDA));
          CHECK(driver->cu.DevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
        }
        // Past its last call, nothing fails any more.
        if (calls < n) break;
        ++reached;
        REQUIRE(n < 200);
      }
    }
    INFO(function);
    CHECK(reached > reached_before);
  }
  stand_in.pop();
  WARN("fault sweep: " << functions.size() << " functions, " << runs << " runs, " << reached
                       << " faults met, " << errors << " of them an error of the caller's");
  CHECK(reached > 1000 / part_asked().divisor);
}

}  // namespace wye::test
