#include "kernel/reflect/match.hpp"

#include <wye/device/parameter.hpp>

#include "support/catch.hpp"

using namespace wye;
using kernel::Binding;
using kernel::Interface;
using kernel::Match;
using kernel::Memory;
using kernel::PushMember;
using kernel::Written;
using Kind = device::Passing::Kind;

namespace {

Slot buffer(std::string name, Access access, ElementType element = ElementType::float32,
            std::uint32_t size = 4) {
  return {std::move(name), SlotKind::buffer, access, element, size};
}
Slot scalar(std::string name, ElementType element = ElementType::float32, std::uint32_t size = 4) {
  return {std::move(name), SlotKind::scalar, Access::read, element, size};
}
Slot structure(std::string name, std::uint32_t size) {
  return {std::move(name), SlotKind::structure, Access::read, ElementType::opaque, size};
}
Slot address(std::string name, Access access) {
  return {std::move(name), SlotKind::address, access, ElementType::opaque, 0};
}

Memory memory(Written written, ElementType component = ElementType::float32, std::uint32_t stride = 4,
              Access declared = Access::read_write) {
  return {declared, written, component, stride};
}

PushMember number(std::string name, std::uint32_t offset, ElementType element = ElementType::float32,
                  std::uint32_t size = 4) {
  return {std::move(name), PushMember::Kind::scalar, element, offset, size, size, size, {}};
}
PushMember block(std::string name, std::uint32_t offset, std::uint32_t size, std::uint32_t padded,
                 std::uint32_t packed, ElementType element = ElementType::opaque) {
  return {std::move(name), PushMember::Kind::structure, element, offset, size, padded, packed, {}};
}
PushMember pointer(std::string name, std::uint32_t offset, Memory to, bool span = false) {
  const std::uint32_t size = span ? 16 : 8;
  return {std::move(name),
          span ? PushMember::Kind::span : PushMember::Kind::pointer,
          ElementType::opaque,
          offset,
          size,
          size,
          size,
          to};
}

Match matched(const ParamSchema& declared, const Interface& source) {
  auto result = kernel::match(declared, source, "k");
  if (!result) FAIL(result.error().describe());
  return *result;
}

std::string refused(const ParamSchema& declared, const Interface& source) {
  auto result = kernel::match(declared, source, "k");
  REQUIRE_FALSE(result);
  CHECK(result.error().code() == Errc::invalid_argument);
  return result.error().sentence();
}

/// A source with one bound buffer.
Interface bound(Memory m) { return {.bindings = {{0, "x", m}}, .members = {}}; }
/// A source with one push constant.
Interface pushed(PushMember m) { return {.bindings = {}, .members = {m}, .push_bytes = m.offset + m.size}; }

}  // namespace

TEST_CASE("buffers match bindings in order, the rest push constants in order", "[kernel]") {
  const Interface source{
      .bindings = {{1, "a", memory(Written::no)}, {4, "b", memory(Written::yes)}},
      .members = {number("s", 0), block("v", 16, 12, 16, 12), number("n", 28, ElementType::uint32)},
      .push_bytes = 32};
  const ParamSchema declared{{scalar(""), buffer("", Access::read), structure("velocity", 12),
                              buffer("out", Access::write), scalar("", ElementType::uint32)}};
  const Match match = matched(declared, source);
  CHECK(match.passing == std::vector<device::Passing>{{Kind::bytes, 0, 0},
                                                      {Kind::descriptor, 1, 0},
                                                      {Kind::bytes, 0, 16},
                                                      {Kind::descriptor, 4, 0},
                                                      {Kind::bytes, 0, 28}});
  CHECK(match.parameter_bytes == 32);
  std::vector<std::string> names;
  for (const Slot& slot : match.schema.slots) names.push_back(slot.name);
  CHECK(names == std::vector<std::string>{"s", "a", "velocity", "out", "n"});
}

TEST_CASE("without bindings all parameters are push constants in order", "[kernel]") {
  const Interface source{
      .bindings = {},
      .members = {pointer("x", 0, memory(Written::no), true), number("n", 16, ElementType::uint32),
                  pointer("y", 24, memory(Written::yes)), pointer("z", 32, memory(Written::no))},
      .push_bytes = 40};
  const Match match = matched({{buffer("", Access::read), scalar("", ElementType::uint32),
                                buffer("", Access::read_write), address("", Access::read)}},
                              source);
  CHECK(match.passing ==
        std::vector<device::Passing>{
            {Kind::span, 0, 0}, {Kind::bytes, 0, 16}, {Kind::address, 0, 24}, {Kind::address, 0, 32}});
  CHECK(match.parameter_bytes == 40);
}

TEST_CASE("a kernel without parameters matches a source without any", "[kernel]") {
  const Match match = matched({}, {});
  CHECK(match.passing.empty());
  CHECK(match.parameter_bytes == 0);
}

TEST_CASE("a parameter the source does not have is named", "[kernel]") {
  CHECK(refused({{buffer("x", Access::read)}}, {}) ==
        "Parameter 1 'x' of kernel 'k' is declared as read buffer of float32, but its source has no storage "
        "buffer for "
        "it.");
  CHECK(refused({{buffer("x", Access::read), buffer("y", Access::read)}}, bound(memory(Written::no))) ==
        "Parameter 2 'y' of kernel 'k' is declared as read buffer of float32, but its source has only 1 "
        "storage buffer.");
  CHECK(refused({{buffer("x", Access::read), scalar("s")}}, bound(memory(Written::no))) ==
        "Parameter 2 's' of kernel 'k' is declared as float32, but its source has no push constant for it.");
  CHECK(refused({{scalar("s"), scalar("t"), scalar("u")}},
                {.bindings = {}, .members = {number("s", 0), number("t", 4)}, .push_bytes = 8}) ==
        "Parameter 3 'u' of kernel 'k' is declared as float32, but its source has only 2 push constants.");
}

TEST_CASE("an undeclared parameter of the source is named", "[kernel]") {
  CHECK(refused({}, bound(memory(Written::no))) ==
        "The source of kernel 'k' has a storage buffer at binding 0 ('x'), for which no parameter is "
        "declared (0 declared).");
  CHECK(refused({{scalar("s")}},
                {.bindings = {}, .members = {number("s", 0), number("t", 4)}, .push_bytes = 8}) ==
        "The source of kernel 'k' has a push constant 't' (float32), for which no parameter is declared "
        "(1 declared).");
}

TEST_CASE("element types of buffers must agree", "[kernel]") {
  for (const ElementType other : {ElementType::int32, ElementType::uint32, ElementType::float64})
    CHECK(refused({{buffer("x", Access::read)}}, bound(memory(Written::no, other, 4)))
              .find("has elements of ") != std::string::npos);
  CHECK(refused({{buffer("", Access::read)}}, bound(memory(Written::no, ElementType::float64, 8))) ==
        "Parameter 1 'x' of kernel 'k' is declared as read buffer of float32, but binding 0 ('x') of its "
        "source has "
        "elements of float64, 8 bytes apart.");
}

TEST_CASE("numbers may be read several at a time, structs number by number", "[kernel]") {
  matched({{buffer("x", Access::read)}}, bound(memory(Written::no, ElementType::float32, 16)));
  matched({{buffer("x", Access::read, ElementType::opaque, 12)}},
          bound(memory(Written::no, ElementType::float32, 4)));
  matched({{buffer("x", Access::read, ElementType::opaque, 12)}},
          bound(memory(Written::no, ElementType::opaque, 12)));
  // The trap of std430: an array of vec3 has elements 16 bytes apart.
  CHECK(refused({{buffer("x", Access::read, ElementType::opaque, 12)}},
                bound(memory(Written::no, ElementType::float32, 16))) ==
        "Parameter 1 'x' of kernel 'k' is declared as read buffer of struct of 12 bytes, but binding 0 ('x') "
        "of its "
        "source has elements of float32, 16 bytes apart.");
  CHECK_FALSE(refused({{buffer("x", Access::read, ElementType::opaque, 12)}},
                      bound(memory(Written::no, ElementType::opaque, 16)))
                  .empty());
  CHECK_FALSE(
      refused({{buffer("x", Access::read)}}, bound(memory(Written::no, ElementType::opaque, 8))).empty());
}

TEST_CASE("elements of 8 and 16 bits may be read by their address in words, those of 32 as no others",
          "[kernel]") {
  const Memory words = memory(Written::no, ElementType::uint32, 4);
  for (const bool span : {false, true}) {
    matched({{buffer("x", Access::read, ElementType::float16, 2)}}, pushed(pointer("x", 0, words, span)));
    matched({{buffer("x", Access::read, ElementType::bfloat16, 2)}}, pushed(pointer("x", 0, words, span)));
    matched({{buffer("x", Access::read, ElementType::int8, 1)}}, pushed(pointer("x", 0, words, span)));
    refused({{buffer("x", Access::read)}}, pushed(pointer("x", 0, words, span)));
  }
  // A descriptor may end within a word.
  refused({{buffer("x", Access::read, ElementType::float16, 2)}}, bound(words));
}

TEST_CASE("elements of unknown type do not refuse the source", "[kernel]") {
  matched({{buffer("x", Access::read)}}, bound(memory(Written::no, ElementType::opaque, 0)));
}

TEST_CASE("a buffer declared as read must not be written", "[kernel]") {
  CHECK(refused({{buffer("x", Access::read)}}, bound(memory(Written::yes))) ==
        "Parameter 1 'x' of kernel 'k' is declared as read buffer of float32, but binding 0 ('x') of its "
        "source is "
        "written.");
  matched({{buffer("x", Access::read)}}, bound(memory(Written::unknown)));
  matched({{buffer("x", Access::read_write)}}, bound(memory(Written::yes)));
  CHECK(refused({{buffer("x", Access::read)}}, pushed(pointer("x", 0, memory(Written::yes), true))) ==
        "Parameter 1 'x' of kernel 'k' is declared as read buffer of float32, but push constant 'x' (offset "
        "0) of its "
        "source is written.");
  CHECK_FALSE(refused({{address("x", Access::read)}}, pushed(pointer("x", 0, memory(Written::yes)))).empty());
}

TEST_CASE("a buffer declared as read must be readable, one declared as write must be written", "[kernel]") {
  CHECK(refused({{buffer("x", Access::read)}},
                bound(memory(Written::no, ElementType::float32, 4, Access::write))) ==
        "Parameter 1 'x' of kernel 'k' is declared as read buffer of float32, but binding 0 ('x') of its "
        "source is "
        "writeonly.");
  CHECK(refused({{buffer("x", Access::write)}}, bound(memory(Written::no))) ==
        "Parameter 1 'x' of kernel 'k' is declared as write buffer of float32, but binding 0 ('x') of its "
        "source is "
        "never written.");
  matched({{buffer("x", Access::write)}}, bound(memory(Written::unknown)));
  matched({{buffer("x", Access::read_write)}},
          bound(memory(Written::no, ElementType::float32, 4, Access::read)));
}

TEST_CASE("kinds must agree", "[kernel]") {
  const auto say = [](const Slot& slot, const PushMember& member) {
    return refused({{slot}}, pushed(member));
  };
  CHECK(say(scalar("s"), number("s", 0, ElementType::int32)) ==
        "Parameter 1 's' of kernel 'k' is declared as float32, but push constant 's' (offset 0) of its "
        "source is int32.");
  CHECK(say(scalar("s"), pointer("s", 0, {})) ==
        "Parameter 1 's' of kernel 'k' is declared as float32, but push constant 's' (offset 0) of its "
        "source is an "
        "address.");
  CHECK(say(scalar("s"), block("s", 4, 8, 8, 8)) ==
        "Parameter 1 's' of kernel 'k' is declared as float32, but push constant 's' (offset 4) of its "
        "source is struct "
        "of 8 bytes.");
  CHECK(say(buffer("x", Access::read), number("x", 0)).find("is float32.") != std::string::npos);
  CHECK(say(address("x", Access::read), number("x", 0)).find("declared as read address") !=
        std::string::npos);
  CHECK(say(address("x", Access::read), pointer("x", 0, {}, true)).find("an address and a count") !=
        std::string::npos);
  CHECK(say(structure("x", 16), pointer("x", 0, {}, true)).find("an address and a count") !=
        std::string::npos);
}

TEST_CASE("an address may be 8 bytes of another type in the source", "[kernel]") {
  CHECK(matched({{address("x", Access::write)}}, pushed(number("x", 0, ElementType::uint64, 8))).passing[0] ==
        device::Passing{Kind::address, 0, 0});
  matched({{address("x", Access::write)}}, pushed(block("x", 8, 8, 8, 8, ElementType::uint32)));
  CHECK_FALSE(
      refused({{address("x", Access::write)}}, pushed(number("x", 0, ElementType::float64, 8))).empty());
}

TEST_CASE("a struct has the size of its numbers, or that with the padding of either side", "[kernel]") {
  const PushMember pair = block("p", 0, 20, 32, 24);  // say: a vec4, a float; alignment 16 in GLSL, 8 here
  for (const std::uint32_t size : {20u, 24u, 32u}) {
    const Match match = matched({{structure("p", size)}}, pushed(pair));
    CHECK(match.parameter_bytes == std::max(size, 20u));
  }
  for (const std::uint32_t size : {16u, 19u, 21u, 28u, 36u})
    CHECK_FALSE(refused({{structure("p", size)}}, pushed(pair)).empty());
  // Padding must not reach into the next one.
  const Interface close{.bindings = {}, .members = {pair, number("s", 20)}, .push_bytes = 24};
  matched({{structure("p", 20), scalar("s")}}, close);
  CHECK_FALSE(refused({{structure("p", 32), scalar("s")}}, close).empty());
  matched({{structure("e", 4)}}, pushed(number("e", 0, ElementType::uint32)));  // an enum
}

TEST_CASE("a struct that a source lays out otherwise is refused with both layouts", "[kernel]") {
  struct Line {
    float a;
    float b[3];
  };
  // struct { float a; vec3 b; }
  PushMember there = block("p", 0, 28, 32, 28);
  there.layout = {{ElementType::float32, 0, 4},
                  {ElementType::float32, 16, 4},
                  {ElementType::float32, 20, 4},
                  {ElementType::float32, 24, 4}};
  Slot line = detail::ParameterTraits<Line>::slot();
  line.name = "p";
  CHECK(refused({{line}}, pushed(there)) ==
        "Parameter 1 'p' of kernel 'k' is declared as struct of 16 bytes, but push constant 'p' (offset 0) "
        "of its "
        "source is struct of 28 bytes; the declared struct has float32 at 0, 4, 8, 12; the struct of the "
        "source has "
        "float32 at 0, 16, 20, 24.");
  struct Spaced {
    float a;
    alignas(16) float b[3];
  };
  matched({{detail::ParameterTraits<Spaced>::slot()}}, pushed(there));
}

TEST_CASE("structs of one size and other numbers are refused", "[kernel]") {
  struct Wide {
    float a;
    double b;
    std::uint32_t c;
  };
  // struct { float a, b; uint c; } and three unused numbers
  PushMember there = block("p", 0, 24, 24, 24);
  there.layout = {{ElementType::float32, 0, 4}, {ElementType::float32, 4, 4}, {ElementType::uint32, 8, 4},
                  {ElementType::uint32, 12, 4}, {ElementType::uint32, 16, 4}, {ElementType::uint32, 20, 4}};
  Slot wide = detail::ParameterTraits<Wide>::slot();
  wide.name = "p";
  CHECK(refused({{wide}}, pushed(there)) ==
        "Parameter 1 'p' of kernel 'k' is declared as struct of 24 bytes, but push constant 'p' (offset 0) "
        "of its "
        "source has float32 at byte 4; the declared struct has float32 at 0; float64 at 8; uint32 at 16; the "
        "struct "
        "of the source has float32 at 0, 4; uint32 at 8, 12, 16, 20.");
  // The same as elements of a buffer.
  Memory elements = memory(Written::no, ElementType::opaque, 24);
  elements.layout = there.layout;
  Slot run = detail::ParameterTraits<Read<Wide>>::slot();
  run.name = "x";
  CHECK(refused({{run}}, bound(elements)) ==
        "Parameter 1 'x' of kernel 'k' is declared as read buffer of struct of 24 bytes, but binding 0 ('x') "
        "of its "
        "source has float32 at byte 4 of each element; the declared struct has float32 at 0; float64 at 8; "
        "uint32 "
        "at 16; the struct of the source has float32 at 0, 4; uint32 at 8, 12, 16, 20.");
  elements.layout.clear();
  matched({{run}}, bound(elements));
}

TEST_CASE("a struct may have integers in other pieces, padding, and bytes of no type", "[kernel]") {
  const auto with = [](std::vector<SlotMember> layout, std::uint32_t size) {
    PushMember there = block("p", 0, size, size, size);
    there.layout = std::move(layout);
    return pushed(there);
  };
  struct Pieces {
    std::uint64_t address;       // uvec2
    std::uint8_t color[4];       // uint
    half pair[2];                // uint, unpackHalf2x16
    std::int32_t sign;           // uint
    float padding;               // nothing
    std::byte raw[4];            // float
    enum class E : int { e } e;  // int
  };
  const std::vector<SlotMember> there = {{ElementType::uint32, 0, 4},  {ElementType::uint32, 4, 4},
                                         {ElementType::uint32, 8, 4},  {ElementType::uint32, 12, 4},
                                         {ElementType::uint32, 16, 4}, {ElementType::float32, 24, 4},
                                         {ElementType::int32, 28, 4}};
  matched({{detail::ParameterTraits<Pieces>::slot()}}, with(there, 32));
  struct Hole {
    float a;
    alignas(8) float b;
  };
  CHECK(refused({{detail::ParameterTraits<Hole>::slot()}},
                with({{ElementType::float32, 0, 4}, {ElementType::float32, 4, 4}}, 16))
            .find("has float32 at byte 4;") != std::string::npos);
  struct Number {
    std::uint32_t bits;
  };
  CHECK(refused({{detail::ParameterTraits<Number>::slot()}}, pushed(number("p", 0)))
            .find("has float32 at byte 0;") != std::string::npos);
}

TEST_CASE("flat push constants for a struct are refused with the ways to mend it", "[kernel]") {
  const Interface flat{.bindings = {},
                       .members = {number("a", 0), block("b", 16, 12, 16, 12, ElementType::float32)},
                       .push_bytes = 28};
  CHECK(refused({{structure("p", 28)}}, flat) ==
        "Parameter 1 'p' of kernel 'k' is declared as struct of 28 bytes, but push constant 'a' (offset 0) "
        "of its "
        "source is float32; wrap the members of its push-constant block in one struct, or declare one "
        "parameter for "
        "each of the 2.");
}

TEST_CASE("the parameter block is a multiple of 4 bytes", "[kernel]") {
  CHECK(matched({{scalar("h", ElementType::float16, 2)}}, pushed(number("h", 4, ElementType::float16, 2)))
            .parameter_bytes == 8);
}

TEST_CASE("a number of which the declared struct has only some bytes is refused", "[kernel]") {
  struct Half {
    std::uint16_t low;
    alignas(4) std::uint32_t next;
  };
  PushMember there = block("p", 0, 8, 8, 8);
  there.layout = {{ElementType::uint32, 0, 4}, {ElementType::uint32, 4, 4}};
  CHECK(refused({{detail::ParameterTraits<Half>::slot()}}, pushed(there)).find("has uint32 at byte 0;") !=
        std::string::npos);
}

TEST_CASE("numbers of a source are compared with those of a struct if the source has one of them per element",
          "[kernel]") {
  struct Mixed {
    float a;
    std::uint32_t b;
  };
  const ParamSchema declared{{detail::ParameterTraits<Read<Mixed>>::slot()}};
  const std::vector<SlotMember> swapped = {{ElementType::uint32, 0, 4}, {ElementType::float32, 4, 4}};
  const auto source = [](ElementType component, std::uint32_t stride, std::vector<SlotMember> layout) {
    Memory there = memory(Written::no, component, stride);
    there.layout = std::move(layout);
    return bound(there);
  };
  CHECK(refused(declared, source(ElementType::opaque, 8, swapped)).find("has uint32 at byte 0 of each") !=
        std::string::npos);
  // A buffer that is no array has the numbers of its first element, unless it has more numbers than
  // an element.
  CHECK(refused(declared, source(ElementType::opaque, 0, swapped)).find("has uint32 at byte 0 of each") !=
        std::string::npos);
  matched(declared, source(ElementType::opaque, 0,
                           {{ElementType::float32, 0, 4},
                            {ElementType::uint32, 4, 4},
                            {ElementType::float32, 8, 4},
                            {ElementType::uint32, 12, 4}}));
  // An array whose elements are parts of the declared struct.
  matched(declared, source(ElementType::uint32, 4, {{ElementType::uint32, 0, 4}}));
}

TEST_CASE("elements that are no whole number of declared elements apart are refused", "[kernel]") {
  matched({{buffer("x", Access::read)}}, bound(memory(Written::no, ElementType::float32, 8)));
  CHECK(refused({{buffer("x", Access::read)}}, bound(memory(Written::no, ElementType::float32, 6))) ==
        "Parameter 1 'x' of kernel 'k' is declared as read buffer of float32, but binding 0 ('x') of its "
        "source "
        "has elements of float32, 6 bytes apart.");
}
