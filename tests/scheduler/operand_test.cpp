// Operands that callers filled in themselves, with numbers that mean nothing.
#include <wye/wye.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/internals.hpp"
#include "device/operand.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"

using namespace wye;

namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

/// The error of a call of `scale` with `operand` as its memory, on `device`.
Result<Outcome> scaled(Runtime& runtime, const Device& device, const Operand& operand) {
  static const auto scale = test::scale();
  Arguments arguments;
  arguments.push_back(operand);
  arguments.push_back(Operand::of_value(2.0f));
  return runtime.run(Call(base::programs_of(scale), arguments).over(16), {.on = device.id()});
}

}  // namespace

TEST_CASE("operands whose numbers mean nothing are refused with those numbers", "[scheduler]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"vulkan", "cpu"}}}).value();
  std::vector<float> x(16, 1.0f);
  const Scratch<float> scratch(16);
  const Operand host = Operand::host_span(std::span<float>(x), Access::read_write);
  for (const Device& device : runtime.devices()) {
    INFO(device.id());
    auto array = runtime.array<float>(16);  // refused jobs fail it
    for (const Operand& right :
         {host, array.operand(Access::read_write), scratch.operand(Access::read_write)}) {
      INFO(static_cast<int>(right.kind));
      CHECK(scaled(runtime, device, right));
      const auto refused = [&](auto change) {
        Operand wrong = right;
        change(wrong);
        const auto done = scaled(runtime, device, wrong);
        REQUIRE_FALSE(done);
        INFO(done.error().describe());
        CHECK(done.error() == Errc::invalid_argument);
        return done.error().sentence();
      };
      CHECK(refused([](Operand& o) { o.size = 0; }) ==
            "Argument 1 of 'scale' has an element size of 0 bytes; expected at least 1.");
      for (const std::uint64_t count :
           {std::uint64_t{1} << 62, (std::uint64_t{1} << 62) + 1, most / 4 + 1, most - 1, most}) {
        const bool is_beyond = right.kind == Operand::Kind::array && count == AnyArray::beyond;
        CHECK(refused([&](Operand& o) {
                o.count = count;
              }).find(is_beyond ? "ends beyond its array (16 elements)" : std::to_string(count)) !=
              std::string::npos);
      }
      if (right.kind == Operand::Kind::host) {
        refused([](Operand& o) { o.data = nullptr; });
        refused([](Operand& o) { o.count = std::uint64_t{1} << 61; });  // larger than any object
        continue;
      }
      for (const std::uint64_t offset : {std::uint64_t{1} << 62, most / 4, most - 15, most})
        refused([&](Operand& o) { o.offset = offset; });
      if (right.kind == Operand::Kind::array) {
        refused([](Operand& o) { o.offset = 1; });
        refused([](Operand& o) { o.count = 17; });
        refused([](Operand& o) { o.size = 8; });
      }
    }
    Operand nothing;
    CHECK(scaled(runtime, device, nothing).error() == Errc::invalid_argument);
    Operand value;
    value.kind = Operand::Kind::value;
    value.size = 64;  // more than it has room for, and nothing it points to
    value.count = 1;
    CHECK(scaled(runtime, device, value).error() == Errc::invalid_argument);
    Operand unknown = host;
    unknown.kind = static_cast<Operand::Kind>(200);
    CHECK(scaled(runtime, device, unknown).error() == Errc::invalid_argument);
  }
  CHECK(runtime.metrics().jobs.failed > 0);
}

TEST_CASE("sizes and slices of operands saturate instead of wrapping", "[scheduler]") {
  std::vector<float> x(16, 1.0f);
  Operand operand = Operand::host_span(std::span<float>(x), Access::read_write);
  CHECK(operand.slice(4, 12).bytes().count == 48);
  operand.count = std::uint64_t{1} << 62;
  CHECK(operand.bytes().count == most);
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  const Device device = runtime.devices()[0];
  const Operand right = Operand::host_span(std::span<float>(x), Access::read_write);
  for (const Operand& wrong :
       {right.slice(0, 17), right.slice(17, 0), right.slice(most, 2), right.slice(1, most)})
    CHECK(scaled(runtime, device, wrong).error() == Errc::invalid_argument);
  const Operand scratch = Scratch<float>(16).operand(Access::read_write);
  for (const Operand& wrong : {scratch.slice(most, 2), scratch.slice(8, 9)})
    CHECK(scaled(runtime, device, wrong).error() == Errc::invalid_argument);
}
