// Plans as text and as a drawing, and their differences.
#include <wye/scheduler/plan.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "scheduler/plan.hpp"

namespace wye::inline v0 {
namespace scheduler {
namespace {

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

}  // namespace

std::string placement_difference(const PlanDescription& placement, const PlanDescription& plan) {
  std::vector<std::string> all;
  compare_graphs(placement, plan, all);
  return all.empty() ? std::string() : std::move(all.front());
}

}  // namespace scheduler

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

}  // namespace wye
