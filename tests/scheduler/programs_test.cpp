// Random programs of jobs and host accesses, compared with a sequential interpreter: no read is
// stale.
#include <wye/wye.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rig.hpp"
#include "support/device/test_kernels.hpp"
#include "support/random_cases.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace wye::literals;
using test::Scripted;
using test::scripted;

namespace {

using Number = std::uint32_t;
using Values = std::vector<Number>;
using Numbers = Array<Number>;

constexpr std::size_t element_count = 32;

std::string glsl(const std::string& buffers, const std::string& statement) {
  return "#version 450\nlayout(local_size_x = 64) in;\n" + buffers +
         "layout(push_constant) uniform P { uint k; };\n"
         "void main() { uint i = gl_GlobalInvocationID.x; if (i < z.length()) " +
         statement + " }";
}

/// The text is that of tests/support/cuda/programs.cu.
CudaCpp cuda(const std::string& name, const std::string& parameters, const std::string& statement) {
  return {.text = "extern \"C\" __global__ void " + name + "(" + parameters +
                  ", unsigned k) {\n  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                  "  if (i < z.size) " +
                  statement + "\n}\n"};
}

const std::string in_x = "layout(set = 0, binding = 0) readonly buffer X { uint x[]; };\n";

/// z = 3 z + k
const Kernel<ReadWrite<Number>, Number>& affine() {
  static const auto kernel =
      Kernel<ReadWrite<Number>, Number>::make(
          {.name = "affine",
           .sources = {Glsl{.text = glsl("layout(set = 0, binding = 0) buffer Z { uint z[]; };\n",
                                         "z[i] = z[i] * 3u + k;")},
                       cuda("affine", "wye_span<unsigned> z", "z[i] = z[i] * 3u + k;"),
                       host([](Range range, std::span<Number> z, Number k) {
                         for (const std::uint64_t i : range) z[i] = z[i] * 3 + k;
                       })}})
          .value();
  return kernel;
}

/// z = x + 5 y + k
const Kernel<Read<Number>, Read<Number>, Write<Number>, Number>& combine() {
  static const auto kernel =
      Kernel<Read<Number>, Read<Number>, Write<Number>, Number>::make(
          {.name = "combine",
           .sources = {Glsl{.text = glsl(
                                in_x + "layout(set = 0, binding = 1) readonly buffer Y { uint y[]; };\n"
                                       "layout(set = 0, binding = 2) writeonly buffer Z { uint z[]; };\n",
                                "z[i] = x[i] + 5u * y[i] + k;")},
                       cuda("combine",
                            "wye_span<const unsigned> x, wye_span<const unsigned> y, wye_span<unsigned> z",
                            "z[i] = x[i] + 5u * y[i] + k;"),
                       host([](Range range, std::span<const Number> x, std::span<const Number> y,
                               std::span<Number> z, Number k) {
                         for (const std::uint64_t i : range) z[i] = x[i] + 5 * y[i] + k;
                       })}})
          .value();
  return kernel;
}

/// z = z ^ (7 x + k)
const Kernel<Read<Number>, ReadWrite<Number>, Number>& mix() {
  static const auto kernel =
      Kernel<Read<Number>, ReadWrite<Number>, Number>::make(
          {.name = "blend",
           .sources = {Glsl{.text = glsl(in_x + "layout(set = 0, binding = 1) buffer Z { uint z[]; };\n",
                                         "z[i] = z[i] ^ (x[i] * 7u + k);")},
                       cuda("blend", "wye_span<const unsigned> x, wye_span<unsigned> z",
                            "z[i] = z[i] ^ (x[i] * 7u + k);"),
                       host([](Range range, std::span<const Number> x, std::span<Number> z, Number k) {
                         for (const std::uint64_t i : range) z[i] ^= x[i] * 7 + k;
                       })}})
          .value();
  return kernel;
}

/// z = x + k
const Kernel<Read<Number>, Write<Number>, Number>& shift() {
  static const auto kernel =
      Kernel<Read<Number>, Write<Number>, Number>::make(
          {.name = "shift",
           .sources = {Glsl{.text = glsl(
                                in_x + "layout(set = 0, binding = 1) writeonly buffer Z { uint z[]; };\n",
                                "z[i] = x[i] + k;")},
                       cuda("shift", "wye_span<const unsigned> x, wye_span<unsigned> z", "z[i] = x[i] + k;"),
                       host([](Range range, std::span<const Number> x, std::span<Number> z, Number k) {
                         for (const std::uint64_t i : range) z[i] = x[i] + k;
                       })}})
          .value();
  return kernel;
}

/// The jobs of a program. A planted mistake replaces one of them.
struct Jobs {
  std::function<Job(Numbers, Number)> affine = [](Numbers z, Number k) { return Job(::affine()(z, k)); };
  std::function<Job(Numbers, Numbers, Numbers, Number)> combine =
      [](Numbers x, Numbers y, Numbers z, Number k) { return Job(::combine()(x, y, z, k)); };
  std::function<Job(Numbers, Numbers, Number)> mix = [](Numbers x, Numbers z, Number k) {
    return Job(::mix()(x, z, k));
  };
  std::function<Job(Numbers, Numbers, Number)> shift = [](Numbers x, Numbers z, Number k) {
    return Job(::shift()(x, z, k));
  };
  /// Returns the slice that an operation on `from` and `count` gives to its job.
  std::function<Numbers(const Numbers&, std::size_t, std::size_t)> slice =
      [](const Numbers& array, std::size_t from, std::size_t count) { return array.slice(from, count); };
};

/// How the jobs of a program reach their devices.
struct Path {
  std::uint32_t lanes_per_device = 4;
  std::uint32_t committed_per_lane = 2;
  std::uint32_t batch_limit = 64;
};

/// A scheduler over the CPU, two scripted devices, and lavapipe if it is wanted.
struct World {
  explicit World(bool with_vulkan, unsigned failing_steps_in_1000 = 0, Path path = {})
      : World(
            opened(with_vulkan ? std::vector<std::string>{"cpu", "vulkan"} : std::vector<std::string>{"cpu"}),
            failing_steps_in_1000, path) {}
  /// The scripted devices are of `backend`.
  explicit World(Runtime on, unsigned failing_steps_in_1000 = 0, Path path = {},
                 const std::string& backend = "cuda")
      : real(std::move(on)), first(scripted(backend + ":0")), second(scripted(backend + ":1")) {
    if (failing_steps_in_1000 != 0)
      for (const Scripted& device : {first, second})
        device->set_script([this, failing_steps_in_1000](auto) -> std::optional<Error> {
          if (std::minstd_rand(++steps * 7919)() % 1000 >= failing_steps_in_1000) return std::nullopt;
          return Error(Errc::unavailable, "The script fails this step.");
        });
    pool::Inventory inventory;
    for (const Device& device : real.devices()) {
      inventory.adapters.push_back(device.info());
      inventory.devices.push_back(base::state_of(device));
      places.push_back(device.id());
    }
    for (const Scripted& device : {first, second}) {
      inventory.adapters.push_back(device->info());
      inventory.devices.push_back(device);
      places.push_back(device->info().id);
    }
    places.insert(places.end(), {"", "cuda"});  // fallback is possible on these
    pool = wye::detail::Internals::make<ContextPool>(
        pool::Pool::open({.lanes_per_device = path.lanes_per_device}, std::move(inventory)));
    scheduler = Scheduler::open(*pool, cache,
                                {.concurrent_jobs = 3,
                                 .committed_per_lane = path.committed_per_lane,
                                 .batch_limit = path.batch_limit,
                                 .preferences = {{workload_types::custom, 0_B, {"cuda", "cpu"}}}})
                    .value();
  }
  static Runtime opened(std::vector<std::string> backends) {
    return Runtime::open({.pool = {.backends = std::move(backends)}}).value();
  }
  Numbers array(const Values& values) const { return test::array_in(*pool, values); }

  /// Slices begin at multiples of this number of elements: all devices can bind them.
  std::size_t alignment() const {
    std::size_t bytes = sizeof(Number);
    for (const Device& device : pool->devices())
      bytes = std::max<std::size_t>(bytes, device.info().limits.offset_alignment);
    return bytes / sizeof(Number);
  }

  Runtime real;
  Scripted first, second;
  std::atomic<unsigned> steps{0};
  ShaderCache cache = ShaderCache::open().value();
  std::optional<ContextPool> pool;
  std::optional<Scheduler> scheduler;
  std::vector<std::string> places;
};

/// The losses of a program: at random points the scripted devices hold their submissions, complete
/// them, or are lost.
class Losses {
 public:
  /// The first device is lost, the second one in half of all programs.
  Losses(World& world, std::mt19937& engine) : engine_(engine) {
    add(world.first);
    if (engine_() % 2 == 0) add(world.second);
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (engine_() % 3 != 0) continue;
      // On the thread of a job, before or after one of its steps.
      const int at = static_cast<int>(engine_() % 24);
      const bool fails = engine_() % 2 == 0;
      Scripted::element_type* const device = devices_[i].get();
      device->set_script([device, at, fails](auto) -> std::optional<Error> {
        if (device->steps_made() != at) return std::nullopt;
        device->lose();
        if (!fails) return std::nullopt;
        return Error(Errc::device_lost, "The script loses the device at this step.");
      });
    }
  }
  ~Losses() { end_holds(); }
  Losses(const Losses&) = delete;

  /// Called between two operations of a program.
  void act() {
    const auto action = static_cast<unsigned>(engine_() % 48);
    const Scripted& device = devices_[engine_() % devices_.size()];
    if (action < 4) device->hold();
    if (action == 4) device->lose();
    if (action == 5) device->release();
  }
  /// Called before the host waits: completes what is in flight, or loses its device.
  void end_holds() {
    for (const Scripted& device : devices_)
      if (engine_() % 4 == 0 && device->held() > 0)
        device->lose();
      else
        device->release();
  }
  bool may_lose(std::string_view device) const {
    return std::any_of(devices_.begin(), devices_.end(),
                       [&](const Scripted& one) { return one->info().id == device; });
  }
  /// Returns whether a job that may run there may meet a device that is lost.
  bool may_lose_one_of(std::string_view place) const {
    return place.empty() || place == "cuda" || may_lose(place);
  }

 private:
  void add(const Scripted& device) { devices_.push_back(device); }
  std::mt19937& engine_;
  std::vector<Scripted> devices_;
};

/// Elements of one array.
struct Slice {
  std::size_t array = 0, from = 0, count = 0;
  bool overlaps(const Slice& other) const {
    return array == other.array && from < other.from + other.count && other.from < from + count;
  }
};

/// One operation of a program on slices of one length, with its observed result.
struct Operation {
  enum class Kind { affine, combine, mix, shift, read, write, change };
  Kind kind = Kind::affine;
  Slice x, y, z;  ///< z is written
  Number k = 0;
  std::string place = {};  ///< `JobOptions::on`
  bool is_cancelled = false;
  std::optional<Ticket> ticket = std::nullopt;  ///< unset: a job whose ticket was dropped, or the host
  std::optional<Errc> error = std::nullopt;     ///< of the host's access
  Values seen = {};                             ///< by the host
};

/// The interpreter's state of one array.
struct Model {
  Values values;
  std::vector<std::optional<Errc>> failures =
      std::vector<std::optional<Errc>>(element_count);  ///< of each element
  /// Elements whose only copy may be on a device that may be lost, and those that have failed for
  /// that, if it was.
  std::vector<bool> at_risk = std::vector<bool>(element_count), may_have_failed = at_risk;

  Number* at(const Slice& slice) { return values.data() + slice.from; }
  Values seen(const Slice& slice) { return {at(slice), at(slice) + slice.count}; }
  void fail(const Slice& slice, std::optional<Errc> error) {
    std::fill_n(failures.begin() + static_cast<std::ptrdiff_t>(slice.from), slice.count, error);
  }
  void add_causes(const Slice& slice, std::vector<Errc>& causes) const {
    for (std::size_t i = slice.from; i < slice.from + slice.count; ++i)
      if (failures[i]) causes.push_back(*failures[i]);
  }
  bool any(const std::vector<bool>& of, const Slice& slice) const {
    const auto first = of.begin() + static_cast<std::ptrdiff_t>(slice.from);
    return std::find(first, first + static_cast<std::ptrdiff_t>(slice.count), true) !=
           first + static_cast<std::ptrdiff_t>(slice.count);
  }
  /// The elements have been written, on a device that may be lost or elsewhere.
  void write(const Slice& slice, bool is_at_risk) {
    for (std::size_t i = slice.from; i < slice.from + slice.count; ++i)
      at_risk[i] = is_at_risk, may_have_failed[i] = false;
  }
  /// A copy from the device of these elements may have failed.
  void use(const Slice& slice) {
    for (std::size_t i = slice.from; i < slice.from + slice.count; ++i)
      if (at_risk[i]) may_have_failed[i] = true;
  }
};

/// Repeats the operations in order. Returns the first difference; empty if there is none.
std::string interpret(std::vector<Operation>& program, std::vector<Model> arrays, bool steps_fail,
                      const Losses* losses) {
  using Kind = Operation::Kind;
  const auto is_of_loss = [&](Errc error) {  // also of a copy that another user of the array made
    return losses && (error == Errc::device_lost || error == Errc::unavailable);
  };
  for (std::size_t n = 0; n < program.size(); ++n) {
    Operation& op = program[n];
    Model& z = arrays[op.z.array];
    const std::string place = "operation " + std::to_string(n) + " of kind " +
                              std::to_string(static_cast<int>(op.kind)) + ", array " +
                              std::to_string(op.z.array) + ", elements " + std::to_string(op.z.from) +
                              " to " + std::to_string(op.z.from + op.z.count);
    std::vector<Errc> causes;
    const auto is_cause = [&](Errc error) {
      return std::find(causes.begin(), causes.end(), error) != causes.end();
    };
    if (op.kind == Kind::read || op.kind == Kind::write || op.kind == Kind::change) {
      if (op.error && steps_fail && op.error == Errc::unavailable) continue;  // a copy to the host failed
      if (op.error && is_of_loss(*op.error) && z.any(z.at_risk, op.z)) {
        z.use(op.z);
        continue;
      }
      z.add_causes(op.z, causes);
      if (op.kind == Kind::read) {
        if (op.error ? !is_cause(*op.error) : !causes.empty())
          return place + ": the host's read has another error";
        if (!op.error && op.seen != z.seen(op.z)) return place + ": the host's read is stale";
        continue;
      }
      if (op.error) return place + ": the host's write failed";
      if (op.kind == Kind::change && causes.empty() && !z.any(z.may_have_failed, op.z) &&
          op.seen != z.seen(op.z))
        return place + ": a stale view";
      z.fail(op.z, std::nullopt);
      z.write(op.z, false);
      if (op.kind == Kind::write) op.seen.assign(op.z.count, op.k);
      op.seen[op.k % op.z.count] = op.k;
      std::copy(op.seen.begin(), op.seen.end(), z.at(op.z));
      continue;
    }
    std::vector<Slice> inputs;
    if (op.kind != Kind::affine) inputs.push_back(op.x);
    if (op.kind == Kind::combine) inputs.push_back(op.y);
    if (op.kind == Kind::affine || op.kind == Kind::mix) inputs.push_back(op.z);
    bool may_be_lost = losses && losses->may_lose_one_of(op.place);
    for (const Slice& input : inputs) {
      const Model& array = arrays[input.array];
      array.add_causes(input, causes);
      may_be_lost = may_be_lost || array.any(array.at_risk, input);
    }
    std::optional<Errc> error;
    bool is_at_risk = false;
    if (op.ticket) {
      const auto done = op.ticket->wait();
      if (!done) error = done.error().code();
      is_at_risk = done && losses && losses->may_lose(done->device().id);
    } else if (!causes.empty()) {
      error = causes.front();
    }
    if (!error && !causes.empty()) return place + ": a job with a failed input completed";
    if (error && !is_cause(*error) && !(op.is_cancelled && error == Errc::cancelled) &&
        !(steps_fail && error == Errc::unavailable) && !(may_be_lost && is_of_loss(*error)))
      return place + ": a job failed without a cause: " + op.ticket->wait().error().describe();
    z.fail(op.z, error);
    if (error) {
      for (const Slice& input : inputs) arrays[input.array].use(input);
      continue;
    }
    z.write(op.z, is_at_risk);
    const Values x = arrays[op.x.array].seen(op.x), y = arrays[op.y.array].seen(op.y);
    for (std::size_t i = 0; i < op.z.count; ++i) {
      Number& value = z.at(op.z)[i];
      if (op.kind == Kind::affine) value = value * 3 + op.k;
      if (op.kind == Kind::combine) value = x[i] + 5 * y[i] + op.k;
      if (op.kind == Kind::mix) value ^= x[i] * 7 + op.k;
      if (op.kind == Kind::shift) value = x[i] + op.k;
    }
  }
  return {};
}

/// Runs the program of a seed, and returns how it differs from the interpreter; empty if it does
/// not.
std::string differs(World& world, const Jobs& jobs, unsigned seed, bool steps_fail = false,
                    bool loses_devices = false) {
  using Kind = Operation::Kind;
  std::mt19937 engine(seed);
  std::optional<Losses> losses;
  if (loses_devices) losses.emplace(world, engine);
  const auto random = [&] { return static_cast<Number>(engine()); };
  std::vector<Model> models(3 + random() % 4);
  std::vector<Numbers> arrays;
  for (Model& model : models) {
    for (std::size_t i = 0; i < element_count; ++i) model.values.push_back(random());
    arrays.push_back(world.array(model.values));
  }
  const std::size_t alignment = world.alignment();
  const auto slice_of = [&](std::size_t count) {
    return Slice{random() % arrays.size(), random() % ((element_count - count) / alignment + 1) * alignment,
                 count};
  };
  const auto beside = [&](const Slice& used) {
    for (;;)
      if (const Slice slice = slice_of(used.count); !slice.overlaps(used)) return slice;
  };
  const auto any_count = [&]() -> std::size_t {  // mostly whole arrays and halves
    const Number n = random() % 8;
    return n < 3 ? element_count : n < 5 ? element_count / 2 : 1 + random() % element_count;
  };
  const auto in = [&](const Slice& slice) {
    return slice.count == element_count ? arrays[slice.array]
                                        : jobs.slice(arrays[slice.array], slice.from, slice.count);
  };
  std::vector<Operation> program;
  const auto access = [&](Kind kind, Slice z) {
    Operation op{.kind = kind, .x = {}, .y = {}, .z = z, .k = random()};
    Numbers part = arrays[z.array].slice(z.from, z.count);
    if (losses) losses->end_holds();
    if (kind == Kind::read) {
      const auto view = part.read();
      if (view)
        op.seen.assign(view->begin(), view->end());
      else
        op.error = view.error().code();
    } else {
      auto view = part.write();
      if (view) {
        op.seen.assign(view->begin(), view->end());
        if (kind == Kind::write) std::fill(view->begin(), view->end(), op.k);
        (*view)[op.k % z.count] = op.k;
      } else {
        op.error = view.error().code();
      }
    }
    program.push_back(std::move(op));
  };
  const std::size_t length = 10 + random() % 31;
  while (program.size() < length) {
    if (losses) losses->act();
    const Slice z = slice_of(any_count());
    const unsigned kind = random() % 16;
    if (kind >= 13) {
      access(kind == 13 ? Kind::read : kind == 14 ? Kind::write : Kind::change, z);
      continue;
    }
    const Slice x = beside(z);
    Operation op{.kind = kind < 4    ? Kind::affine
                         : kind < 7  ? Kind::combine
                         : kind < 10 ? Kind::mix
                                     : Kind::shift,
                 .x = x,
                 .y = beside(z),
                 .z = z,
                 .k = random()};
    Job job = op.kind == Kind::affine    ? jobs.affine(in(z), op.k)
              : op.kind == Kind::combine ? jobs.combine(in(x), in(op.y), in(z), op.k)
              : op.kind == Kind::mix     ? jobs.mix(in(x), in(z), op.k)
                                         : jobs.shift(in(x), in(z), op.k);
    const auto priority = static_cast<Priority>(random() % 3);
    op.place = world.places[random() % world.places.size()];
    auto ticket = world.scheduler->submit(std::move(job), {.priority = priority, .on = op.place});
    if (steps_fail || losses || random() % 4 != 0) op.ticket = std::move(ticket);
    program.push_back(std::move(op));
    if (random() % 24 == 0) {  // cancels a job, most often a recent one
      Operation& last = program[program.size() - 1 - random() % std::min<std::size_t>(program.size(), 4)];
      last.is_cancelled = last.ticket.has_value();
      if (last.ticket) last.ticket->cancel();
    }
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) access(Kind::read, {i, 0, element_count});
  return interpret(program, std::move(models), steps_fail, losses ? &*losses : nullptr);
}

/// Returns the number of seeds below `seeds` whose programs differ from the interpreter.
int differing(const Jobs& jobs, unsigned seeds) {
  World world(false);
  int count = 0;
  for (unsigned seed = 0; seed < seeds; ++seed) count += differs(world, jobs, seed).empty() ? 0 : 1;
  return count;
}

/// Runs programs whose devices are lost. Returns how many of those differ from the interpreter, of
/// seeds that begin at `first`; stops at the first one if `stops`. Each has devices of its own;
/// those of `hidden` programs hide their loss.
int differing_with_losses(unsigned first, unsigned seeds, bool hidden, bool stops) {
  const Runtime real = World::opened({"cpu"});
  const Jobs jobs;
  int count = 0;
  std::uint64_t failed = 0, completed = 0;
  for (unsigned seed = first; seed < first + seeds; ++seed) {
    World world(real);
    if (hidden)
      for (const Scripted& device : {world.first, world.second}) device->hide_loss();
    const std::string difference = differs(world, jobs, seed, false, true);
    INFO("seed " << seed);
    if (stops) REQUIRE(difference == "");
    count += difference.empty() ? 0 : 1;
    failed += world.scheduler->metrics().failed;
    completed += world.scheduler->metrics().completed;
  }
  // How many of each is a matter of the seeds.
  CHECK(completed > 0);
  CHECK((failed > 0 || hidden));
  return count;
}

}  // namespace

TEST_CASE("random programs on three devices read what a sequential interpreter reads", "[scheduler]") {
  World world(false);
  const Jobs jobs;
  for (const unsigned seed : test::RandomCases(2000)) {
    INFO("seed " << seed);
    REQUIRE(differs(world, jobs, seed) == "");
  }
  CHECK(world.first->buffers_alive() == 0);
  CHECK(world.second->buffers_alive() == 0);
}

TEST_CASE("random programs whose jobs are staged or batched read what a sequential interpreter reads",
          "[scheduler]") {
  for (const Path path : {Path{1, 1}, Path{1, 2, 1}, Path{2, 4, 1}}) {
    for (const unsigned failing : {0u, 50u}) {
      World world(false, failing, path);
      const Jobs jobs;
      const auto takes_paths = [&] {
        const SchedulerMetrics metrics = world.scheduler->metrics();
        return (metrics.prefetches > 0) == (path.committed_per_lane > 1) &&
               (metrics.batches > 0) == (path.batch_limit > 1);
      };
      // How many jobs find their device busy is chance: further programs run until some did.
      const test::RandomCases seeds(500);
      const unsigned first = *seeds.begin(), enough = seeds.size(), most = 20 * enough;
      for (unsigned seed = first; seed < first + enough || (seed < first + most && !takes_paths()); ++seed) {
        INFO("seed " << seed << ", " << path.lanes_per_device << " lanes, " << path.committed_per_lane
                     << " committed per lane, " << failing << " of 1000 steps fail");
        REQUIRE(differs(world, jobs, seed, failing != 0) == "");
      }
      CHECK(takes_paths());
      if (failing == 0) CHECK(world.first->buffers_alive() == 0);
    }
  }
}

TEST_CASE("random programs on lavapipe and three devices read what a sequential interpreter reads",
          "[scheduler]") {
  if (!test::has_device(Runtime::open({}).value(), "vulkan")) return;
  for (const Path path : {Path{}, Path{1, 4}}) {
    World world(true, 0, path);
    const Jobs jobs;
    for (const unsigned seed : test::RandomCases(100)) {
      INFO("seed " << seed << ", " << path.lanes_per_device << " lanes");
      REQUIRE(differs(world, jobs, seed) == "");
    }
  }
}

TEST_CASE(
    "random programs on the stand-in for CUDA and three devices read what a sequential interpreter reads",
    "[scheduler]") {
  if (test::stand_in_cuda().empty()) return test::skip("this build is without CUDA");
  if (const std::string why = test::no_cuda_kernels(); !why.empty()) return test::skip(why);
  World world(
      Runtime::open({.pool = {.backends = {"cpu", "cuda"}, .cuda_driver = test::stand_in_cuda()}}).value(), 0,
      {}, "vulkan");
  const Jobs jobs;
  for (const unsigned seed : test::RandomCases(200)) {
    INFO("seed " << seed);
    REQUIRE(differs(world, jobs, seed) == "");
  }
}

TEST_CASE("random programs on devices that fail at random steps never read stale contents", "[scheduler]") {
  for (const unsigned failing : {10u, 100u}) {
    World world(false, failing);
    const Jobs jobs;
    for (const unsigned seed : test::RandomCases(1000)) {
      INFO("seed " << seed << ", " << failing << " of 1000 steps fail");
      REQUIRE(differs(world, jobs, seed, true) == "");
    }
    CHECK(world.scheduler->metrics().fallbacks > 0);
  }
}

TEST_CASE("random programs whose devices are lost read what a sequential interpreter reads, or device_lost",
          "[scheduler]") {
  const test::RandomCases seeds(1000);
  CHECK(differing_with_losses(*seeds.begin(), seeds.size(), false, true) == 0);
}

TEST_CASE("20,000 random programs whose devices are lost never read stale contents", "[.proof]") {
  for (unsigned first = 1'000'000; first < 1'020'000; first += 1000)
    CHECK(differing_with_losses(first, 1000, false, true) == 0);
}

TEST_CASE("the interpreter finds a device that is lost and does not say so", "[scheduler][no_tsan]") {
  CHECK(differing_with_losses(0, 100, true, false) > 20);
}

TEST_CASE("100,000 random programs read what a sequential interpreter reads", "[.proof]") {
  World world(false);
  const Jobs jobs;
  for (unsigned seed = 0; seed < 100'000; ++seed) {
    INFO("seed " << seed);
    REQUIRE(differs(world, jobs, seed) == "");
  }
}

TEST_CASE("the interpreter finds a kernel that writes an array which it declares to read",
          "[scheduler][no_tsan]") {
  Jobs jobs;
  jobs.mix = [](Numbers x, Numbers z, Number k) {
    static const auto kernel =
        Kernel<Read<Number>, Read<Number>, Number>::make(
            {.name = "planted",
             .sources = {host([](Range, std::span<const Number> in, std::span<const Number> out, Number add) {
               for (std::size_t i = 0; i < out.size(); ++i) const_cast<Number&>(out[i]) ^= in[i] * 7 + add;
             })}})
            .value();
    return Job(kernel(x, z, k));
  };
  CHECK(differing(jobs, 100) > 50);
}

TEST_CASE("the interpreter finds a kernel that reads an array which it declares to overwrite",
          "[scheduler][no_tsan]") {
  Jobs jobs;
  jobs.affine = [](Numbers z, Number k) {
    static const auto kernel =
        Kernel<Write<Number>, Number>::make(
            {.name = "planted", .sources = {host([](Range range, std::span<Number> x, Number add) {
                                  for (const std::uint64_t i : range) x[i] = x[i] * 3 + add;
                                })}})
            .value();
    return Job(kernel(z, k));
  };
  CHECK(differing(jobs, 100) > 50);
}

TEST_CASE("the interpreter finds slices that are off by one", "[scheduler][no_tsan]") {
  Jobs jobs;
  jobs.slice = [](const Numbers& array, std::size_t from, std::size_t count) {
    return array.slice(from == 0 ? 1 : from - 1, count);
  };
  CHECK(differing(jobs, 100) > 50);
}

TEST_CASE("the interpreter finds a job on a slice that follows only the users of another slice",
          "[scheduler][no_tsan]") {
  // The job writes the elements before its slice.
  Jobs jobs;
  jobs.slice = [](const Numbers& array, std::size_t from, std::size_t count) {
    return from < count ? array.slice(from, count) : array.slice(from - count, count);
  };
  CHECK(differing(jobs, 100) > 50);
}
