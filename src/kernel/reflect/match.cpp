#include "kernel/reflect/match.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"

namespace wye::inline v0::kernel {

namespace {

std::string plural(std::size_t n, std::string_view what) {
  return base::text("{} {}{}", n, what, n == 1 ? "" : "s");
}

/// Returns "float32", or "struct of 12 bytes".
std::string type_text(ElementType type, std::uint32_t size) {
  return type == ElementType::opaque ? base::text("struct of {}", plural(size, "byte"))
                                     : std::string(name(type));
}

/// Returns "read_write buffer of float32".
std::string declared_text(const Slot& slot) {
  switch (slot.kind) {
    case SlotKind::buffer:
      return base::text("{} buffer of {}", name(slot.access), type_text(slot.element, slot.size));
    case SlotKind::address: return base::text("{} address", name(slot.access));
    default: return type_text(slot.element, slot.size);
  }
}

/// Returns "elements of float32, 4 bytes apart".
std::string memory_text(const Memory& memory) {
  if (memory.component == ElementType::opaque) return base::text("elements {} bytes apart", memory.stride);
  return base::text("elements of {}, {} bytes apart", name(memory.component), memory.stride);
}

std::string member_text(const PushMember& member) {
  switch (member.kind) {
    case PushMember::Kind::pointer: return "an address";
    case PushMember::Kind::span: return "an address and a count";
    case PushMember::Kind::scalar: return std::string(name(member.element));
    case PushMember::Kind::bytes:
      if (member.element != ElementType::opaque) return std::string(name(member.element));
      return plural(member.size, "byte");
    case PushMember::Kind::structure: break;
  }
  return type_text(ElementType::opaque, member.packed_size);
}

bool is_float(ElementType type) {
  return type == ElementType::float16 || type == ElementType::bfloat16 || type == ElementType::float32 ||
         type == ElementType::float64;
}

/// Returns whether both are integers or both are not. PTX does not distinguish signed and unsigned
/// integers.
bool same_class(ElementType a, ElementType b) {
  return a == ElementType::opaque || b == ElementType::opaque || is_float(a) == is_float(b);
}

/// Returns "float32 at 0, 16, 20; uint32 at 24".
std::string layout_text(const std::vector<SlotMember>& members) {
  constexpr std::size_t most_shown = 24;
  std::string list;
  const std::size_t count = std::min(members.size(), most_shown);
  for (std::size_t i = 0; i < count; ++i) {
    const SlotMember& member = members[i];
    if (i != 0 && member.element == members[i - 1].element) {
      list += base::text(", {}", member.offset);
      continue;
    }
    list.append(i == 0 ? "" : "; ");
    list += base::text("{} at {}", member.element == ElementType::opaque ? "bytes" : name(member.element),
                       member.offset);
  }
  return count < members.size() ? base::text("{} and {} more", list, members.size() - count) : list;
}

/// Returns "; the declared struct has float32 at 0, 4; the struct of the source has float32 at 0,
/// 16".
std::string both_layouts(const std::vector<SlotMember>& declared, const std::vector<SlotMember>& there) {
  std::string both;
  if (!declared.empty()) both += base::text("; the declared struct has {}", layout_text(declared));
  if (!there.empty()) both += base::text("; the struct of the source has {}", layout_text(there));
  return both;
}

/// Returns whether a source may read a declared number as `wanted`, which overlaps it. A
/// floating-point number requires the same type, or with 16 bits an integer of that size. An
/// integer may be part of a wider integer. A 32-bit word may hold several narrow numbers
/// (packHalf2x16).
bool may_be(const SlotMember& declared, const SlotMember& wanted) {
  if (declared.element == ElementType::opaque) return true;
  const bool same_place = declared.offset == wanted.offset && declared.size == wanted.size;
  if (is_float(wanted.element))
    return same_place &&
           (declared.element == wanted.element || (wanted.size == 2 && !is_float(declared.element)));
  if (!is_float(declared.element)) return true;
  return wanted.element == ElementType::uint32 && declared.size < wanted.size;
}

/// Returns whether the declared struct has bytes at the offset of `wanted` that a source may read
/// as that number.
bool holds(const std::vector<SlotMember>& declared, const SlotMember& wanted) {
  const std::uint64_t end = std::uint64_t{wanted.offset} + wanted.size;
  std::uint64_t covered = 0;
  for (const SlotMember& one : declared) {
    const std::uint64_t first = std::max(one.offset, wanted.offset);
    const std::uint64_t last = std::min(std::uint64_t{one.offset} + one.size, end);
    if (first >= last) continue;
    if (!may_be(one, wanted)) return false;
    covered += last - first;
  }
  return covered == wanted.size;
}

/// Returns the first number of the source that the declared struct does not have; null if there is
/// none or the members are unknown.
const SlotMember* first_conflict(const std::vector<SlotMember>& declared,
                                 const std::vector<SlotMember>& there) {
  if (declared.empty()) return nullptr;
  for (const SlotMember& one : there)
    if (one.element != ElementType::opaque && !holds(declared, one)) return &one;
  return nullptr;
}

std::string quoted(const std::string& name) {
  return name.empty() ? std::string() : base::text(" '{}'", name);
}

class Matcher {
 public:
  Matcher(const Interface& source, const std::string& kernel, Language language)
      : source_(source), kernel_(kernel), language_(language) {}

  Result<Match> run(const ParamSchema& declared) {
    Match result{declared, {}, source_.push_bytes};
    std::size_t buffers = 0, members = 0;
    for (std::size_t i = 0; i < declared.slots.size(); ++i) {
      Slot& slot = result.schema.slots[i];
      const bool bound = slot.kind == SlotKind::buffer && !source_.bindings.empty();
      std::size_t& next = bound ? buffers : members;
      const std::size_t there = bound ? source_.bindings.size() : source_.members.size();
      if (next == there) return missing(i, slot, bound, there);
      std::optional<Error> error;
      device::Passing passing;
      if (bound) {
        const Binding& binding = source_.bindings[next];
        if (slot.name.empty()) slot.name = binding.name;
        passing = {device::Passing::Kind::descriptor, binding.binding, 0};
        error = check_memory(i, slot, binding.memory,
                             base::text("binding {}{}", binding.binding, base::parenthesized(binding.name)),
                             false);
      } else {
        const PushMember& member = source_.members[next];
        if (slot.name.empty()) slot.name = member.name;
        passing = {kind_of(member, slot), 0, member.offset};
        error = check_member(i, slot, next);
        if (slot.kind == SlotKind::structure || slot.kind == SlotKind::scalar)
          result.parameter_bytes = std::max(result.parameter_bytes, member.offset + slot.size);
      }
      if (error) return *error;
      result.passing.push_back(passing);
      ++next;
    }
    if (buffers < source_.bindings.size()) {
      const Binding& left = source_.bindings[buffers];
      return left_over(declared, base::text("a storage buffer at binding {}{}", left.binding,
                                            base::parenthesized(left.name)));
    }
    if (members < source_.members.size())
      return left_over(declared,
                       base::text("a {} ({})", place_of(members), member_text(source_.members[members])));
    if (language_ == Language::shader) result.parameter_bytes = (result.parameter_bytes + 3) / 4 * 4;
    return result;
  }

 private:
  /// Makes "Parameter 1 'x' of kernel 'scale' is declared as float32, but <rest>."
  Error disagree(std::size_t index, const Slot& slot, const std::string& rest) const {
    return Error(Errc::invalid_argument,
                 base::text("Parameter {}{} of kernel '{}' is declared as {}, but {}.", index + 1,
                            quoted(slot.name), kernel_, declared_text(slot), rest));
  }

  /// Returns "push constant 's'", or "parameter 2" of a function.
  std::string place_of(std::size_t at) const {
    const PushMember& member = source_.members[at];
    return member.kind == PushMember::Kind::bytes ? base::text("parameter {}", at + 1)
                                                  : base::text("push constant{}", quoted(member.name));
  }

  Error missing(std::size_t index, const Slot& slot, bool bound, std::size_t there) const {
    const bool buffer = bound || (slot.kind == SlotKind::buffer && there == 0);
    const std::string_view what = language_ == Language::function ? "parameter"
                                  : buffer                        ? "storage buffer"
                                                                  : "push constant";
    return disagree(index, slot,
                    there == 0 ? base::text("its source has no {} for it", what)
                               : base::text("its source has only {}", plural(there, what)));
  }

  Error left_over(const ParamSchema& declared, const std::string& what) const {
    return Error(
        Errc::invalid_argument,
        base::text("The source of kernel '{}' has {}, for which no parameter is declared ({} declared).",
                   kernel_, what, declared.slots.size()));
  }

  static device::Passing::Kind kind_of(const PushMember& member, const Slot& slot) {
    const bool has_count = member.kind == PushMember::Kind::span ||
                           (member.kind == PushMember::Kind::bytes && member.size == span_bytes);
    if (slot.kind == SlotKind::buffer && has_count) return device::Passing::Kind::span;
    if (slot.kind == SlotKind::buffer || slot.kind == SlotKind::address)
      return device::Passing::Kind::address;
    return device::Passing::Kind::bytes;
  }

  std::optional<Error> check_memory(std::size_t index, const Slot& slot, const Memory& memory,
                                    const std::string& where, bool by_address) const {
    if (!writes(slot.access) && memory.written == Written::yes)
      return disagree(index, slot, base::text("{} of its source is written", where));
    if (slot.access == Access::read && !reads(memory.declared) && writes(memory.declared))
      return disagree(index, slot, base::text("{} of its source is writeonly", where));
    if (slot.access == Access::write && memory.written == Written::no)
      return disagree(index, slot, base::text("{} of its source is never written", where));
    if (slot.kind == SlotKind::buffer && !same_elements(slot, memory, by_address))
      return disagree(index, slot,
                      base::text("{} of its source has {}{}", where, memory_text(memory),
                                 both_layouts(slot.members, memory.layout)));
    const std::uint64_t end =
        memory.layout.empty() ? 0 : std::uint64_t{memory.layout.back().offset} + memory.layout.back().size;
    const bool is_element = memory.stride == 0 ? slot.size >= end : slot.size == memory.stride;
    if (slot.kind == SlotKind::buffer && is_element)
      if (const SlotMember* conflict = first_conflict(slot.members, memory.layout))
        return disagree(
            index, slot,
            base::text("{} of its source has {} at byte {} of each element{}", where, name(conflict->element),
                       conflict->offset, both_layouts(slot.members, memory.layout)));
    return std::nullopt;
  }

  /// Returns whether elements agree in size and type. A source may read several numbers at a time
  /// (a vec4 of float32), and a struct number by number. Through an address, it may read numbers of
  /// 8 and 16 bits in words of 32 bits, which requires no device feature.
  static bool same_elements(const Slot& slot, const Memory& memory, bool by_address) {
    if (memory.stride == 0) return true;
    const ElementType element = slot.element == ElementType::boolean ? ElementType::uint8 : slot.element;
    if (element == ElementType::opaque)
      return memory.stride == slot.size ||
             (memory.component != ElementType::opaque && slot.size % memory.stride == 0);
    if (by_address && slot.size < 4 && memory.component == ElementType::uint32) return true;
    return memory.component == element && memory.stride % slot.size == 0;
  }

  std::optional<Error> check_member(std::size_t index, const Slot& slot, std::size_t at) const {
    const PushMember& member = source_.members[at];
    const std::string where = base::text("{} (offset {})", place_of(at), member.offset);
    const auto refuse = [&](const std::string& more = {}) {
      const bool bare = member.kind == PushMember::Kind::bytes && member.element == ElementType::opaque;
      return disagree(
          index, slot,
          base::text("{} of its source {} {}{}", where, bare ? "has" : "is", member_text(member), more));
    };
    if (member.kind == PushMember::Kind::bytes) return check_bytes(slot, member, refuse);
    const bool address = member.kind == PushMember::Kind::pointer || member.kind == PushMember::Kind::span;
    switch (slot.kind) {
      case SlotKind::buffer:
        if (!address) return refuse();
        return check_memory(index, slot, member.memory, where, true);
      case SlotKind::address:
        if (member.kind == PushMember::Kind::pointer)
          return check_memory(index, slot, member.memory, where, true);
        if (address || member.size != 8) return refuse();
        if (member.element != ElementType::uint64 && member.element != ElementType::uint32) return refuse();
        return std::nullopt;
      case SlotKind::scalar:
        if (member.kind != PushMember::Kind::scalar || !same_number(slot.element, member.element))
          return refuse();
        return std::nullopt;
      case SlotKind::structure: break;
    }
    if (address) return refuse();
    const bool fits =
        at + 1 == source_.members.size() || slot.size <= source_.members[at + 1].offset - member.offset;
    const bool sized =
        slot.size == member.size || slot.size == member.padded_size || slot.size == member.packed_size;
    if (!fits || !sized) {
      if (member.kind == PushMember::Kind::scalar || member.element != ElementType::opaque)
        return refuse(source_.members.size() > 1
                          ? base::text("; wrap the members of its push-constant block in one struct, or "
                                       "declare one parameter for each of the {}",
                                       source_.members.size())
                          : std::string());
      return refuse(both_layouts(slot.members, member.layout));
    }
    const std::vector<SlotMember> number = {{member.element, 0, member.size}};
    const auto& there = member.kind == PushMember::Kind::scalar ? number : member.layout;
    if (const SlotMember* conflict = first_conflict(slot.members, there))
      return disagree(index, slot,
                      base::text("{} of its source has {} at byte {}{}", where, name(conflict->element),
                                 conflict->offset, both_layouts(slot.members, there)));
    return std::nullopt;
  }

  /// A bool parameter of a shader is a 32-bit integer in GLSL and an 8-bit integer in Slang. wye
  /// writes the first byte and zeroes the rest.
  static bool same_number(ElementType declared, ElementType there) {
    if (declared != ElementType::boolean) return declared == there;
    return there == ElementType::uint32 || there == ElementType::int32 || there == ElementType::uint8 ||
           there == ElementType::int8;
  }

  /// Checks a parameter of a function, of which only the size and sometimes the type of number is
  /// known.
  template <class Refuse>
  static std::optional<Error> check_bytes(const Slot& slot, const PushMember& member, const Refuse& refuse) {
    switch (slot.kind) {
      case SlotKind::buffer:
        if (member.size != span_bytes && member.size != address_bytes) return refuse();
        break;
      case SlotKind::address:
        if (member.size != address_bytes) return refuse();
        break;
      case SlotKind::scalar:
        if (member.size != slot.size || !same_class(member.element, slot.element)) return refuse();
        return std::nullopt;
      case SlotKind::structure:
        if (member.size != slot.size)
          return refuse(member.element == ElementType::opaque ? both_layouts(slot.members, {})
                                                              : std::string());
        return std::nullopt;
    }
    if (!same_class(member.element, ElementType::uint64)) return refuse();
    return std::nullopt;
  }

  static constexpr std::uint32_t address_bytes = 8, span_bytes = 16;

  const Interface& source_;
  const std::string& kernel_;
  const Language language_;
};

}  // namespace

Result<Match> match(const ParamSchema& declared, const Interface& source, const std::string& kernel,
                    Language language) {
  return Matcher(source, kernel, language).run(declared);
}

}  // namespace wye::kernel
