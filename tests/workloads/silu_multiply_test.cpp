#include <wye/workloads/silu_multiply.hpp>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

template <class T>
std::vector<T> gated(const std::vector<T>& gate, const std::vector<T>& up, const std::string& leg) {
  auto result = poison<T>(gate.size());
  run(workloads::silu_multiply(gate, up, result), leg);
  return result;
}

template <class T>
std::string differing_gates(std::span<const T> gate, std::span<const T> up, std::span<const T> result) {
  const auto exact = reference::silu_multiply(gate, up);
  std::vector<float> found;
  for (const T element : result) found.push_back(static_cast<float>(element));
  return difference(found, exact, [&](std::size_t place) {
    return with_rounding<T>(3e-5 * std::abs(exact[place]), exact[place]);
  });
}

template <class T>
std::string silu_difference(const std::vector<T>& gate, const std::vector<T>& up, const std::string& leg) {
  return differing_gates<T>(gate, up, gated(gate, up, leg));
}

}  // namespace

TEST_CASE("silu_multiply multiplies vectors of every type and length", "[workloads][silu_multiply]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const std::size_t n : {0u, 1u, 2u, 3u, 255u, 256u, 1025u, 65535u, 65536u, 65537u, 200001u}) {
        INFO(leg << ", " << name(element_type<T>()) << ", " << n << " elements");
        CHECK(silu_difference(of<T>(numbers(n, 1, -20, 20)), of<T>(numbers(n, 2, -3, 3)), leg) == "");
      }
    });
}

TEST_CASE("silu_multiply is right for random lengths", "[workloads][silu_multiply]") {
  std::mt19937 random(19);
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::size_t n = random() % (i % 8 == 0 ? 5000 : 100);
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    for_float_type(i, [&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()) << ", " << n << " elements, seed " << seed);
      CHECK(silu_difference(of<T>(numbers(n, seed, -90, 90)), elements<T>(n, seed + 1), leg) == "");
    });
  }
}

TEST_CASE("silu_multiply takes all gates of 16 bits", "[workloads][silu_multiply]") {
  std::vector<half> halves;
  std::vector<bfloat16> bfloats;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    halves.push_back(half::from_bits(static_cast<std::uint16_t>(bits)));
    bfloats.push_back(bfloat16::from_bits(static_cast<std::uint16_t>(bits)));
  }
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(silu_difference(halves, std::vector<half>(65536, half(0.75f)), leg) == "");
    CHECK(silu_difference(bfloats, std::vector<bfloat16>(65536, bfloat16(0.75f)), leg) == "");
  }
}

TEST_CASE("silu_multiply propagates NaN and infinities, and gates far below zero are -0",
          "[workloads][silu_multiply]") {
  const std::vector<float> gates{undefined, 1,     infinity, infinity, -infinity, -infinity, -infinity,
                                 -1000,     -1000, 0,        0,        -1,        -87.5f,    -1e30f},
      ups{1, undefined, 2, 0, 2, -2, infinity, 2, infinity, infinity, 2, infinity, 3, -infinity};
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const auto gate = of<T>(gates), up = of<T>(ups);
      const auto result = floats(gated(gate, up, leg));
      CHECK(differing_gates<T>(gate, up, of<T>(result)) == "");
      CHECK(std::signbit(result[4]));  // -0 * 2
      CHECK_FALSE(std::signbit(result[5]));
      CHECK(std::isnan(result[6]));
      CHECK(std::signbit(result[12]));
    });
}

TEST_CASE("silu_multiply changes no element beside arrays that begin at odd elements",
          "[workloads][silu_multiply]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const std::size_t count : {1u, 2u, 67u})
        for (const std::size_t begin : {0u, 1u, 2u, 3u}) {
          INFO(leg << ", " << name(element_type<T>()) << ", " << count << " elements from element " << begin
                   << " on");
          const auto gates = elements<T>(count + 6, 11), ups = elements<T>(count + 6, 12);
          const Array<T> gate = the_runtime().array(gates), up = the_runtime().array(ups),
                         result = the_runtime().array(gates);
          run(workloads::silu_multiply(Read<T>(gate).slice(3 - begin, count), Read<T>(up).slice(1, count),
                                       Write<T>(result).slice(begin, count)),
              leg);
          const auto after = result.read();
          REQUIRE(after);
          CHECK(differing_gates<T>(std::span(gates).subspan(3 - begin, count),
                                   std::span(ups).subspan(1, count),
                                   after->span().subspan(begin, count)) == "");
          for (std::size_t i = 0; i < gates.size(); ++i)
            if (i < begin || i >= begin + count) CHECK(std::memcmp(&(*after)[i], &gates[i], sizeof(T)) == 0);
        }
    });
}

TEST_CASE("silu_multiply refuses a result that overlaps gate", "[workloads][silu_multiply]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    std::vector<float> gate(1000, 1.0f), up(999);
    auto job = workloads::silu_multiply(std::span(gate).first(999), up, std::span(gate).last(999));
    const auto done = the_runtime().submit(std::move(job), {.fallback = Fallback::forbid, .on = leg}).wait();
    REQUIRE_FALSE(done);
    CHECK(done.error() == Errc::invalid_argument);
  }
}

TEST_CASE("silu_multiply refuses vectors of different lengths", "[workloads][silu_multiply]") {
  std::vector<float> gate(10), other(9), result(10);
  CHECK(refusal(workloads::silu_multiply(gate, other, result)) ==
        "Vector up (9 elements) of workload 'silu_multiply' is not as long as gate (10 elements).");
  CHECK(refusal(workloads::silu_multiply(gate, gate, other)) ==
        "Vector result (9 elements) of workload 'silu_multiply' is not as long as gate (10 elements).");
}
