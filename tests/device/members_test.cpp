#include <wye/device/detail/members.hpp>

#include <array>

#include "support/catch.hpp"

using namespace wye;

namespace {

/// "float32@0 uint8@4".
template <class T>
std::string members() {
  std::string list;
  for (const SlotMember& member : detail::members_of<T>()) {
    if (!list.empty()) list += ' ';
    list.append(name(member.element)).append("@").append(std::to_string(member.offset));
  }
  return list;
}

struct Pair {
  float x, y;
};
struct Nothing {};
struct Derived : Pair {
  float z;
};
struct WithUnion {
  union {
    float f;
    unsigned u;
  };
  int z;
};
struct Bits {
  int a : 3;
  int b : 29;
  float c;
};
struct Constructed {
  Constructed(float value) : x(value) {}
  float x;
};
struct Skipped {
  float x;
};

}  // namespace

namespace wye {
template <>
inline constexpr bool reads_members<Skipped> = false;
}  // namespace wye

TEST_CASE("the members of a struct are its numbers, with their offsets", "[device]") {
  struct Plain {
    float a;
    double b;
    const std::uint32_t c;
  };
  CHECK(members<Plain>() == "float32@0 float64@8 uint32@16");
  struct Nested {
    Pair a;
    std::int16_t k;
    Pair b[2];
    float m[2][3];
    std::array<Pair, 2> c;
    half h;
    float one[1];
  };
  CHECK(members<Nested>() ==
        "float32@0 float32@4 int16@8 float32@12 float32@16 float32@20 float32@24 float32@28 float32@32 "
        "float32@36 "
        "float32@40 float32@44 float32@48 float32@52 float32@56 float32@60 float32@64 float16@68 float32@72");
  struct Aligned {
    alignas(16) float a;
    alignas(16) float b[3];
    float c;
  };
  CHECK(members<Aligned>() == "float32@0 float32@16 float32@20 float32@24 float32@28");
  enum class Mode : std::uint16_t { on };
  struct Others {
    Mode mode;
    void* address;
    std::byte raw[2];
  };
  CHECK(members<Others>() == "uint16@0 uint64@8 opaque@16 opaque@17");
  CHECK(members<std::array<float, 3>>() == "float32@0 float32@4 float32@8");
  CHECK(members<Mode>() == "uint16@0");
}

TEST_CASE("members that structured bindings cannot decompose are unknown", "[device]") {
  CHECK(members<float>().empty());
  CHECK(members<Nothing>().empty());
  CHECK(members<Derived>().empty());
  CHECK(members<WithUnion>().empty());
  CHECK(members<Bits>().empty());
  CHECK(members<Constructed>().empty());
  CHECK(members<Skipped>().empty());
  struct Large {
    float all[1000];
  };
  CHECK(members<Large>().empty());
  struct Mixed {
    Constructed a;
    float b;
  };
  CHECK(members<Mixed>() == "opaque@0 float32@4");
  struct Deep {
    float b;
    WithUnion c;
  };
  CHECK(members<Deep>().empty());
}
