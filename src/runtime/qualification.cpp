#include "runtime/qualification.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <deque>
#include <new>
#include <span>
#include <utility>

#include "base/gate.hpp"
#include "base/internals.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "base/wall_time.hpp"
#include "base/worker.hpp"
#include "cache/store/artefact_bytes.hpp"
#include "device/backend.hpp"
#include "device/lane.hpp"
#include "kernel/program.hpp"
#include "kernel/source.hpp"
#include "pool/pool.hpp"
#include "runtime/checks.hpp"
#include "silicon/memory_account.hpp"

namespace wye::inline v0 {

std::string_view name(CheckState state) noexcept {
  constexpr std::string_view names[] = {"passed", "failed", "stopped", "skipped"};
  const auto i = static_cast<std::size_t>(state);
  return i < std::size(names) ? names[i] : "unknown";
}

bool QualificationReport::passed() const noexcept {
  return !stopped() && std::none_of(checks.begin(), checks.end(), [](const QualificationCheck& check) {
    return check.state == CheckState::failed && !check.feature;
  });
}

bool QualificationReport::stopped() const noexcept {
  return std::any_of(checks.begin(), checks.end(),
                     [](const QualificationCheck& check) { return check.state == CheckState::stopped; });
}

Features QualificationReport::failed_features() const noexcept {
  Features failed;
  for (const QualificationCheck& check : checks)
    if (check.state == CheckState::failed && check.feature) failed.add(*check.feature);
  return failed;
}

std::string QualificationReport::text() const {
  std::string lines = base::text("{} ({}, {}){}\n", device, this->name, driver, is_stored ? ", stored" : "");
  for (const QualificationCheck& check : checks)
    lines += base::text("  {:<28} {:<8} {:9.3f} ms  {}\n", check.name, wye::name(check.state),
                        pool::seconds(check.took) * 1e3, check.detail);
  if (loop_iterations != 0)
    lines += base::text("  the loops of one invocation end after {} iterations in total\n", loop_iterations);
  return lines;
}

namespace runtime {
namespace {

/// Time after which a device that did not complete a check is checked again.
constexpr std::int64_t minutes_until_retry = 24 * 60;
/// Limit of the wait for another process that checks the same device.
constexpr Duration claim_timeout = std::chrono::seconds(30);

/// The result of a check that runs on a device.
struct Verdict {
  CheckState state = CheckState::passed;
  std::string detail = {};
  bool lacks_compiler = false;
  std::optional<Error> error;  ///< set if the check could not be made
  std::uint64_t loop_iterations = 0;
};

Verdict verdict_of(const Mistake& mistake) {
  if (mistake) return {.state = CheckState::failed, .detail = *mistake, .error = {}};
  return {.error = {}};
}

/// Returns the verdict on a device whose call failed with `error`.
Verdict verdict_of(const Error& error) {
  if (silicon::is_shortage(error)) return {.error = error};
  const bool stops = error == Errc::timed_out || error == Errc::device_lost;
  return {.state = stops ? CheckState::stopped : CheckState::failed, .detail = error.sentence(), .error = {}};
}

Verdict verdict_of(const Result<Mistake>& answer) {
  return answer ? verdict_of(*answer) : verdict_of(answer.error());
}

/// A lane with the buffers of one check. If its work does not complete in time, it stays in memory.
class Bench {
 public:
  Bench(device::DeviceBase& device, Instant until) : device_(device), until_(until) {}
  ~Bench() {
    if (!is_abandoned_) return;
    // The destructor of the lane would wait, and the device may still write to the targets of
    // downloads.
    base::detail::keep(lane_.release());
    base::detail::keep(new std::deque(std::move(targets_)));
  }
  Bench(const Bench&) = delete;

  Result<void> open() {
    auto lane = device::Lane::create(device_);
    if (!lane) return std::move(lane).error();
    lane_ = std::move(*lane);
    return {};
  }
  Result<device::BufferRange> buffer(std::size_t bytes) {
    const Bytes size{bytes};
    auto made = device_.create_buffer({.bytes = size, .account = nullptr});
    if (!made) return std::move(made).error();
    return device::BufferRange{std::move(*made), {}, size};
  }
  device::Lane& lane() noexcept { return *lane_; }
  /// Downloads `from`. The bytes are valid after `wait`.
  const std::vector<std::byte>& download(const device::BufferRange& from) {
    targets_.emplace_back(from.size.count, std::byte{0xee});
    lane_->download(from, targets_.back());
    return targets_.back();
  }
  Result<void> wait() {
    auto done = lane_->wait(until_);
    is_abandoned_ = !done && done.error() == Errc::timed_out;
    return done;
  }

 private:
  device::DeviceBase& device_;
  const Instant until_;
  std::unique_ptr<device::Lane> lane_;
  std::deque<std::vector<std::byte>> targets_;  // its elements keep their addresses
  bool is_abandoned_ = false;
};

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> values(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    values[i] = static_cast<std::byte>((i * 0x9e3779b1u + seed) >> 11 ^ i);
  return values;
}

Mistake differs(std::span<const std::byte> is, std::span<const std::byte> should) {
  const auto at = std::mismatch(is.begin(), is.end(), should.begin(), should.end()).first;
  if (at == is.end()) return std::nullopt;
  const auto i = static_cast<std::size_t>(at - is.begin());
  return base::text("Byte {} of {} is {:#x}; expected {:#x}.", i, is.size(), std::to_integer<unsigned>(is[i]),
                    std::to_integer<unsigned>(should[i]));
}

/// Uploads, fills, copies between offsets and downloads.
Result<Mistake> check_copies(device::DeviceBase& device, Instant until) {
  constexpr std::size_t size = 64 << 10, part = 4096, offset = 1024;
  Bench bench(device, until);
  if (auto opened = bench.open(); !opened) return std::move(opened).error();
  const auto first = bench.buffer(size), second = bench.buffer(size);
  if (!first || !second) return (first ? second : first).error();
  std::vector<std::byte> values = pattern(size, 1);
  bench.lane().upload(values, *first);
  bench.lane().fill({second->buffer, {}, Bytes{size}}, 0x5aa5c33c);
  bench.lane().copy({first->buffer, Bytes{offset}, Bytes{part}},
                    {second->buffer, Bytes{3 * offset}, Bytes{part}});
  const auto& copied = bench.download(*second);
  const auto& kept = bench.download(*first);
  if (auto done = bench.wait(); !done) return std::move(done).error();
  if (auto wrong = differs(kept, values)) return wrong;
  std::vector<std::byte> expected(size);
  constexpr std::array<unsigned char, 4> filled{0x3c, 0xc3, 0xa5, 0x5a};
  for (std::size_t i = 0; i < size; ++i) expected[i] = std::byte{filled[i % 4]};
  std::copy_n(values.begin() + offset, part, expected.begin() + 3 * offset);
  return differs(copied, expected);
}

/// Submits work that waits for the host, signals it, and waits for its end.
Result<Mistake> check_timeline(device::DeviceBase& device, Instant until) {
  Bench bench(device, until);
  if (auto opened = bench.open(); !opened) return std::move(opened).error();
  auto gate = device.create_timeline();
  if (!gate) return std::move(gate).error();
  const auto memory = bench.buffer(4096);
  if (!memory) return memory.error();
  bench.lane().wait_for({*gate, 1});
  bench.lane().fill(*memory, 0x01020304);
  const auto& filled = bench.download(*memory);
  const device::TimelinePoint end = bench.lane().submit();
  if (bench.lane().failure()) return *bench.lane().failure();
  const bool is_early = end.timeline->reached() >= end.value;
  if (auto signaled = (*gate)->signal(1); !signaled) return std::move(signaled).error();
  if (auto done = bench.wait(); !done) return std::move(done).error();
  if (is_early) return Mistake("Work that waits for the host completed before the host signaled.");
  if (end.timeline->reached() < end.value) return Mistake("Completed work has not signaled its timeline.");
  for (std::size_t i = 0; i < filled.size(); ++i)
    if (filled[i] != static_cast<std::byte>(4 - i % 4))
      return Mistake(base::text("Byte {} of {} is wrong.", i, filled.size()));
  return Mistake();
}

Operand operand_of(const device::BufferRange& buffer, const Slot& slot) {
  Operand operand;
  operand.kind = Operand::Kind::buffer;
  operand.access = slot.access;
  operand.element = slot.element;
  operand.size = slot.size;
  operand.count = buffer.size.count / slot.size;
  operand.object = buffer.buffer;
  return operand;
}

Result<Verdict> run_kernel(device::DeviceBase& device, const KernelCheck& check,
                           const std::shared_ptr<device::ExecutableBase>& executable, Instant until) {
  Bench bench(device, until);
  if (auto opened = bench.open(); !opened) return std::move(opened).error();
  const std::vector<std::byte> input = input_of(check);
  const std::size_t outputs = std::size_t{check.items} * check.results + check.more,
                    to_size = kernel::size_of(check.to);
  const auto x = bench.buffer(input.size()), y = bench.buffer((outputs * to_size + 3) / 4 * 4);
  if (!x || !y) return (x ? y : x).error();
  bench.lane().upload(input, *x);
  bench.lane().fill(*y, check.is_zeroed ? 0 : 0xcdcdcdcd);
  const ParamSchema& schema = executable->artefact().schema;
  Arguments arguments;
  arguments.push_back(operand_of(*x, schema.slots[0]));
  device::BufferRange results = *y;
  results.size = Bytes{outputs * to_size};
  arguments.push_back(operand_of(results, schema.slots[1]));
  arguments.push_back(Operand::of_value(check.items));
  for (const std::uint32_t value : check.parameters)
    arguments.push_back(kernel::size_of(check.parameter) == 1
                            ? Operand::of_value(static_cast<std::uint8_t>(value))
                            : Operand::of_value(static_cast<std::uint16_t>(value)));
  bench.lane().dispatch(executable, arguments, Extent3(check.items));
  const auto& output = bench.download(*y);
  if (auto done = bench.wait(); !done) return std::move(done).error();
  const Answer answer{.x = input, .y = output, .n = check.items};
  Verdict verdict = verdict_of(check.find_mistake(answer));
  if (check.loop_iterations) verdict.loop_iterations = check.loop_iterations(answer);
  return verdict;
}

Verdict check_kernel(device::DeviceBase& device, const KernelCheck& check, Instant until) {
  const auto skipped = [](std::string why, bool lacks_compiler) {
    return Verdict{.state = CheckState::skipped,
                   .detail = std::move(why),
                   .lacks_compiler = lacks_compiler,
                   .error = {}};
  };
  if (check.feature && !device.info().features.has(*check.feature))
    return skipped("The device does not offer it.", false);
  const auto kernel = make_kernel(check);
  if (!kernel) return skipped(kernel.error().sentence(), false);
  const device::Program& program = *base::programs_of(*kernel)[0];
  const auto has = [&](std::string_view language) {
    const auto languages = device.languages();
    return std::find(languages.begin(), languages.end(), language) != languages.end();
  };
  const bool has_text =
      (has("spirv") && !check.text->glsl.empty()) || (has("ptx") && !check.text->cuda.empty());
  if (!has_text) return skipped(base::text("There is no such check for '{}'.", device.info().backend), false);
  if (const auto refusal = program.refusal(device)) return skipped(refusal->sentence(), true);
  const auto artefact = program.build(device);
  if (!artefact && artefact.error() == Errc::out_of_memory) return {.error = artefact.error()};
  if (!artefact) return skipped(artefact.error().sentence(), false);
  if (const Features missing = artefact->needs.without(device.info().features); !missing.empty())
    return skipped(base::text("It needs {}, which the device does not offer.", to_string(missing)), false);
  const auto executable = device.create_executable(*artefact);
  if (!executable) return verdict_of(executable.error());
  auto verdict = run_kernel(device, check, *executable, until);
  return verdict ? *std::move(verdict) : verdict_of(verdict.error());
}

/// Checks on a thread of their own. The thread shares them with its caller, and outlasts it if the
/// driver does not return.
struct Run {
  std::shared_ptr<device::DeviceBase> device;
  Duration check_timeout{};
  base::ReachStep reach;  // called under `mutex`: not after the caller has abandoned the checks
  std::uint8_t step = 0;
  std::mutex mutex;
  base::Gate gate;
  // Under `mutex`:
  QualificationReport report;
  QualificationCheck current;  // the check that runs
  Instant since{};             // its begin
  bool is_complete = false;
  bool is_abandoned = false;
  bool lacks_compiler = false;
  std::optional<Error> error;  // why the checks ended early
  std::optional<base::Worker> thread;

  /// Makes one check. Returns false if it is the last.
  template <class F>
  bool make(std::string_view check_name, std::optional<Feature> feature, F check) {
    const Instant begin = Clock::steady().now();
    {
      const std::lock_guard lock(mutex);
      if (is_abandoned) return false;
      current = {.name = std::string(check_name), .feature = feature};
      since = begin;
      ++step;
      if (reach) reach(step);
    }
    gate.wake_all();
    Verdict verdict = check(begin + check_timeout);
    const std::lock_guard lock(mutex);
    if (is_abandoned) return false;
    lacks_compiler |= verdict.lacks_compiler;
    error = std::move(verdict.error);
    if (error) return false;
    current.state = verdict.state;
    current.detail = std::move(verdict.detail);
    current.took = Clock::steady().now() - begin;
    report.checks.push_back(current);
    report.loop_iterations = std::max(report.loop_iterations, verdict.loop_iterations);
    return verdict.state != CheckState::stopped;
  }

  void make_all() {
    const auto compilers = kernel::keep_compilers();  // otherwise each check starts them again
    const auto on_device = [&](Result<Mistake> (*check)(device::DeviceBase&, Instant)) {
      return [this, check](Instant until) { return verdict_of(check(*device, until)); };
    };
    if (!make("copies", {}, on_device(check_copies))) return;
    if (!make("timeline", {}, on_device(check_timeline))) return;
    for (const KernelCheck& check : kernel_checks())
      if (!make(check.name, check.feature,
                [&](Instant until) { return check_kernel(*device, check, until); }))
        return;
  }

  void run() noexcept {
    std::optional<Error> failure;
    try {
      make_all();
    } catch (const std::bad_alloc&) {
      failure = no_memory;
    }
    const std::lock_guard lock(mutex);
    if (failure) error = std::move(failure);
    is_complete = true;
    gate.wake_all();
  }
  const Error no_memory{Errc::out_of_memory, "The host has no memory to check a device."};
};

}  // namespace

Result<QualificationReport> run_checks(const std::shared_ptr<device::DeviceBase>& device,
                                       Duration check_timeout, bool& lacks_compiler, base::ReachStep reach) {
  const auto run = std::make_shared<Run>();
  run->device = device;
  run->check_timeout = check_timeout;
  run->reach = std::move(reach);
  run->since = Clock::steady().now();
  run->report = {.device = device->info().id, .name = device->info().name, .driver = device->info().driver};
  std::optional<base::Worker> thread;  // joined after the lock is released
  base::Lock lock(run->mutex);
  auto started = base::Worker::start("wye-qualify", [run] { run->run(); });
  if (!started) return std::move(started).error();
  run->thread.emplace(std::move(*started));
  // Waits for the device end at `check_timeout`. A thread that is later than that is in a call of
  // the driver.
  const Duration patience = check_timeout + std::chrono::seconds(1);
  while (!run->is_complete) {
    const Instant since = run->since;
    if (run->gate.wait(lock, since + patience, [&] { return run->is_complete || run->since != since; }))
      continue;
    run->is_abandoned = true;
    run->current.state = CheckState::stopped;
    run->current.detail =
        base::text("A call of the driver did not return within {} s.", pool::seconds(patience));
    run->current.took = patience;
    run->report.checks.push_back(run->current);
    return run->report;
  }
  thread.emplace(std::move(*run->thread));
  run->thread.reset();
  lacks_compiler = run->lacks_compiler;
  if (run->error) return *std::move(run->error);
  return std::move(run->report);
}

std::string encode(const QualificationReport& report) {
  std::string text = base::text("{}\n{}\n", base::minutes_since_1970(), report.loop_iterations);
  for (const QualificationCheck& check : report.checks) {
    std::string detail = check.detail;
    std::replace_if(
        detail.begin(), detail.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
    text +=
        base::text("{}\t{}\t{}\t{}\t{}\n", check.name, check.feature ? static_cast<int>(*check.feature) : -1,
                   static_cast<int>(check.state), check.took.count(), detail);
  }
  return text;
}

std::optional<QualificationReport> decode(std::string_view text) {
  const auto next = [&](char end) -> std::optional<std::string_view> {
    const std::size_t at = text.find(end);
    if (at == text.npos) return std::nullopt;
    const std::string_view field = text.substr(0, at);
    text.remove_prefix(at + 1);
    return field;
  };
  const auto number = [](std::optional<std::string_view> field, std::int64_t& out) {
    if (!field) return false;
    const auto [end, error] = std::from_chars(field->data(), field->data() + field->size(), out);
    return error == std::errc() && end == field->data() + field->size();
  };
  std::int64_t made = 0, loop_iterations = 0;
  if (!number(next('\n'), made) || !number(next('\n'), loop_iterations) || loop_iterations < 0)
    return std::nullopt;
  QualificationReport report;
  report.loop_iterations = static_cast<std::uint64_t>(loop_iterations);
  while (!text.empty()) {
    QualificationCheck check;
    std::int64_t feature = 0, state = 0, took = 0;
    const auto check_name = next('\t');
    if (!check_name || !number(next('\t'), feature) || !number(next('\t'), state) ||
        !number(next('\t'), took))
      return std::nullopt;
    const auto detail = next('\n');
    if (!detail || state < 0 || state > static_cast<int>(CheckState::skipped)) return std::nullopt;
    if (feature >= 0) check.feature = static_cast<Feature>(feature);
    check.name = *check_name;
    check.state = static_cast<CheckState>(state);
    check.took = Duration(took);
    check.detail = *detail;
    report.checks.push_back(std::move(check));
  }
  const auto age = std::int64_t{base::minutes_since_1970()} - made;
  if (report.stopped() && (age < 0 || age > minutes_until_retry)) return std::nullopt;
  return report;
}

namespace {

/// The reports of usable devices that this process has checked without a store. They have a fixed
/// number of places in static memory: nothing is freed at the end of the process, or left behind if
/// the library is unloaded.
/// Threads: thread-safe.
class ProcessReports {
 public:
  std::optional<QualificationReport> find(const Digest& key) {
    const std::lock_guard lock(mutex_);
    const Place* const place = at(key);
    if (!place) return std::nullopt;
    auto report = decode({place->text.data(), place->size});
    if (report) report->is_stored = true;
    return report;
  }
  /// Replaces the oldest report if there is no place left. Does not keep a report that is too long.
  void keep(const Digest& key, const QualificationReport& report) {
    const std::string text = encode(report);
    const std::lock_guard lock(mutex_);
    Place* place = at(key);
    if (text.size() > longest) return forget(place);
    if (!place) place = &places_[next_++ % places_.size()];
    place->key = key;
    place->size = text.size();
    std::copy(text.begin(), text.end(), place->text.begin());
  }
  void forget(const Digest& key) noexcept {
    const std::lock_guard lock(mutex_);
    forget(at(key));
  }

 private:
  static constexpr std::size_t longest = 6000;  // that of lavapipe has 1,200 bytes
  struct Place {
    Digest key;
    std::size_t size = 0;  // 0: free
    std::array<char, longest> text{};
  };
  Place* at(const Digest& key) noexcept {
    for (Place& place : places_)
      if (place.size != 0 && place.key == key) return &place;
    return nullptr;
  }
  static void forget(Place* place) noexcept {
    if (place) place->size = 0;
  }

  std::mutex mutex_;
  std::array<Place, 16> places_{};  // under `mutex_`
  std::size_t next_ = 0;            // likewise
};

constinit base::PerProcess<ProcessReports> process_reports;

/// Returns the key of a report: of the checks, the device with its features, and the build of its
/// driver.
Digest key_of(const device::DeviceBase& device) {
  Hasher hasher;
  hasher.add("wye qualification 2");  // the number changes with the format of `encode`
  for (const KernelCheck& check : kernel_checks())
    hasher.add(check.name).add(check.text->glsl).add(check.text->cuda);
  return hasher.add(to_string(device.info().features)).add(device.driver_identity().bytes).finish();
}

}  // namespace

std::optional<QualificationReport> DeviceQualifier::load(const Digest& key) {
  const auto bytes = cache_->store()->get_report(key);
  if (!bytes) return std::nullopt;
  const auto record = cache::decode_driver(*bytes, key);
  if (!record) return std::nullopt;
  const std::span<const std::byte> text = record->bytes;
  auto report = decode({reinterpret_cast<const char*>(text.data()), text.size()});
  if (report) report->is_stored = true;
  return report;
}

void DeviceQualifier::save(const device::DeviceBase& device, const Digest& key,
                           const QualificationReport& report) {
  const std::string text = encode(report);
  const auto bytes = std::as_bytes(std::span(text));
  cache_->store()->put_report(key,
                              cache::encode(cache::DriverRecord{.device = "checks of " + device.info().name,
                                                                .driver = device.info().driver,
                                                                .bytes = {bytes.begin(), bytes.end()}},
                                            key));
}

namespace {

/// A report without checks, of a device whose checks end processes.
QualificationReport refusal(std::string reason) {
  return {.checks = {{.name = "driver", .state = CheckState::stopped, .detail = std::move(reason)}}};
}

/// Names the check with the number `step`.
std::string_view check_at(std::uint8_t step) {
  constexpr std::string_view first[] = {"copies", "timeline"};
  const std::size_t at = step - 1u;
  if (at < std::size(first)) return first[at];
  const auto& others = kernel_checks();
  return at - std::size(first) < others.size() ? others[at - std::size(first)].name : "unknown";
}

/// A report and whether a check lacks its compiler.
struct Checked {
  QualificationReport report;
  bool lacks_compiler = false;
};

/// Makes the checks in a child process, which opens the device itself.
base::ChildEnd check_in_child(const device::DeviceBase& device) {
  const Duration check_timeout = QualificationOptions{}.check_timeout;
  return base::run_in_child(
      [&](const base::ReachStep& reach) -> std::optional<std::vector<std::byte>> {
        reach(base::child_only_step);
        const auto opened = device.open_again();
        if (!opened) return std::nullopt;
        bool lacks_compiler = false;
        const auto report = run_checks(*opened, check_timeout, lacks_compiler, reach);
        if (!report) return std::nullopt;
        const std::string text = (lacks_compiler ? '1' : '0') + encode(*report);
        const auto bytes = std::as_bytes(std::span(text));
        return std::vector<std::byte>(bytes.begin(), bytes.end());
      },
      check_timeout + std::chrono::seconds(5));
}

/// Decides about a device whose checks have ended earlier processes: a child process makes them.
/// Returns nothing if it cannot tell, and this process may make them.
/// Errors: unavailable: the child was killed.
Result<std::optional<Checked>> check_after_deaths(const device::DeviceBase& device,
                                                  cache::MarkedBuild& marked) {
  const cache::Deaths& deaths = marked.deaths();
  if (!deaths.crash && marked.is_paused())
    return std::optional(
        Checked{refusal(base::text("{} processes ended in check '{}' of the device. Whether it crashed or "
                                   "they were killed is not known. "
                                   "The next try is {} min after the last one.",
                                   deaths.interrupted, check_at(deaths.step), deaths.pause()))});
  if (!deaths.crash) {
    const base::ChildEnd end = check_in_child(device);
    if (end.how == base::ChildEnd::How::completed) {
      const std::string_view text(reinterpret_cast<const char*>(end.result.data()), end.result.size());
      auto report = decode(text.substr(1));
      if (!report) return std::optional<Checked>();
      marked.end();  // the earlier process was killed
      return std::optional(Checked{*std::move(report), text.front() == '1'});
    }
    if (end.how == base::ChildEnd::How::killed) return Error(Errc::unavailable, end.why);
    if (end.how != base::ChildEnd::How::crashed || end.step != deaths.step) return std::optional<Checked>();
    marked.note_crash(end.crash);
  }
  return std::optional(
      Checked{refusal(base::text("Check '{}' crashes: it has ended a process that did nothing else, by {}. "
                                 "The next try is an hour after "
                                 "the last one.",
                                 check_at(deaths.step), deaths.crash->text()))});
}

}  // namespace

Result<QualificationReport> DeviceQualifier::find_or_make(const std::shared_ptr<device::DeviceBase>& device,
                                                          const Digest& key) {
  cache::ArtefactStore* const store = cache_->store();
  const bool uses_stored = store && rule_ == Qualification::stored;
  if (uses_stored)
    if (auto stored = load(key)) return *std::move(stored);
  if (shares() && rule_ == Qualification::stored)
    if (auto known = process_reports.get().find(shared_key(key))) return *std::move(known);
  cache::Claim claim;
  cache::MarkedBuild mark;
  if (store) {
    if (rule_ == Qualification::again) store->drop_report(key);
    claim = store->claim(key, Clock::steady().now() + claim_timeout);
    if (uses_stored && claim.waited)
      if (auto stored = load(key)) return *std::move(stored);
    mark = store->mark(key, claim);
    if (mark.deaths() != cache::Deaths{}) {
      auto made = check_after_deaths(*device, mark);
      if (!made) return std::move(made).error();
      if (*made) {
        if (mark.deaths() == cache::Deaths{} && !(*made)->lacks_compiler) save(*device, key, (*made)->report);
        return std::move((*made)->report);
      }
    }
  }
  bool lacks_compiler = false;
  auto report = run_checks(device, QualificationOptions{}.check_timeout, lacks_compiler,
                           [&](std::uint8_t check) { mark.reach(check); });
  // Without its compiler a check is missing, and made when there is one.
  if (report && store && !lacks_compiler) save(*device, key, *report);
  if (report && shares() && !lacks_compiler && report->passed())
    process_reports.get().keep(shared_key(key), *report);
  return report;
}

Result<void> DeviceQualifier::qualify(const std::shared_ptr<device::DeviceBase>& device) {
  if (rule_ == Qualification::never) return {};
  const AdapterInfo& info = device->info();
  const device::BackendEntry* const backend = device::find_backend(info.backend);
  if (!backend || backend->descriptor.kind != device::BackendKind::gpu) return {};
  const Digest key = key_of(*device);
  const auto known = [&] {
    return std::find_if(made_.begin(), made_.end(), [&](const Made& one) { return one.key == key; });
  };
  QualificationReport report;
  base::Lock lock(mutex_);
  if (const auto earlier = known(); earlier != made_.end()) {
    report = earlier->report;
  } else {
    lock.unlock();
    auto found = find_or_make(device, key);
    if (!found)
      return Error(Errc::unavailable,
                   base::text("Device '{}' could not be checked: {}", info.id, found.error().sentence()));
    report = *std::move(found);
    report.device = info.id;
    report.name = info.name;
    report.driver = info.driver;
    lock.lock();
    if (known() == made_.end()) made_.push_back({key, report});
  }
  if (shares() && report.passed()) trusted_.push_back({device->ref().generation, shared_key(key)});
  lock.unlock();
  for (const QualificationCheck& check : report.checks) {
    if (check.state == CheckState::passed || check.state == CheckState::skipped) continue;
    Error failure(Errc::unavailable, base::text("Device '{}' failed check '{}' of its qualification: {}",
                                                info.id, check.name, check.detail));
    if (!check.feature || check.state == CheckState::stopped) return failure;
    log_.write(LogLevel::warning, "runtime", failure.sentence());
  }
  device->withdraw(report.failed_features());
  device->limit_loops(report.loop_iterations);
  return {};
}

void DeviceQualifier::note_loss(const device::DeviceBase& device) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Trusted& one : trusted_)
    if (one.generation == device.ref().generation) process_reports.get().forget(one.shared_key);
}

bool DeviceQualifier::shares() const noexcept { return settings_ && !cache_->store(); }

Digest DeviceQualifier::shared_key(const Digest& key) const {
  return Hasher().add(key.bytes).add(std::string_view(*settings_)).finish();
}

std::vector<QualificationReport> DeviceQualifier::reports() const {
  std::vector<QualificationReport> reports;
  const std::lock_guard lock(mutex_);
  for (const Made& one : made_) reports.push_back(one.report);
  return reports;
}

}  // namespace runtime

Result<QualificationReport> qualify(const Device& device, const QualificationOptions& options) {
  const auto& state = base::state_of(device);
  if (!state) return Error(Errc::invalid_argument, "Device handle is empty; expected a device to check.");
  if (options.check_timeout <= Duration::zero())
    return Error(Errc::invalid_argument, base::text("The time limit of a check ({} s) is not positive.",
                                                    pool::seconds(options.check_timeout)));
  if (const Error* const lost = state->lost()) return lost->with_context("while checking a device");
  try {
    bool lacks_compiler = false;
    return runtime::run_checks(state, options.check_timeout, lacks_compiler);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory to check a device.");
  }
}

}  // namespace wye
