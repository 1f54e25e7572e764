#include <wye/kernel/kernel.hpp>

#include <numeric>
#include <vector>

#include "base/internals.hpp"
#include "support/catch.hpp"

using namespace wye;

namespace {

template <class... P, class F>
Kernel<P...> on_host(F function) {
  return Kernel<P...>::make({.name = "work", .sources = {host(function)}}).value();
}

}  // namespace

TEST_CASE("a call covers its first written operand, wherever it stands", "[kernel]") {
  std::vector<float> a(7), b(11), c(13);
  const auto kernel = on_host<Read<float>, float, Write<float>, ReadWrite<float>>(
      [](Range, std::span<const float>, float, std::span<float>, std::span<float>) {});
  CHECK(kernel(a, 2.0f, b, c).items() == Extent3(11));
}

TEST_CASE("a call that writes nothing covers its first buffer", "[kernel]") {
  std::vector<float> a(7), b(11);
  const auto kernel = on_host<float, Read<float>, Read<float>>(
      [](Range, float, std::span<const float>, std::span<const float>) {});
  CHECK(kernel(1.0f, a, b).items() == Extent3(7));
}

TEST_CASE("a call without buffers covers one item", "[kernel]") {
  CHECK(on_host<float, int>([](Range, float, int) {})(1.0f, 2).items() == Extent3(1));
}

TEST_CASE("a call on nothing covers nothing", "[kernel]") {
  std::vector<float> none;
  CHECK(on_host<ReadWrite<float>>([](Range, std::span<float>) {})(none).items() == Extent3(0));
}

TEST_CASE("a call covers the requested grid", "[kernel]") {
  std::vector<float> a(12);
  const auto kernel = on_host<ReadWrite<float>>([](Range, std::span<float>) {});
  CHECK(kernel(a).over({4, 3}).items() == Extent3(4, 3, 1));
  Call call = kernel(a);
  call.over(5);
  CHECK(call.items() == Extent3(5));
}

TEST_CASE("scratch memory and slices count their elements", "[kernel]") {
  std::vector<float> a(12);
  const auto kernel =
      on_host<Read<float>, Write<float>>([](Range, std::span<const float>, std::span<float>) {});
  CHECK(kernel(a, Scratch<float>(99)).items() == Extent3(99));
  CHECK(kernel(a, Write<float>(a).slice(2, 5)).items() == Extent3(5));
}

TEST_CASE("a call knows its kernel and holds its operands in order", "[kernel]") {
  std::vector<float> a(3);
  const auto kernel = on_host<ReadWrite<float>, double>([](Range, std::span<float>, double) {});
  const Call call = kernel(a, 2.5);
  CHECK(call.name() == "work");
  CHECK(base::programs_of(call)[0] == base::program_of(kernel));
  REQUIRE(call.arguments().size() == 2);
  CHECK(call.arguments()[0].data == a.data());
  CHECK(call.arguments()[0].access == Access::read_write);
  double s = 0;
  std::memcpy(&s, call.arguments()[1].value().data(), sizeof(s));
  CHECK(s == 2.5);
}
