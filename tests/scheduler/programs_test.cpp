// Random programs of jobs and host accesses, compared with a sequential interpreter: no read is stale.
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
#include "support/skip.hpp"

using namespace wye;
using namespace wye::literals;
using test::Scripted;
using test::scripted;

namespace {

using Number = std::uint32_t;
using Values = std::vector<Number>;
using Numbers = Array<Number>;

constexpr std::size_t element_count = 32, half_count = 16;

std::string glsl(const std::string& buffers, const std::string& statement) {
  return "#version 450\nlayout(local_size_x = 64) in;\n" + buffers +
         "layout(push_constant) uniform P { uint k; };\n"
         "void main() { uint i = gl_GlobalInvocationID.x; if (i < z.length()) " +
         statement + " }";
}

const std::string in_x = "layout(set = 0, binding = 0) readonly buffer X { uint x[]; };\n";

/// z = 3 z + k
const Kernel<ReadWrite<Number>, Number>& affine() {
  static const auto kernel =
      Kernel<ReadWrite<Number>, Number>::make(
          {.name = "affine",
           .sources = {Glsl{.text = glsl("layout(set = 0, binding = 0) buffer Z { uint z[]; };\n",
                                         "z[i] = z[i] * 3u + k;")},
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
          {.name = "mix",
           .sources = {Glsl{.text = glsl(in_x + "layout(set = 0, binding = 1) buffer Z { uint z[]; };\n",
                                         "z[i] = z[i] ^ (x[i] * 7u + k);")},
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
  /// Overwrites one half of `z`.
  std::function<Job(Numbers, Numbers, std::size_t, Number)> part = [](Numbers x, Numbers z, std::size_t from,
                                                                      Number k) {
    Arguments arguments;
    arguments.push_back(x.operand(Access::read).slice(from, half_count));
    arguments.push_back(z.operand(Access::write).slice(from, half_count));
    arguments.push_back(Operand::of_value(k));
    return Job(Call(base::programs_of(shift()), std::move(arguments)));
  };
};

/// A scheduler over the CPU, two scripted devices, and lavapipe if it is wanted.
struct World {
  explicit World(bool with_vulkan, unsigned failing_steps_in_1000 = 0)
      : real(Runtime::open({.pool = {.backends = with_vulkan ? std::vector<std::string>{"cpu", "vulkan"}
                                                             : std::vector<std::string>{"cpu"}}})
                 .value()) {
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
        pool::Pool::open({.lanes_per_device = 4}, std::move(inventory)));
    scheduler = Scheduler::open(
                    *pool, cache,
                    {.concurrent_jobs = 3, .preferences = {{workload_types::custom, 0_B, {"cuda", "cpu"}}}})
                    .value();
  }
  Numbers array(const Values& values) const {
    return Numbers(data::ArrayState::make(base::state_of(*pool), std::as_bytes(std::span(values)),
                                          element_count, element_type<Number>(), sizeof(Number)));
  }

  Runtime real;
  Scripted first = scripted("cuda:0"), second = scripted("cuda:1");
  std::atomic<unsigned> steps{0};
  ShaderCache cache = ShaderCache::open().value();
  std::optional<ContextPool> pool;
  std::optional<Scheduler> scheduler;
  std::vector<std::string> places;
};

/// One operation of a program, with its observed result.
struct Operation {
  enum class Kind { affine, combine, mix, part, read, write, change };
  Kind kind = Kind::affine;
  std::size_t x = 0, y = 0, z = 0;  ///< arrays; z is written
  std::size_t from = 0;
  Number k = 0;
  bool is_cancelled = false;
  std::optional<Ticket> ticket = std::nullopt;  ///< unset: a job whose ticket was dropped, or the host
  std::optional<Errc> error = std::nullopt;     ///< of the host's access
  Values seen = {};                             ///< by the host
};

/// The interpreter's state of one array.
struct Model {
  Values values;
  std::optional<Errc> failure = std::nullopt;
};

/// Repeats the operations in order. Returns the first difference; empty if there is none.
std::string interpret(std::vector<Operation>& program, std::vector<Model> arrays, bool steps_fail) {
  using Kind = Operation::Kind;
  for (std::size_t at = 0; at < program.size(); ++at) {
    Operation& op = program[at];
    Model& z = arrays[op.z];
    const std::string place = "operation " + std::to_string(at) + " of kind " +
                              std::to_string(static_cast<int>(op.kind)) + ", array " + std::to_string(op.z);
    if (op.kind == Kind::read || op.kind == Kind::write || op.kind == Kind::change) {
      if (op.error && steps_fail && op.error == Errc::unavailable) continue;  // a copy to the host failed
      if (op.kind == Kind::read) {
        if (op.error != z.failure) return place + ": the host's read has another error";
        if (!op.error && op.seen != z.values) return place + ": the host's read is stale";
        continue;
      }
      if (op.error) return place + ": the host's write failed";
      if (op.kind == Kind::change && !z.failure && op.seen != z.values) return place + ": a stale view";
      z.failure.reset();
      if (op.kind == Kind::write) op.seen.assign(element_count, op.k);
      op.seen[op.k % element_count] = op.k;
      z.values = op.seen;
      continue;
    }
    std::vector<std::size_t> inputs;
    if (op.kind == Kind::combine) inputs = {op.x, op.y};
    if (op.kind == Kind::affine) inputs = {op.z};
    if (op.kind == Kind::mix || op.kind == Kind::part) inputs = {op.x, op.z};
    std::vector<Errc> causes;
    for (const std::size_t input : inputs)
      if (arrays[input].failure) causes.push_back(*arrays[input].failure);
    std::optional<Errc> error;
    if (op.ticket) {
      const auto done = op.ticket->wait();
      if (!done) error = done.error().code();
    } else if (!causes.empty()) {
      error = causes.front();
    }
    if (!error && !causes.empty()) return place + ": a job with a failed input completed";
    if (error && std::find(causes.begin(), causes.end(), *error) == causes.end() &&
        !(op.is_cancelled && error == Errc::cancelled) && !(steps_fail && error == Errc::unavailable))
      return place + ": a job failed without a cause: " + op.ticket->wait().error().describe();
    z.failure = error;
    if (error) continue;
    const Values x = arrays[op.x].values, y = arrays[op.y].values;
    for (std::size_t i = 0; i < element_count; ++i) {
      Number& value = z.values[i];
      if (op.kind == Kind::affine) value = value * 3 + op.k;
      if (op.kind == Kind::combine) value = x[i] + 5 * y[i] + op.k;
      if (op.kind == Kind::mix) value ^= x[i] * 7 + op.k;
      if (op.kind == Kind::part && i >= op.from && i < op.from + half_count) value = x[i] + op.k;
    }
  }
  return {};
}

/// Runs the program of a seed, and returns how it differs from the interpreter; empty if it does not.
std::string differs(World& world, const Jobs& jobs, unsigned seed, bool steps_fail = false) {
  using Kind = Operation::Kind;
  std::mt19937 engine(seed);
  const auto random = [&] { return static_cast<Number>(engine()); };
  std::vector<Model> models(3 + random() % 4);
  std::vector<Numbers> arrays;
  for (Model& model : models) {
    for (std::size_t i = 0; i < element_count; ++i) model.values.push_back(random());
    arrays.push_back(world.array(model.values));
  }
  std::vector<Operation> program;
  const auto access = [&](Kind kind, std::size_t z) {
    Operation op{.kind = kind, .z = z, .k = random()};
    if (kind == Kind::read) {
      const auto view = arrays[z].read();
      if (view)
        op.seen.assign(view->begin(), view->end());
      else
        op.error = view.error().code();
    } else {
      auto view = arrays[z].write();
      if (view) {
        op.seen.assign(view->begin(), view->end());
        if (kind == Kind::write) std::fill(view->begin(), view->end(), op.k);
        (*view)[op.k % element_count] = op.k;
      } else {
        op.error = view.error().code();
      }
    }
    program.push_back(std::move(op));
  };
  const std::size_t length = 10 + random() % 31;
  while (program.size() < length) {
    const std::size_t z = random() % arrays.size();
    const auto other = [&] { return (z + 1 + random() % (arrays.size() - 1)) % arrays.size(); };
    const unsigned kind = random() % 16;
    if (kind >= 13) {
      access(kind == 13 ? Kind::read : kind == 14 ? Kind::write : Kind::change, z);
      continue;
    }
    Operation op{.kind = kind < 4    ? Kind::affine
                         : kind < 7  ? Kind::combine
                         : kind < 10 ? Kind::mix
                                     : Kind::part,
                 .x = other(),
                 .y = other(),
                 .z = z,
                 .from = random() % 2 * half_count,
                 .k = random()};
    Job job = op.kind == Kind::affine    ? jobs.affine(arrays[op.z], op.k)
              : op.kind == Kind::combine ? jobs.combine(arrays[op.x], arrays[op.y], arrays[op.z], op.k)
              : op.kind == Kind::mix     ? jobs.mix(arrays[op.x], arrays[op.z], op.k)
                                         : jobs.part(arrays[op.x], arrays[op.z], op.from, op.k);
    auto ticket =
        world.scheduler->submit(std::move(job), {.priority = static_cast<Priority>(random() % 3),
                                                 .on = world.places[random() % world.places.size()]});
    if (steps_fail || random() % 4 != 0) op.ticket = std::move(ticket);
    program.push_back(std::move(op));
    if (random() % 24 == 0) {  // cancels a job, most often a recent one
      Operation& last = program[program.size() - 1 - random() % std::min<std::size_t>(program.size(), 4)];
      last.is_cancelled = last.ticket.has_value();
      if (last.ticket) last.ticket->cancel();
    }
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) access(Kind::read, i);
  return interpret(program, std::move(models), steps_fail);
}

/// Returns the number of seeds below `seeds` whose programs differ from the interpreter.
int differing(const Jobs& jobs, int seeds) {
  World world(false);
  int count = 0;
  for (int seed = 0; seed < seeds; ++seed)
    count += differs(world, jobs, static_cast<unsigned>(seed)).empty() ? 0 : 1;
  return count;
}

}  // namespace

TEST_CASE("random programs on three devices read what a sequential interpreter reads", "[scheduler]") {
  World world(false);
  const Jobs jobs;
  for (int seed = 0; seed < test::rounds(2000); ++seed) {
    INFO("seed " << seed);
    REQUIRE(differs(world, jobs, static_cast<unsigned>(seed)) == "");
  }
  CHECK(world.first->buffers_alive() == 0);
  CHECK(world.second->buffers_alive() == 0);
}

TEST_CASE("random programs on lavapipe and three devices read what a sequential interpreter reads",
          "[scheduler]") {
  if (!test::has_device(Runtime::open({}).value(), "vulkan")) return;
  World world(true);
  const Jobs jobs;
  for (int seed = 0; seed < test::rounds(200); ++seed) {
    INFO("seed " << seed);
    REQUIRE(differs(world, jobs, static_cast<unsigned>(seed)) == "");
  }
}

TEST_CASE("random programs on devices that fail at random steps never read stale contents", "[scheduler]") {
  for (const unsigned failing : {10u, 100u}) {
    World world(false, failing);
    const Jobs jobs;
    for (int seed = 0; seed < test::rounds(1000); ++seed) {
      INFO("seed " << seed << ", " << failing << " of 1000 steps fail");
      REQUIRE(differs(world, jobs, static_cast<unsigned>(seed), true) == "");
    }
    CHECK(world.scheduler->metrics().fallbacks > 0);
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
               for (std::size_t i = 0; i < element_count; ++i) const_cast<Number&>(out[i]) ^= in[i] * 7 + add;
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
