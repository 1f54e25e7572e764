// The engine of the stand-in: correct kernels compute the right results on the host, in every order
// of their threads, and the engine reports each mistake that it can detect. planted.cpp has
// mistakes that only sanitizers detect.
#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "support/catch.hpp"
#include "support/cuda/engine.hpp"

namespace wye::test {
namespace {

/// The kernels of planted.cu.
const twin::Kernel& planted(std::string_view name) {
  static const twin::Kernel* const first = [] {
    void* library = ::dlopen(WYE_TWINS "/cuda_planted.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(::dlerror());
    return reinterpret_cast<const twin::Kernel* (*)()>(::dlsym(library, "wye_twins"))();
  }();
  for (const twin::Kernel* kernel = first; kernel; kernel = kernel->next)
    if (kernel->name == name) return *kernel;
  throw std::runtime_error("there is no such kernel");
}

struct Shape {
  unsigned blocks = 1, threads = 64;
  std::size_t shared = 0;
};

/// Runs a kernel with pointers and at most one number as parameters. Returns the error.
template <class... T>
std::string run(std::string_view name, Shape shape, long order, T... parameters) {
  std::vector<std::byte> block;
  const auto put = [&](auto value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    block.insert(block.end(), bytes, bytes + sizeof(value));
  };
  (put(parameters), ...);
  return twin::run({&planted(name), block.data(), {shape.blocks}, {shape.threads}, shape.shared, order}, 0,
                   1);
}

constexpr long orders[] = {0, -1, 1, 2, 3};

std::vector<float> result_of(std::string_view name, Shape shape, long order) {
  std::vector<float> out(std::size_t{shape.blocks} * shape.threads);
  const std::string wrong = run(name, shape, order, out.data());
  INFO(wrong);
  CHECK(wrong.empty());
  return out;
}

}  // namespace

TEST_CASE("a barrier that not all threads reach is reported with its line", "[cuda_stand_in]") {
  std::vector<float> out(256);
  CHECK(run("different_barriers", {1, 256}, 0, out.data()) ==
        "Threads of block (0,0,0) wait at different barriers: thread 0 at line 6, thread 100 at line 8.");
  CHECK(run("absent_from_barrier", {1, 64}, 0, out.data()) ==
        "Threads of block (0,0,0) wait at a barrier (thread 0 at line 14) that thread 40 never comes to.");
  CHECK(run("with_barrier", {1, 256}, 0, out.data()).empty());  // and the engine still works
}

TEST_CASE("lanes of a mask that do not reach the barrier are reported with line and mask",
          "[cuda_stand_in]") {
  std::vector<float> out(64);
  CHECK(
      run("absent_lanes", {1, 64}, 0, out.data()) ==
      "Lane 0 of warp 0 of block (0,0,0) waits at line 21 for lanes that never come: its mask is 0xffffffff, "
      "absent are 0xffff0000.");
  CHECK(run("outside_mask", {1, 32}, 0, out.data()) ==
        "Lane 16 of warp 0 of block (0,0,0) gives a mask (0x0000ffff) at line 27 that it is not in.");
}

TEST_CASE("a missing barrier changes the result in another order of threads", "[cuda_stand_in][no_tsan]") {
  std::vector<float> wanted(256);
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = 1.0f + static_cast<float>(i ^ 1);
  for (const long order : orders) {
    CHECK(result_of("with_barrier", {1, 256}, order) == wanted);
    CHECK(result_of("with_syncwarp", {1, 256, 1024}, order) == wanted);
  }
  for (const char* wrong : {"missing_barrier", "missing_syncwarp"}) {
    const std::vector<float> forward = result_of(wrong, {1, 256, 1024}, 0),
                             backward = result_of(wrong, {1, 256, 1024}, -1);
    CHECK(std::memcmp(forward.data(), backward.data(), 1024) != 0);
  }
}

TEST_CASE("a copy to shared memory is complete after a wait for its group, for others after a barrier",
          "[cuda_stand_in][no_tsan]") {
  for (const long order : orders)
    for (const char* name : {"copies", "copies_without_wait", "copies_with_early_wait",
                             "copies_with_late_wait", "copies_without_barrier"}) {
      INFO(name << ", order " << order);
      std::vector<float> out(1024);
      std::iota(out.begin(), out.end(), 1.0f);
      CHECK(run(name, {1, 256}, order, out.data()).empty());
      bool right = true;
      for (std::size_t i = 0; i < 256; ++i) right = right && out[768 + i] == out[256 + (i ^ 33)];
      CHECK(right == (name == std::string_view("copies")));
    }
}

TEST_CASE("a copy to shared memory fills up with zeros, and is NaN if its size or a place is wrong",
          "[cuda_stand_in]") {
  alignas(16) unsigned out[32] = {0x01020304, 0x11121314, 0x21222324, 0x31323334};
  CHECK(run("sizes_of_copies", {1, 24}, 0, &out[0]).empty());
  const unsigned none = ~0u;
  const unsigned wanted[24] = {out[0], out[1], out[2], out[3], out[0], 0x00121314, 0,    0,
                               0,      0,      0,      0,      none,   none,       none, none,
                               none,   none,   none,   none,   none,   none,       none, none};
  CHECK(std::equal(std::begin(wanted), std::end(wanted), out + 8));
}

TEST_CASE("unwritten shared memory is NaN, in every block", "[cuda_stand_in][no_tsan]") {
  for (const long order : orders)
    for (const float value : result_of("unset_shared", {2, 64, 256}, order)) CHECK(std::isnan(value));
}

TEST_CASE("shuffles and votes of a warp return the values that CUDA defines", "[cuda_stand_in]") {
  constexpr unsigned threads = 96, rows = 15, warps = threads / 32;
  for (const long order : orders) {
    std::vector<unsigned> out(std::size_t{rows} * threads, ~0u);
    REQUIRE(run("warp_operations", {1, threads}, order, out.data()).empty());
    for (unsigned warp = 0; warp < warps; ++warp)
      for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned base = 100 * warp, value = base + lane;
        unsigned sum = 0, lower = 0;
        for (unsigned i = 0; i < 32; ++i) sum += base + i;
        for (unsigned i = 0; i < 16; ++i) lower += base + i;
        const unsigned wanted[rows] = {base + 5,
                                       base + lane / 8 * 8 + (lane + 1) % 8,
                                       lane < 3 ? value : value - 3,
                                       lane % 16 < 1 ? value : value - 1,
                                       lane + 3 > 31 ? value : value + 3,
                                       lane % 16 + 1 > 15 ? value : value + 1,
                                       base + (lane ^ 21),
                                       base + (lane ^ 3),
                                       0x49249249,
                                       1,
                                       0,
                                       sum,
                                       base + 31,
                                       lane < 16 ? lower : base + (lane ^ 1),
                                       base + 7};
        for (unsigned row = 0; row < rows; ++row) {
          INFO("order " << order << ", row " << row << ", warp " << warp << ", lane " << lane);
          CHECK(out[(row * warps + warp) * 32 + lane] == wanted[row]);
        }
      }
  }
}

TEST_CASE("a block of any size sums by shuffles and dynamic shared memory", "[cuda_stand_in]") {
  for (const unsigned threads : {32u, 64u, 256u, 1024u})
    for (const long order : orders) {
      constexpr unsigned count = 3000;
      std::vector<float> from(count), to((count + threads - 1) / threads), wanted(to.size());
      std::iota(from.begin(), from.end(), 1.0f);
      for (unsigned i = 0; i < count; ++i) wanted[i / threads] += from[i];
      REQUIRE(run("block_sum", {static_cast<unsigned>(to.size()), threads, threads / 8}, order, from.data(),
                  to.data(), count)
                  .empty());
      CHECK(to == wanted);  // whole numbers: exact
    }
}

TEST_CASE("the last block reads the results of all others", "[cuda_stand_in]") {
  for (const long order : orders) {
    std::vector<float> out(65);
    unsigned count = 0;
    REQUIRE(run("last_block", {64, 32}, order, out.data(), &count).empty());
    CHECK(out[0] == 64 * 65 / 2);
  }
}

TEST_CASE("atomic operations of all threads lose no update", "[cuda_stand_in]") {
  for (const long order : orders) {
    int i[3] = {0, -1000, 1000};
    unsigned u[4] = {};
    unsigned long long l = 0;
    float f = 0;
    double d = 0;
    REQUIRE(run("atomics", {4, 64}, order, i, u, &l, &f, &d).empty());
    CHECK((i[0] == 255 * 128 && i[1] == 248 && i[2] == -255));
    CHECK((u[0] == 256 && u[1] == 256 % 10 && u[2] == u[3] + 1));
    CHECK((l == 256ull << 33 && f == 128 && d == 64));
  }
}

TEST_CASE("CUDA's math functions equal those of the host", "[cuda_stand_in]") {
  struct alignas(16) Four {
    float x, y, z, w;
  };
  std::vector<Four> in(64), out(64);
  std::vector<unsigned> bits(64);
  for (std::size_t i = 0; i < 64; ++i) {
    const auto x = static_cast<float>(i);
    in[i] = {x + 1, x / 16, x - 3, 2 * x - 50};
  }
  REQUIRE(run("arithmetic", {1, 64}, 0, in.data(), out.data(), bits.data()).empty());
  for (unsigned i = 0; i < 64; ++i) {
    const Four& v = in[i];
    CHECK(out[i].x == 1 / std::sqrt(v.x));
    CHECK(out[i].y == std::exp(v.y));
    CHECK(out[i].z == std::fma(v.x, v.y, v.z));
    CHECK(out[i].w == std::max(std::min(v.z, v.w), std::min(v.x, v.y)));
    CHECK(bits[i] ==
          static_cast<unsigned>(std::popcount(std::bit_cast<unsigned>(v.x)) + std::countl_zero(i)) + i / 2 +
              std::max(3u, i));
  }
}

}  // namespace wye::test
