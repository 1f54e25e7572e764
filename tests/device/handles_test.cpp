#include <wye/device/buffer.hpp>
#include <wye/device/device.hpp>
#include <wye/device/executable.hpp>

#include <set>

#include "base/internals.hpp"
#include "device/doubles.hpp"

namespace wye::test {

TEST_CASE("every value of the device room has a name", "[device]") {
  CHECK(name(AdapterType::virtual_gpu) == "virtual_gpu");
  CHECK(name(Access::read_write) == "read_write");
  CHECK(name(SlotKind::structure) == "structure");
  CHECK(name(CacheTier::disk) == "disk");
  std::set<std::string_view> words;
  for (unsigned i = 0; i <= static_cast<unsigned>(ElementType::uint64); ++i)
    words.insert(name(static_cast<ElementType>(i)));
  CHECK(words.size() == static_cast<unsigned>(ElementType::uint64) + 1);
  words.clear();
  for (unsigned i = 0; i <= static_cast<unsigned>(Feature::cooperative_matrix); ++i)
    words.insert(name(static_cast<Feature>(i)));
  CHECK(words.size() == static_cast<unsigned>(Feature::cooperative_matrix) + 1);
  CHECK(words.count("unknown") == 0);

  CHECK(to_string(Features{Feature::int64, Feature::float64}) == "float64, int64");
  CHECK(to_string(Features{}).empty());
  CHECK(to_string(Uuid{0x8f, 0x2c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a}) ==
        "8f2c0000-0000-0000-0000-00000000000a");
  CHECK(to_string(ParamSchema{}) == "()");
  CHECK(to_string(ParamSchema{
            {buffer_slot("x", Access::read_write, ElementType::float32),
             scalar_slot("s", ElementType::float32),
             {.name = "m", .kind = SlotKind::structure, .access = Access::read, .element = {}, .size = 64},
             {.name = "", .kind = SlotKind::address, .access = Access::read, .element = {}, .size = 8}}}) ==
        "(buffer read_write float32 x, scalar float32 s, structure 64-byte m, address read)");
}

TEST_CASE("a value of any size keeps its bytes", "[device]") {
  struct Small {
    std::uint32_t a, b;
  };
  struct Large {
    std::uint64_t words[9];
  };
  const Operand small = Operand::of_value(Small{3, 4});
  CHECK(small.value().size() == sizeof(Small));
  CHECK(std::memcmp(small.value().data() + 4, "\4\0\0\0", 4) == 0);
  Large large{};
  for (std::uint64_t i = 0; i < 9; ++i) large.words[i] = i * i;
  Operand copy;
  {
    const Operand original = Operand::of_value(large);
    copy = original;
  }
  REQUIRE(copy.value().size() == sizeof(Large));
  CHECK(std::memcmp(copy.value().data(), &large, sizeof(Large)) == 0);
  CHECK(Operand::of_bytes({}).value().empty());
  CHECK(Operand{}.value().empty());
  CHECK(Scratch<float>(4).operand(Access::read).id != Scratch<float>(4).operand(Access::read).id);
}

TEST_CASE("a buffer handle counts elements and makes operands of them", "[device]") {
  const Device device(null_device());
  const Buffer buffer = device.buffer<double>(10).value();
  CHECK(buffer.bytes() == 80_B);
  CHECK(buffer.size() == 10);
  const Operand operand = buffer.operand(Access::read, 2, 3);
  CHECK(operand.kind == Operand::Kind::buffer);
  CHECK(operand.element == ElementType::float64);
  CHECK(operand.offset == 2);
  CHECK(operand.bytes() == 24_B);
  CHECK(operand.object == base::state_of(buffer));
  CHECK(buffer.operand(Access::write).count == 10);
  CHECK(Operand(operand).slice(1, 2).offset == 3);
}

TEST_CASE("empty handles return empty values", "[device]") {
  CHECK_FALSE(Buffer());
  CHECK(Buffer().size() == 0);
  CHECK(Buffer().address() == 0);
  CHECK_FALSE(Executable());
  CHECK(Executable().name().empty());
  CHECK(Executable().schema() == ParamSchema{});
  CHECK_FALSE(Device());
  CHECK(Device().id().empty());
  CHECK(Device().memory().total == 0_B);
  CHECK(Device().buffer<float>(1).error() == Errc::invalid_argument);
}

}  // namespace wye::test
