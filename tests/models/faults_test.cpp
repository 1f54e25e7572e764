// Encoders and queues on a device whose driver fails, one call at a time. They run in a process
// without another runtime (tests/models/CMakeLists.txt): the stand-in forgets a fault if no device is
// open.
#include <wye/models/embed_queue.hpp>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/skip.hpp"
#include "tiny_model.hpp"
#include "workloads/stand_in.hpp"

using namespace wye;
using namespace std::chrono_literals;
using models::EmbedQueue;
using models::EmbedQueueMetrics;
using models::EmbedTicket;
using models::Encoder;
using models::Precision;
using test::StandIn;
using test::TinyModel;

namespace {

constexpr int out_of_memory = 2, illegal_address = 700;  // CUresult; the second one ends the device
constexpr const char* functions[] = {
    "cuCtxPushCurrent",           "cuEventCreate",    "cuEventQuery",       "cuEventRecord",
    "cuEventSynchronize",         "cuLaunchKernel",   "cuLibraryGetKernel", "cuLibraryLoadData",
    "cuMemAllocFromPoolAsync",    "cuMemFreeAsync",   "cuMemcpyAsync",      "cuMemsetD32Async",
    "cuStreamCreateWithPriority", "cuStreamWaitEvent"};

const std::vector<std::string> some_texts = {"a", "b c", "de fgh i", "", "j k l m n o p", "qrs tuv w x y z"};

/// Clears the faults of the stand-in when it ends, which is after all devices.
class Faults {
 public:
  explicit Faults(const StandIn& stand_in) : stand_in_(stand_in) {}
  Faults(const Faults&) = delete;
  ~Faults() { stand_in_.reset(); }
  void fail(const std::string& function, long nth, int code) { stand_in_.fail(function.c_str(), nth, code); }

 private:
  const StandIn& stand_in_;
};

/// Each runtime of a test compiles its kernels once: the folder is its cache.
RuntimeOptions options_of(const TinyModel& model, std::vector<std::string> backends) {
  RuntimeOptions options = RuntimeOptions::from_environment().value();
  options.pool.backends = std::move(backends);
  for (Preference row : default_preferences()) {
    row.at_least = {};
    row.backends = options.pool.backends;
    options.scheduler.preferences.push_back(std::move(row));
  }
  options.scheduler.measure_variants = false;
  options.cache.directory = model.folder().path() / "cache";
  return options;
}

bool is_right(const TinyModel& model, const Encoder& encoder, const std::string& text,
              std::span<const float> row, double limit) {
  const auto exact = model.exact(test::sequence_of(encoder, text));
  return row.size() == exact.size() && test::largest_difference(row, exact) < limit;
}

/// Returns how often each function is called while `f` runs.
std::map<std::string, long> calls_of(const StandIn& stand_in, const std::function<void()>& f) {
  std::map<std::string, long> calls;
  for (const char* function : functions) calls[function] = -stand_in.calls(function);
  f();
  for (const char* function : functions) calls[function] += stand_in.calls(function);
  return calls;
}

}  // namespace

TEST_CASE("each request of a queue settles once, whichever call of the driver fails", "[models][faults]") {
  const auto stand_in = test::stand_in_driver();
  if (!stand_in) return test::skip("CUDA's driver is no stand-in");
  const TinyModel model;
  const std::string folder = model.write();
  int completed = 0, failed = 0;
  /// Returns the calls of the requests.
  const auto run = [&](const char* function, long nth, int code) {
    Faults faults(*stand_in);
    const Runtime runtime = Runtime::open(options_of(model, {"cuda"})).value();
    const Encoder encoder = Encoder::open(runtime, folder).value();
    const EmbedQueue queue = EmbedQueue::open(encoder, {.delay = 0ns, .batch_texts = 4}).value();
    return calls_of(*stand_in, [&] {
      if (function) faults.fail(function, nth, code);
      std::vector<EmbedTicket> tickets;
      for (const std::string& text : some_texts) tickets.push_back(queue.submit(text).value());
      int mine = 0;
      for (std::size_t i = 0; i < some_texts.size(); ++i) {
        const auto row = tickets[i].wait(60s);
        REQUIRE(tickets[i].ready());
        if (row)
          CHECK(is_right(model, encoder, some_texts[i], *row, 2e-6));
        else
          CHECK_FALSE(row.error().sentence().empty());
        const auto again = tickets[i].wait();
        CHECK(again.has_value() == row.has_value());
        mine += row.has_value();
      }
      completed += mine;
      failed += static_cast<int>(some_texts.size()) - mine;
      const EmbedQueueMetrics counts = queue.metrics();
      CHECK(counts.requests == some_texts.size());
      CHECK(counts.completed == static_cast<std::uint64_t>(mine));
      CHECK(counts.completed + counts.failed == some_texts.size());
      CHECK(counts.waiting == 0);
      CHECK(counts.running == 0);
    });
  };
  const auto calls = run(nullptr, 0, 0);
  CHECK(failed == 0);
  int runs = 0;
  for (const auto& [function, count] : calls)
    for (const int code : {out_of_memory, illegal_address})
      for (const long nth : std::set<long>{1, 2, (count + 1) / 2, count}) {
        if (nth < 1 || nth > count) continue;
        INFO(function << " answers " << code << " at call " << nth << " of " << count);
        run(function.c_str(), nth, code);
        ++runs;
      }
  INFO(runs << " runs; " << completed << " requests completed, " << failed << " failed");
  CHECK(runs > 60);
  CHECK(failed > runs);
}

TEST_CASE("a batch whose device is lost runs on another one", "[models][faults]") {
  const auto stand_in = test::stand_in_driver();
  if (!stand_in) return test::skip("CUDA's driver is no stand-in");
  const TinyModel model;
  const std::string folder = model.write();
  const std::vector<std::string_view> views(some_texts.begin(), some_texts.end());
  const auto precision = GENERATE(Precision::float32, Precision::float16, Precision::q8_0);
  INFO(models::name(precision));
  const double limit = precision == Precision::float32 ? 2e-6 : 0.05;
  const auto open = [&] { return Runtime::open(options_of(model, {"cuda", "cpu"})).value(); };
  long launches = 0;
  {
    const Runtime runtime = open();
    const Encoder encoder = Encoder::open(runtime, folder, {.precision = precision}).value();
    launches = -stand_in->calls("cuLaunchKernel");
    const auto rows = encoder.embed(views);
    REQUIRE(rows);
    CHECK(rows->device().backend == "cuda");
    launches += stand_in->calls("cuLaunchKernel");
    REQUIRE(launches > 20);
  }
  for (long nth = 1; nth <= launches; nth += launches / 4) {
    INFO("launch " << nth << " of " << launches);
    Faults faults(*stand_in);
    const Runtime runtime = open();
    const Encoder encoder = Encoder::open(runtime, folder, {.precision = precision}).value();
    faults.fail("cuLaunchKernel", nth, illegal_address);
    const auto rows = encoder.embed(views);
    if (!rows) FAIL(rows.error().describe());
    CHECK(rows->device().backend == "cpu");
    for (std::size_t t = 0; t < some_texts.size(); ++t)
      CHECK(is_right(model, encoder, some_texts[t], (*rows)[t], limit));
  }
}
