// Plans as text, as JSON and as a drawing; and their differences.
#include <wye/scheduler/plan.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "scheduler/plan.hpp"

namespace wye {
inline namespace v0 {
namespace scheduler {
namespace {

using Value = nlohmann::ordered_json;

std::string in_quotes(std::string_view text) { return base::text("'{}'", text); }

std::string numbers(const std::vector<std::size_t>& all) {
  std::string text;
  for (const std::size_t one : all) text += base::text("{}{}", text.empty() ? "" : ", ", one);
  return "[" + text + "]";
}

std::string extent(Extent3 of) { return base::text("{} x {} x {}", of.x, of.y, of.z); }

/// Adds a sentence for a field that differs.
class Differences {
 public:
  explicit Differences(std::vector<std::string>& all) : all_(all) {}
  void compare(const std::string& place, std::string_view field, const std::string& a, const std::string& b) {
    if (a != b) all_.push_back(base::text("{}: {} is {}, and {} in the other.", place, field, a, b));
  }
  void compare(const std::string& place, std::string_view field, std::uint64_t a, std::uint64_t b) {
    compare(place, field, std::to_string(a), std::to_string(b));
  }

 private:
  std::vector<std::string>& all_;
};

std::string step_place(const PlanDescription& plan, std::size_t step) {
  return base::text("Step {} '{}'", step, plan.steps[step].name);
}

/// Adds the differences of two plans that are not about devices.
void compare_graphs(const PlanDescription& a, const PlanDescription& b, std::vector<std::string>& all) {
  Differences to(all);
  to.compare("The plan", "the number of steps", a.steps.size(), b.steps.size());
  for (std::size_t s = 0; s < std::min(a.steps.size(), b.steps.size()); ++s) {
    const PlanDescription::Step &x = a.steps[s], &y = b.steps[s];
    const std::string place = step_place(a, s);
    to.compare(place, "the name", in_quotes(x.name), in_quotes(y.name));
    to.compare(place, "after", numbers(x.after), numbers(y.after));
    to.compare(place, "the number of calls", x.calls.size(), y.calls.size());
    for (std::size_t c = 0; c < std::min(x.calls.size(), y.calls.size()); ++c) {
      const PlanDescription::Call &p = x.calls[c], &q = y.calls[c];
      to.compare(place, "the kernel", in_quotes(p.kernel), in_quotes(q.kernel));
      to.compare(place, "the grid", extent(p.items), extent(q.items));
      to.compare(place, "the number of arguments", p.arguments.size(), q.arguments.size());
      for (std::size_t i = 0; i < std::min(p.arguments.size(), q.arguments.size()); ++i) {
        const PlanDescription::Argument &v = p.arguments[i], &w = q.arguments[i];
        const std::string argument = base::text("{}, argument {} of '{}'", place, i + 1, p.kernel);
        to.compare(argument, "the memory", in_quotes(v.memory), in_quotes(w.memory));
        to.compare(argument, "the access", std::string(name(v.access)), std::string(name(w.access)));
        to.compare(argument, "the element type", std::string(name(v.element)), std::string(name(w.element)));
        to.compare(argument, "the element size", v.element_size, w.element_size);
        to.compare(argument, "the first element", v.first, w.first);
        to.compare(argument, "the number of elements", v.count, w.count);
      }
    }
  }
}

std::string copy_text(const PlanDescription::Copy& copy) {
  return base::text("{} from '{}' to '{}' ({}) before step {}", copy.memory, copy.from, copy.to,
                    to_string(copy.bytes), copy.before);
}

/// Reads members of JSON. The first that is missing or has another type is the error.
class Reader {
 public:
  const Value& at(const Value& object, const char* member, Value::value_t type) {
    static const Value none;
    const auto found = object.is_object() ? object.find(member) : object.end();
    const bool is_there = object.is_object() && found != object.end();
    const bool is_number = type == Value::value_t::number_unsigned;
    if (is_there && (is_number ? found->is_number_unsigned() : found->type() == type)) return *found;
    if (!error_)
      error_ = Error(Errc::corrupt, base::text("The text is no plan: its member '{}' {}.", member,
                                               is_there ? "has another type" : "is missing"));
    return none;
  }
  std::string text(const Value& object, const char* member) {
    const Value& value = at(object, member, Value::value_t::string);
    return value.is_string() ? value.get<std::string>() : std::string();
  }
  std::uint64_t number(const Value& object, const char* member) {
    const Value& value = at(object, member, Value::value_t::number_unsigned);
    return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
  }
  template <class F>
  void each(const Value& object, const char* member, F f) {
    for (const Value& one : at(object, member, Value::value_t::array)) f(one);
  }
  std::vector<std::size_t> numbers(const Value& object, const char* member, std::size_t most) {
    std::vector<std::size_t> all;
    each(object, member, [&](const Value& one) {
      if (one.is_number_unsigned() && one.get<std::uint64_t>() < most)
        all.push_back(one.get<std::size_t>());
      else
        refuse(member);
    });
    return all;
  }
  template <class E>
  E one_of(const Value& object, const char* member, std::initializer_list<E> all) {
    const std::string text = this->text(object, member);
    for (const E one : all)
      if (name(one) == text) return one;
    refuse(member);
    return {};
  }
  void refuse(const char* member) {
    if (!error_)
      error_ =
          Error(Errc::corrupt, base::text("The text is no plan: its member '{}' has a wrong value.", member));
  }
  const std::optional<Error>& error() const noexcept { return error_; }

 private:
  std::optional<Error> error_;
};

constexpr std::initializer_list<Access> accesses = {Access::none, Access::read, Access::write,
                                                    Access::read_write};
constexpr std::initializer_list<ElementType> elements = {
    ElementType::opaque,   ElementType::float16, ElementType::float32, ElementType::float64,
    ElementType::int8,     ElementType::int16,   ElementType::int32,   ElementType::int64,
    ElementType::uint8,    ElementType::uint16,  ElementType::uint32,  ElementType::uint64,
    ElementType::bfloat16, ElementType::boolean};
constexpr std::initializer_list<Candidate::Verdict> verdicts = {
    Candidate::Verdict::ran, Candidate::Verdict::refused, Candidate::Verdict::failed,
    Candidate::Verdict::passed};
constexpr std::initializer_list<RefusalCode> codes = {
    RefusalCode::none,           RefusalCode::unusable_adapter,   RefusalCode::not_requested,
    RefusalCode::device_lost,    RefusalCode::kernel_unsupported, RefusalCode::foreign_buffer,
    RefusalCode::attempt_failed, RefusalCode::fallback_forbidden, RefusalCode::lower_preference,
    RefusalCode::emulated,       RefusalCode::other_silicon};

}  // namespace

std::string placement_difference(const PlanDescription& placement, const PlanDescription& plan) {
  std::vector<std::string> all;
  compare_graphs(placement, plan, all);
  return all.empty() ? std::string() : std::move(all.front());
}

}  // namespace scheduler

using scheduler::Value;

std::vector<std::string> differences(const PlanDescription& a, const PlanDescription& b) {
  using namespace scheduler;
  std::vector<std::string> all;
  Differences to(all);
  to.compare("The plan", "the name", in_quotes(a.name), in_quotes(b.name));
  compare_graphs(a, b, all);
  for (std::size_t s = 0; s < std::min(a.steps.size(), b.steps.size()); ++s) {
    const PlanDescription::Step &x = a.steps[s], &y = b.steps[s];
    to.compare(step_place(a, s), "the device", in_quotes(x.device), in_quotes(y.device));
    for (std::size_t c = 0; c < std::min(x.calls.size(), y.calls.size()); ++c)
      for (std::size_t i = 0; i < std::min(x.calls[c].arguments.size(), y.calls[c].arguments.size()); ++i)
        to.compare(base::text("{}, argument {} of '{}'", step_place(a, s), i + 1, x.calls[c].kernel),
                   "the kind of memory", x.calls[c].arguments[i].kept_in, y.calls[c].arguments[i].kept_in);
  }
  to.compare("The plan", "the order", numbers(a.order), numbers(b.order));
  to.compare("The plan", "the number of steps in each segment", numbers(a.segments), numbers(b.segments));
  to.compare("The plan", "the number of copies", a.copies.size(), b.copies.size());
  for (std::size_t i = 0; i < std::min(a.copies.size(), b.copies.size()); ++i)
    to.compare("The plan", base::text("copy {}", i), copy_text(a.copies[i]), copy_text(b.copies[i]));
  to.compare("The plan", "the number of devices", a.devices.size(), b.devices.size());
  for (std::size_t i = 0; i < std::min(a.devices.size(), b.devices.size()); ++i) {
    const PlanDescription::Device &x = a.devices[i], &y = b.devices[i];
    const std::string place = base::text("Device {}", in_quotes(x.id));
    to.compare(place, "the id", in_quotes(x.id), in_quotes(y.id));
    to.compare(place, "the name", in_quotes(x.name), in_quotes(y.name));
    to.compare(place, "the memory of arrays", to_string(x.arrays), to_string(y.arrays));
    to.compare(place, "the copies of host memory", to_string(x.host), to_string(y.host));
    to.compare(place, "the scratch memory", to_string(x.scratch), to_string(y.scratch));
  }
  return all;
}

bool operator==(const PlanDescription& a, const PlanDescription& b) { return differences(a, b).empty(); }

std::string PlanDescription::text() const {
  std::string text = scheduler::reason_of(*this);
  for (const std::string& change : changes) text += "\nchanged: " + change;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    text += base::text("\nstep {} '{}' on '{}'", s, step.name, step.device);
    if (!step.after.empty()) text += " after " + scheduler::numbers(step.after);
    if (!step.candidates.empty()) text += ": " + step.candidates.front().reason;
  }
  for (const Copy& copy : copies)
    text += base::text("\ncopy {} from '{}' to '{}' ({}) {}", copy.memory, copy.from, copy.to,
                       to_string(copy.bytes),
                       copy.before < steps.size() ? base::text("before step {}", copy.before)
                                                  : std::string("after the last step"));
  for (const Device& device : devices)
    text += base::text("\nmemory on '{}': {} (arrays {}, host memory {}, scratch {})", device.id,
                       to_string(device.total()), to_string(device.arrays), to_string(device.host),
                       to_string(device.scratch));
  return text;
}

std::string PlanDescription::json() const {
  const auto list = [](const auto& from, auto make) {
    Value all = Value::array();
    for (const auto& one : from) all.push_back(make(one));
    return all;
  };
  const auto argument = [](const Argument& a) {
    return Value{{"memory", a.memory},
                 {"kept_in", a.kept_in},
                 {"access", wye::name(a.access)},
                 {"element", wye::name(a.element)},
                 {"element_size", a.element_size},
                 {"first", a.first},
                 {"count", a.count}};
  };
  const auto call = [&](const Call& c) {
    return Value{{"kernel", c.kernel},
                 {"items", {c.items.x, c.items.y, c.items.z}},
                 {"arguments", list(c.arguments, argument)}};
  };
  const auto candidate = [](const Candidate& c) {
    return Value{{"device", c.device},
                 {"name", c.name},
                 {"verdict", wye::name(c.verdict)},
                 {"code", wye::name(c.code)},
                 {"reason", c.reason}};
  };
  const auto step = [&](const Step& s) {
    return Value{{"name", s.name},
                 {"device", s.device},
                 {"after", s.after},
                 {"calls", list(s.calls, call)},
                 {"candidates", list(s.candidates, candidate)}};
  };
  const auto copy = [](const Copy& c) {
    return Value{
        {"before", c.before}, {"memory", c.memory}, {"from", c.from}, {"to", c.to}, {"bytes", c.bytes.count}};
  };
  const auto device = [](const Device& d) {
    return Value{{"id", d.id},
                 {"name", d.name},
                 {"arrays", d.arrays.count},
                 {"host", d.host.count},
                 {"scratch", d.scratch.count}};
  };
  const Value all{{"plan", name},         {"steps", list(steps, step)},   {"order", order},
                  {"segments", segments}, {"copies", list(copies, copy)}, {"devices", list(devices, device)},
                  {"changes", changes}};
  return all.dump(-1, ' ', false, Value::error_handler_t::replace);
}

Result<PlanDescription> PlanDescription::from_json(std::string_view text) try {
  const Value all = Value::parse(text, nullptr, false);
  if (all.is_discarded()) return Error(Errc::corrupt, "The text is no plan: it is not JSON.");
  scheduler::Reader read;
  PlanDescription plan;
  plan.name = read.text(all, "plan");
  const Value& steps = read.at(all, "steps", Value::value_t::array);
  const std::size_t count = steps.size();
  for (const Value& from : steps) {
    Step& step = plan.steps.emplace_back();
    step.name = read.text(from, "name");
    step.device = read.text(from, "device");
    step.after = read.numbers(from, "after", count);
    read.each(from, "calls", [&](const Value& c) {
      Call& call = step.calls.emplace_back();
      call.kernel = read.text(c, "kernel");
      const std::vector<std::size_t> items = read.numbers(c, "items", ~std::size_t{0});
      if (items.size() != 3) return read.refuse("items");
      call.items = Extent3(items[0], items[1], items[2]);
      read.each(c, "arguments", [&](const Value& a) {
        Argument& argument = call.arguments.emplace_back();
        argument.memory = read.text(a, "memory");
        argument.kept_in = read.text(a, "kept_in");
        argument.access = read.one_of(a, "access", scheduler::accesses);
        argument.element = read.one_of(a, "element", scheduler::elements);
        argument.element_size = static_cast<std::uint32_t>(read.number(a, "element_size"));
        argument.first = read.number(a, "first");
        argument.count = read.number(a, "count");
      });
    });
    read.each(from, "candidates", [&](const Value& c) {
      step.candidates.push_back({read.text(c, "device"), read.text(c, "name"),
                                 read.one_of(c, "verdict", scheduler::verdicts), read.text(c, "reason"),
                                 read.one_of(c, "code", scheduler::codes)});
    });
  }
  plan.order = read.numbers(all, "order", count);
  plan.segments = read.numbers(all, "segments", count + 1);
  read.each(all, "copies", [&](const Value& c) {
    plan.copies.push_back({read.number(c, "before"), read.text(c, "memory"), read.text(c, "from"),
                           read.text(c, "to"), Bytes{read.number(c, "bytes")}});
  });
  read.each(all, "devices", [&](const Value& d) {
    plan.devices.push_back({read.text(d, "id"), read.text(d, "name"), Bytes{read.number(d, "arrays")},
                            Bytes{read.number(d, "host")}, Bytes{read.number(d, "scratch")}});
  });
  read.each(all, "changes", [&](const Value& c) {
    if (c.is_string())
      plan.changes.push_back(c.get<std::string>());
    else
      read.refuse("changes");
  });
  if (read.error()) return *read.error();
  return plan;
} catch (const std::bad_alloc&) {
  return Error(Errc::out_of_memory, "The host has no memory to read a plan.");
}

std::string PlanDescription::graphviz() const {
  const auto escaped = [](std::string_view of) {
    std::string text;
    for (const char c : of) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    return text;
  };
  std::string text = base::text("digraph \"{}\" {{\n", escaped(name));
  for (std::size_t s = 0; s < steps.size(); ++s)
    text +=
        base::text("  {} [label=\"{} {}\\n{}\"];\n", s, s, escaped(steps[s].name), escaped(steps[s].device));
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (const std::size_t before : steps[s].after) text += base::text("  {} -> {};\n", before, s);
  return text + "}\n";
}

}  // namespace v0
}  // namespace wye
