// The checks of devices: answers, faults of drivers, stored reports.
#include <wye/cache/cache_directory.hpp>
#include <wye/wye.hpp>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/internals.hpp"
#include "device/lane_base.hpp"
#include "kernel/compilers/glsl.hpp"
#include "pool/discovery.hpp"
#include "runtime/checks.hpp"
#include "runtime/qualification.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/running_child.hpp"
#include "support/scripted_pool.hpp"
#include "support/skip.hpp"
#include "support/stop_point.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using namespace std::chrono_literals;
using runtime::DeviceQualifier;

namespace {

/// A Vulkan device whose driver has faults: a fault changes the code of kernels, or is any other
/// action.
class FaultyDevice final : public device::DeviceBase {
 public:
  using Fault = std::function<std::optional<Error>(device::Artefact&)>;

  FaultyDevice(std::shared_ptr<device::DeviceBase> real, AdapterInfo info, Fault fault)
      : DeviceBase(std::move(info)), real_(std::move(real)), fault_(std::move(fault)) {}

  std::span<const std::string_view> languages() const noexcept override { return real_->languages(); }
  MemoryInfo memory() override { return real_->memory(); }
  const Error* ended_by() const noexcept override { return real_->lost(); }
  Result<std::shared_ptr<DeviceBase>> open_again() const override {
    if (!is_found_again) return Error(Errc::unavailable, "It is not found again.");
    auto again = real_->open_again();
    if (!again) return again;
    return std::shared_ptr<DeviceBase>(std::make_shared<FaultyDevice>(*std::move(again), info(), fault_));
  }
  Result<std::shared_ptr<device::BufferBase>> create_buffer(const device::BufferRequest& request) override {
    return real_->create_buffer(request);
  }
  Result<std::shared_ptr<device::ExecutableBase>> create_executable(
      const device::Artefact& artefact) override {
    device::Artefact changed = artefact;
    if (auto refused = fault_(changed)) return *std::move(refused);
    return real_->create_executable(changed);
  }
  Result<std::unique_ptr<device::LaneBase>> create_lane(const device::LaneOptions& options) override {
    return real_->create_lane(options);
  }
  Result<std::shared_ptr<device::Timeline>> create_timeline() override { return real_->create_timeline(); }

  bool is_found_again = true;

 private:
  const std::shared_ptr<device::DeviceBase> real_;
  const Fault fault_;
};

/// Returns a Vulkan device; null if this machine has none.
std::shared_ptr<device::DeviceBase> vulkan() {
  auto pool = ContextPool::open({.backends = {"vulkan"}});
  if (!pool) return test::skip("there is no device of backend 'vulkan'"), nullptr;
  return base::state_of(pool->devices().front());
}

std::shared_ptr<FaultyDevice> faulty(const std::shared_ptr<device::DeviceBase>& real,
                                     FaultyDevice::Fault fault, const std::string& driver = "faulty 1") {
  AdapterInfo info = real->info();
  info.driver = driver;
  return std::make_shared<FaultyDevice>(real, std::move(info), std::move(fault));
}

/// Replaces the operation `from` by `to` in each kernel that has it. Both have the same operands.
FaultyDevice::Fault miscompiles(std::uint16_t from, std::uint16_t to) {
  return [=](device::Artefact& artefact) -> std::optional<Error> {
    std::vector<std::uint32_t> words(artefact.code.size() / 4);
    std::memcpy(words.data(), artefact.code.data(), words.size() * 4);
    for (std::size_t i = 5; i < words.size(); i += words[i] >> 16)
      if ((words[i] & 0xffff) == from) words[i] = (words[i] & 0xffff0000) | to;
    std::memcpy(artefact.code.data(), words.data(), words.size() * 4);
    return std::nullopt;
  };
}

std::optional<Error> no_fault(device::Artefact&) { return std::nullopt; }

/// Names the checks with `state`.
std::vector<std::string> names(const QualificationReport& report, CheckState state) {
  std::vector<std::string> names;
  for (const QualificationCheck& check : report.checks)
    if (check.state == state) names.push_back(check.name);
  return names;
}

using Names = std::vector<std::string>;

const base::Logger quiet({}, {.level = LogLevel::off, .rooms = {}});

std::shared_ptr<cache::Cache> cache_in(const std::string& directory) {
  return cache::Cache::open({.directory = directory}).value();
}

}  // namespace

TEST_CASE("a Vulkan device passes each check that it offers", "[runtime][qualification]") {
  const auto device = vulkan();
  if (!device) return;
  const auto report = qualify(Device(device));
  REQUIRE(report);
  INFO(report->text());
  CHECK(report->passed());
  CHECK(names(*report, CheckState::failed).empty());
  CHECK_FALSE(report->is_stored);
  CHECK(report->device == device->info().id);
  CHECK(report->driver == device->info().driver);
  Features checked;
  for (const QualificationCheck& check : report->checks) {
    if (check.state == CheckState::skipped) CHECK(check.detail == "The device does not offer it.");
    if (check.state == CheckState::passed && check.feature) checked.add(*check.feature);
  }
  Features unchecked{Feature::host_memory};
  if (!kernel::GlslCompiler::knows_cooperative_matrix()) unchecked.add(Feature::cooperative_matrix);
  CHECK(device->info().features.without(unchecked).without(checked).empty());
  CHECK(report->checks.size() == 2 + runtime::kernel_checks().size());
}

TEST_CASE("the CPU passes the checks that need no kernel, and 'null' fails", "[runtime][qualification]") {
  const auto open = [](const char* backend) {
    return ContextPool::open({.backends = {backend}}).value().devices().front();
  };
  const auto cpu = qualify(open("cpu"));
  REQUIRE(cpu);
  CHECK(names(*cpu, CheckState::passed) == Names{"copies", "timeline"});
  CHECK(cpu->passed());
  const auto null = qualify(open("null"));
  REQUIRE(null);
  CHECK_FALSE(null->passed());
  REQUIRE(null->checks.front().state == CheckState::failed);
  CHECK(null->checks.front().detail.find("expected 0x") != std::string::npos);
}

TEST_CASE("a device that is not there or a time limit that is not positive is refused",
          "[runtime][qualification]") {
  CHECK(qualify(Device()).error().sentence() == "Device handle is empty; expected a device to check.");
  const Device cpu = ContextPool::open({.backends = {"cpu"}}).value().devices().front();
  CHECK(qualify(cpu, {.check_timeout = -1ms}).error().sentence() ==
        "The time limit of a check (-0.001 s) is not positive.");
}

TEST_CASE("a driver that miscompiles an operation fails the check of it", "[runtime][qualification]") {
  const auto real = vulkan();
  if (!real) return;
  struct Fault {
    std::uint16_t from, to;
    const char* check;
  };
  // Numbers of SPIR-V's operations (SPIR-V specification, section 3.49).
  const Fault faults[] = {
      {134, 135, ""},           // OpUDiv -> OpSDiv
      {194, 195, ""},           // OpShiftRightLogical -> OpShiftRightArithmetic
      {133, 129, "floats"},     // OpFMul -> OpFAdd
      {234, 235, "atomics"},    // OpAtomicIAdd -> OpAtomicISub
      {242, 240, "atomics"},    // OpAtomicXor -> OpAtomicAnd
      {349, 356, "subgroups"},  // OpGroupNonUniformIAdd -> OpGroupNonUniformUMax
  };
  for (const Fault& fault : faults) {
    INFO(fault.from);
    const auto report = qualify(Device(faulty(real, miscompiles(fault.from, fault.to))));
    REQUIRE(report);
    INFO(report->text());
    const Names failed = names(*report, CheckState::failed);
    REQUIRE_FALSE(failed.empty());
    if (*fault.check != 0) CHECK(std::find(failed.begin(), failed.end(), fault.check) != failed.end());
  }
}

TEST_CASE("each kernel of a check is needed: a wrong result of it alone is found",
          "[runtime][qualification][no_tsan]") {
  const auto real = vulkan();
  if (!real) return;
  for (const runtime::KernelCheck& wrong : runtime::kernel_checks()) {
    // The kernel of another check with the same parameters runs in its place, or none is built.
    const auto report = qualify(Device(faulty(real, [&](device::Artefact& artefact) -> std::optional<Error> {
      if (artefact.kernel == "check of " + std::string(wrong.name))
        return Error(Errc::compile_failed, "The driver cannot compile it.");
      return std::nullopt;
    })));
    REQUIRE(report);
    const bool is_offered = !wrong.feature || real->info().features.has(*wrong.feature);
    CHECK(names(*report, CheckState::failed) == (is_offered ? Names{std::string(wrong.name)} : Names{}));
    CHECK(report->passed() == (wrong.feature.has_value() || !is_offered));
    CHECK(report->failed_features() == (wrong.feature && is_offered ? Features{*wrong.feature} : Features{}));
  }
}

TEST_CASE("a feature that fails is off, and errors say so; another failure disables the device",
          "[runtime][qualification]") {
  const auto real = vulkan();
  if (!real) return;
  if (!real->info().features.has(Feature::int64)) return test::skip("This Vulkan device has no int64.");
  const auto refusing = [&](std::string kernel) {
    return faulty(real, [kernel](device::Artefact& artefact) -> std::optional<Error> {
      if (artefact.kernel == kernel) return Error(Errc::compile_failed, "The driver cannot compile it.");
      return std::nullopt;
    });
  };
  std::vector<std::string> messages;
  const base::Logger log([&](const LogRecord& record) { messages.emplace_back(record.text); },
                         {.level = LogLevel::trace, .rooms = {}});
  DeviceQualifier qualifier(cache::Cache::open({}).value(), Qualification::stored, log);
  const auto device = refusing("check of int64");
  CHECK(qualifier.qualify(device));
  CHECK_FALSE(device->info().features.has(Feature::int64));
  CHECK(device->info().failed_features == Features{Feature::int64});
  CHECK(messages == Names{"Device '" + device->info().id +
                          "' failed check 'int64' of its qualification: The driver cannot compile it."});
  CHECK(device::lacking(device->info(), {Feature::int64}) == "int64, which failed the check of the device");
  CHECK(device::lacking(device->info(), {Feature::int64, Feature::host_memory}) ==
        "host_memory, and int64, which failed the check of the device");

  const auto refused = DeviceQualifier(cache::Cache::open({}).value(), Qualification::stored, log)
                           .qualify(refusing("check of barriers"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::unavailable);
  CHECK(refused.error().sentence() ==
        "Device '" + device->info().id +
            "' failed check 'barriers' of its qualification: The driver cannot compile it.");
  // Opened again by the same runtime, it is not checked again.
  const auto again =
      faulty(real, [](device::Artefact&) { return Error(Errc::internal, "It is checked again."); });
  CHECK(qualifier.qualify(again));
  CHECK_FALSE(again->info().features.has(Feature::int64));
}

TEST_CASE("a device that is not trusted is not opened, and the adapter has the reason",
          "[runtime][qualification]") {
  struct Refusing final : device::Qualifier {
    Result<void> qualify(const std::shared_ptr<device::DeviceBase>& device) override {
      if (device->info().backend == "null") return Error(Errc::unavailable, "It is not trusted.");
      device->withdraw({Feature::float64});
      device->limit_loops(1000);
      return {};
    }
  } refusing;
  const auto inventory = pool::take_inventory({.backends = {"null", "cpu"}}, {}, {}, &refusing).value();
  REQUIRE(inventory.devices.size() == 1);
  CHECK(inventory.devices.front()->info().id == "cpu:0");
  REQUIRE(inventory.adapters.size() == 2);
  CHECK_FALSE(inventory.adapters[0].usable);
  CHECK(inventory.adapters[0].reason == "It is not trusted.");
  CHECK_FALSE(inventory.adapters[1].features.has(Feature::float64));
  CHECK(inventory.adapters[1].failed_features == Features{Feature::float64});
  CHECK(inventory.adapters[1].limits.loop_iterations == 1000);
}

TEST_CASE("a report is stored for the build of a driver, and used by later runtimes",
          "[runtime][qualification]") {
  const auto real = vulkan();
  if (!real) return;
  const TemporaryFolder folder;
  std::atomic<int> checks{0};
  const auto counting = [&](const std::string& driver) {
    return faulty(
        real, [&](device::Artefact&) -> std::optional<Error> { return ++checks, std::nullopt; }, driver);
  };
  const auto made_by = [&](const std::shared_ptr<FaultyDevice>& device, Qualification rule) {
    checks = 0;
    DeviceQualifier qualifier(cache_in(folder.path()), rule, quiet);
    CHECK(qualifier.qualify(device));
    const auto reports = qualifier.reports();
    if (rule == Qualification::never) {
      CHECK(reports.empty());
    } else {
      REQUIRE(reports.size() == 1);
      CHECK(reports[0].is_stored == (checks == 0));
      CHECK(reports[0].device == device->info().id);
      CHECK(reports[0].passed());
      CHECK(reports[0].checks.size() == 2 + runtime::kernel_checks().size());
    }
    return checks.load();
  };
  const int all = made_by(counting("driver 1"), Qualification::stored);
  CHECK(all > 7);
  CHECK(made_by(counting("driver 1"), Qualification::stored) == 0);
  CHECK(made_by(counting("driver 2"), Qualification::stored) == all);
  CHECK(made_by(counting("driver 1"), Qualification::again) == all);
  CHECK(made_by(counting("driver 3"), Qualification::never) == 0);
  const auto files = list_cache(folder.path()).value();
  CHECK(std::any_of(files.begin(), files.end(),
                    [&](const StoredFile& file) { return file.name == "checks of " + real->info().name; }));
}

TEST_CASE("a runtime checks its Vulkan device once per build of the driver", "[runtime][qualification]") {
  if (!vulkan()) return;
  const TemporaryFolder folder;
  const auto reports = [&](Qualification rule) {
    const Runtime runtime = Runtime::open({.pool = {.backends = {"vulkan", "cpu"}},
                                           .cache = {.directory = folder.path()},
                                           .qualification = rule})
                                .value();
    CHECK(runtime.devices().size() == 2);
    for (const QualificationReport& report : runtime.qualifications())
      for (const Device& device : runtime.devices())
        if (device.id() == report.device)
          CHECK(device.info().limits.loop_iterations == report.loop_iterations);
    return runtime.qualifications();
  };
  const auto first = reports(Qualification::stored), second = reports(Qualification::stored);
  REQUIRE((first.size() == 1 && second.size() == 1));
  CHECK_FALSE(first[0].is_stored);
  CHECK(second[0].is_stored);
  CHECK(second[0].checks == first[0].checks);
  CHECK(second[0].loop_iterations == first[0].loop_iterations);
  CHECK(second[0].name == first[0].name);
  CHECK(reports(Qualification::never).empty());
  CHECK_FALSE(reports(Qualification::again).at(0).is_stored);
}

TEST_CASE("a process without a store checks a usable device once for all its runtimes",
          "[runtime][qualification]") {
  const auto real = vulkan();
  if (!real) return;
  int checks = 0;
  const auto counting = [&](FaultyDevice::Fault fault = no_fault) {
    return faulty(
        real, [&checks, fault](device::Artefact& artefact) { return ++checks, fault(artefact); }, "shared 1");
  };
  const auto qualifier = [](Qualification rule = Qualification::stored,
                            std::optional<std::string> settings = "settings") {
    return DeviceQualifier(cache::Cache::open({}).value(), rule, quiet, std::move(settings));
  };
  const auto made_by = [&](DeviceQualifier used, FaultyDevice::Fault fault = no_fault) {
    checks = 0;
    CHECK(used.qualify(counting(fault)));
    REQUIRE(used.reports().size() == 1);
    CHECK(used.reports()[0].is_stored == (checks == 0));
    CHECK(used.reports()[0].checks.size() == 2 + runtime::kernel_checks().size());
    return checks;
  };
  SECTION("the next runtime finds the report, and a runtime with other settings or another rule checks") {
    const int all = made_by(qualifier());
    CHECK(all > 7);
    CHECK(made_by(qualifier()) == 0);
    CHECK(made_by(qualifier(Qualification::stored, "others")) == all);
    CHECK(made_by(qualifier(Qualification::stored, std::nullopt)) == all);
    CHECK(made_by(qualifier(Qualification::again)) == all);
    const TemporaryFolder folder;
    CHECK(made_by(DeviceQualifier(cache_in(folder.path()), Qualification::stored, quiet, "settings")) == all);
  }
  SECTION("a device that was lost is checked by the next runtime") {
    auto first = qualifier(Qualification::again);
    const auto device = counting();
    REQUIRE(first.qualify(device));
    first.note_loss(*counting());  // another device
    CHECK(made_by(qualifier()) == 0);
    first.note_loss(*device);
    CHECK(made_by(qualifier()) > 7);
  }
  SECTION("a device that is not usable is checked each time, and a feature that failed stays off") {
    const auto refusing = [](const char* kernel) -> FaultyDevice::Fault {
      return [kernel](device::Artefact& artefact) -> std::optional<Error> {
        if (artefact.kernel == kernel) return Error(Errc::compile_failed, "The driver cannot compile it.");
        return std::nullopt;
      };
    };
    const auto device = faulty(real, refusing("check of barriers"), "shared 2");
    CHECK_FALSE(qualifier().qualify(device));
    CHECK(qualifier().qualify(faulty(real, no_fault, "shared 2")));
    if (!real->info().features.has(Feature::int64)) return;
    CHECK(qualifier().qualify(faulty(real, refusing("check of int64"), "shared 3")));
    const auto again = faulty(real, no_fault, "shared 3");
    CHECK(qualifier().qualify(again));
    CHECK(again->info().failed_features == Features{Feature::int64});
  }
}

TEST_CASE("a second runtime without a cache directory does not check its device again",
          "[runtime][qualification][no_sanitizer]") {
  if (!vulkan()) return;
  const auto report = [](Qualification rule) {
    const Runtime runtime = Runtime::open({.pool = {.backends = {"vulkan"}}, .qualification = rule}).value();
    return runtime.qualifications().at(0);
  };
  const auto first = report(Qualification::again), second = report(Qualification::stored);
  CHECK_FALSE(first.is_stored);
  CHECK(second.is_stored);
  CHECK(second.checks == first.checks);  // with their times
  CHECK(second.loop_iterations == first.loop_iterations);
  CHECK(test::in_child([&] { return report(Qualification::stored).is_stored ? 1 : 0; },
                       test::Leave::at_once) == test::success);  // another process
}

TEST_CASE("a driver that does not return costs the limit of one check", "[runtime][qualification][no_tsan]") {
  const auto real = vulkan();
  if (!real) return;
  test::StopPoint driver("the driver");
  {
    const auto device = faulty(real, [&](device::Artefact& artefact) -> std::optional<Error> {
      if (artefact.kernel != "check of barriers") return std::nullopt;
      driver.pass();
      return std::nullopt;
    });
    const auto report = qualify(Device(device), {.check_timeout = 1s});
    REQUIRE(report);
    CHECK_FALSE(report->passed());
    CHECK(report->stopped());
    CHECK(names(*report, CheckState::stopped) == Names{"barriers"});
    CHECK(report->checks.back().detail == "A call of the driver did not return within 2 s.");
  }
  driver.open();
  driver.await_passed();
  test::await([] { return base::Worker::alive() == 0; });
}

TEST_CASE("a device that does not complete its work costs the limit of one check",
          "[runtime][qualification]") {
  const auto device = test::scripted("vulkan:0");
  device->hold();
  const auto report = qualify(Device(device), {.check_timeout = 50ms});
  device->release();
  REQUIRE(report);
  CHECK_FALSE(report->passed());
  REQUIRE(report->checks.size() == 1);
  CHECK(report->checks[0].name == "copies");
  CHECK(report->checks[0].state == CheckState::stopped);
}

TEST_CASE("a device that is lost during its checks is not trusted, and lack of memory is no verdict",
          "[runtime][qualification]") {
  const auto failing = [](Errc code) {
    const auto device = test::scripted("vulkan:0");
    device->fail_at(test::ScriptedDevice::Step::create_buffer, code);
    return qualify(Device(device));
  };
  const auto lost = failing(Errc::device_lost);
  REQUIRE(lost);
  CHECK(lost->stopped());
  CHECK(failing(Errc::out_of_memory).error() == Errc::out_of_memory);
  const auto refused = failing(Errc::internal);
  REQUIRE(refused);
  CHECK(refused->checks[0].state == CheckState::failed);
  CHECK(refused->checks[0].detail == "The script fails this step.");
}

namespace {

/// Processes that check the same device, whose driver has a fault, and share a folder.
class Checkers {
 public:
  explicit Checkers(const AdapterInfo& info) : info_(info) {}

  /// Checks the device in the calling process. Returns the sentence of the refusal; empty: it is
  /// trusted.
  std::optional<std::string> check(const FaultyDevice::Fault& fault, bool is_found_again = true) const {
    const auto pool = ContextPool::open({.backends = {"vulkan"}});
    if (!pool) return std::nullopt;
    const auto device = std::make_shared<FaultyDevice>(base::state_of(pool->devices().front()), info_, fault);
    device->is_found_again = is_found_again;
    DeviceQualifier qualifier(cache_in(folder_.path()), Qualification::stored, quiet);
    const auto trusted = qualifier.qualify(device);
    return trusted ? std::string() : trusted.error().sentence();
  }
  /// Checks it in another process. Returns how that ends, as `test::in_child`: with success if the
  /// check ends with `expected`.
  std::string check_in_process(const FaultyDevice::Fault& fault, const std::string& expected,
                               bool is_found_again = true) const {
    return test::in_child(
        [&] {
          const auto refused = check(fault, is_found_again);
          WYE_CHILD_CHECK(1, refused);
          if (*refused != expected) std::fprintf(stderr, "%s\n", refused->c_str());
          WYE_CHILD_CHECK(2, *refused == expected);
          return 0;
        },
        test::Leave::at_once);
  }
  std::string refusal(const std::string& detail) const {
    return "Device '" + info_.id + "' failed check 'driver' of its qualification: " + detail;
  }

 private:
  const AdapterInfo info_;
  const TemporaryFolder folder_;
};

FaultyDevice::Fault at_barriers(std::function<void()> call) {
  return [call](device::Artefact& artefact) -> std::optional<Error> {
    if (artefact.kernel == "check of barriers") call();
    return std::nullopt;
  };
}

}  // namespace

TEST_CASE("a driver that crashes in a check ends one process, and the reason names the signal",
          "[runtime][qualification][no_sanitizer]") {
  const auto real = vulkan();
  if (!real) return;
  struct Case {
    std::function<void()> call;
    const char *end, *words;
  };
  const Case cases[] = {
      {[] { ::raise(SIGSEGV); }, "signal 11", "signal 11 (a segmentation fault)"},
      {[] { std::abort(); }, "signal 6", "signal 6 (a call of abort)"},
      {[] { ::_exit(9); }, "exit 9", "a call of exit"},
  };
  for (const Case& one : cases) {
    const Checkers checkers(real->info());
    CHECK(checkers.check_in_process(at_barriers(one.call), "") == one.end);
    const std::string expected = checkers.refusal(
        std::string("Check 'barriers' crashes: it has ended a process that did nothing else, by ") +
        one.words + ". The next try is an hour after the last one.");
    CHECK(checkers.check_in_process(at_barriers(one.call), expected) == test::success);
    CHECK(checkers.check_in_process(no_fault, expected) == test::success);
  }
}

TEST_CASE("ten processes that are killed in a check do not count against the driver",
          "[runtime][qualification][no_sanitizer]") {
  const auto real = vulkan();
  if (!real) return;
  const Checkers checkers(real->info());
  for (int i = 0; i < 10; ++i) {
    test::RunningChild killed([&](test::RunningChild& self) {
      (void)checkers
          .check(at_barriers([&] {
            self.tell();
            for (;;) ::pause();
          }))
          .has_value();
      return 1;
    });
    REQUIRE(killed.await());
    killed.kill();
  }
  CHECK(checkers.check_in_process(no_fault, "") == test::success);
  // Its report is stored.
  CHECK(checkers.check_in_process(at_barriers([] { ::_exit(9); }), "") == test::success);
}

TEST_CASE("if the process that repeats a check is killed, the next process begins the checks again",
          "[runtime][qualification][no_sanitizer]") {
  const auto real = vulkan();
  if (!real) return;
  const Checkers checkers(real->info());
  const auto killed = at_barriers([] { ::raise(SIGKILL); });
  CHECK(checkers.check_in_process(killed, "") == "signal 9");
  const std::string expected = "Device '" + real->info().id +
                               "' could not be checked: A child process was ended by signal 9, which another "
                               "process or the system sent.";
  CHECK(checkers.check_in_process(killed, expected) == test::success);
  CHECK(checkers.check_in_process(no_fault, "") == test::success);
}

TEST_CASE("if no child process can check a device, two deaths in a row are a pause with an unknown reason",
          "[runtime][qualification][no_sanitizer]") {
  const auto real = vulkan();
  if (!real) return;
  const Checkers checkers(real->info());
  CHECK(checkers.check_in_process(at_barriers([] { ::raise(SIGKILL); }), "", false) == "signal 9");
  CHECK(checkers.check_in_process(at_barriers([] { ::raise(SIGSEGV); }), "", false) == "signal 11");
  CHECK(
      checkers.check_in_process(
          no_fault,
          checkers.refusal("2 processes ended in check 'barriers' of the device. Whether it crashed or they "
                           "were killed is not known. The next try is 1 min after the last one."),
          false) == test::success);
}

TEST_CASE("reports are the same after they were stored, and other text is none", "[runtime][qualification]") {
  QualificationReport report{.checks = {{.name = "copies", .state = CheckState::passed, .took = 1234ns},
                                        {.name = "int64",
                                         .feature = Feature::int64,
                                         .state = CheckState::failed,
                                         .detail = "Result 0 of\titem 1 is wrong.\n"},
                                        {.name = "float64",
                                         .feature = Feature::float64,
                                         .state = CheckState::skipped,
                                         .detail = "The device does not offer it."}},
                             .loop_iterations = 65'535};
  const std::string text = runtime::encode(report);
  const auto decoded = runtime::decode(text);
  REQUIRE(decoded);
  report.checks[1].detail = "Result 0 of item 1 is wrong. ";
  CHECK(decoded->checks == report.checks);
  CHECK(decoded->loop_iterations == 65'535);
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto cut = runtime::decode(std::string_view(text).substr(0, size));
    CHECK((!cut || cut->checks.size() < report.checks.size()));
  }
  CHECK_FALSE(runtime::decode("123\n0\ncopies\t-1\t9\t5\t\n"));
  CHECK_FALSE(runtime::decode("123\ncopies\t-1\t0\t5\t\n"));  // as an earlier version stored it
  CHECK_FALSE(runtime::decode("123\n-1\ncopies\t-1\t0\t5\t\n"));
  CHECK_FALSE(runtime::decode("x\n"));

  report.checks.push_back({.name = "barriers", .state = CheckState::stopped, .detail = "It did not return."});
  std::string stopped = runtime::encode(report);
  CHECK(runtime::decode(stopped));
  const auto minutes = std::stoll(stopped.substr(0, stopped.find('\n')));
  const auto made = [&](long long at) { return std::to_string(at) + stopped.substr(stopped.find('\n')); };
  CHECK(runtime::decode(made(minutes - 24 * 60 + 1)));
  CHECK_FALSE(runtime::decode(made(minutes - 24 * 60 - 1)));
  CHECK_FALSE(runtime::decode(made(minutes + 2)));  // the clock was set back
}
