// Plans as JSON.
#include <wye/scheduler/plan.hpp>

#include <initializer_list>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace wye::inline v0 {
namespace scheduler {
namespace {

using Value = nlohmann::ordered_json;

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
constexpr std::initializer_list<RefusalCode> codes = {RefusalCode::none,
                                                      RefusalCode::unusable_adapter,
                                                      RefusalCode::not_requested,
                                                      RefusalCode::device_lost,
                                                      RefusalCode::device_suspect,
                                                      RefusalCode::memory_errors,
                                                      RefusalCode::kernel_blamed,
                                                      RefusalCode::kernel_unsupported,
                                                      RefusalCode::foreign_buffer,
                                                      RefusalCode::attempt_failed,
                                                      RefusalCode::fallback_forbidden,
                                                      RefusalCode::lower_preference,
                                                      RefusalCode::emulated,
                                                      RefusalCode::other_silicon,
                                                      RefusalCode::busy,
                                                      RefusalCode::slower,
                                                      RefusalCode::trial};

}  // namespace
}  // namespace scheduler

using scheduler::Value;

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

}  // namespace wye
