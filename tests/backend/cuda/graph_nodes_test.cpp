// The stand-in runs nodes of a graph at the same time if no path orders them, and finds copies and
// fills that such nodes disturb. A race is a report of ThreadSanitizer, whatever the timing:
// tests/support/cuda/tests plants one.
#include <filesystem>
#include <iterator>

#include "backend/cuda/rig.hpp"
#include "support/await.hpp"
#include "support/cuda/planted_ptx.hpp"

namespace wye::test {
namespace {

/// A graph that is built node by node, and memory for its nodes.
class NodeRig : public RawDriver {
 public:
  NodeRig() {
    void* pinned = nullptr;
    REQUIRE(cu.MemHostAlloc(&pinned, 4 * words, 0) == CUDA_SUCCESS);
    memory = static_cast<Word*>(pinned);
    std::fill_n(memory, words, 0u);
    REQUIRE(cu.GraphCreate(&graph_, 0) == CUDA_SUCCESS);
    REQUIRE(cu.LibraryLoadData(&library_, standin::planted_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
            CUDA_SUCCESS);
  }
  ~NodeRig() {
    cu.GraphDestroy(graph_);
    cu.LibraryUnload(library_);
    cu.MemFreeHost(memory);
  }
  CUdeviceptr address(std::size_t word) const { return reinterpret_cast<CUdeviceptr>(memory + word); }
  CUgraphNode fill(std::size_t word, std::size_t count, Word value, std::vector<CUgraphNode> after = {}) {
    CUDA_MEMSET_NODE_PARAMS node{};
    node.dst = address(word);
    node.elementSize = 4;
    node.width = count;
    node.height = 1;
    node.value = value;
    CUgraphNode made = nullptr;
    REQUIRE(cu.GraphAddMemsetNode(&made, graph_, after.data(), after.size(), &node, context) == CUDA_SUCCESS);
    return made;
  }
  CUgraphNode copy(std::size_t from, std::size_t to, std::size_t count, std::vector<CUgraphNode> after = {}) {
    CUDA_MEMCPY3D node{};
    node.srcMemoryType = node.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    node.srcDevice = address(from);
    node.dstDevice = address(to);
    node.WidthInBytes = 4 * count;
    node.Height = node.Depth = 1;
    CUgraphNode made = nullptr;
    REQUIRE(cu.GraphAddMemcpyNode(&made, graph_, after.data(), after.size(), &node, context) == CUDA_SUCCESS);
    return made;
  }
  CUgraphNode kernel(const char* name, CUdeviceptr to, unsigned threads = 1,
                     std::vector<CUgraphNode> after = {}) {
    CUkernel code = nullptr;
    REQUIRE(cu.LibraryGetKernel(&code, library_, name) == CUDA_SUCCESS);
    unsigned patience = 1u << 30;
    void* parameters[] = {&to, &patience};
    CUDA_KERNEL_NODE_PARAMS node{};
    node.kern = code;
    node.ctx = context;
    node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1;
    node.blockDimX = threads;
    node.kernelParams = parameters;
    CUgraphNode made = nullptr;
    REQUIRE(cu.GraphAddKernelNode(&made, graph_, after.data(), after.size(), &node) == CUDA_SUCCESS);
    return made;
  }
  /// Launches the graph several times, and waits.
  CUresult run(int launches = 1) {
    CUgraphExec executable = nullptr;
    REQUIRE(cu.GraphInstantiateWithFlags(&executable, graph_, 0) == CUDA_SUCCESS);
    for (int i = 0; i < launches; ++i) (void)cu.GraphLaunch(executable, stream);
    const CUresult ended = cu.StreamSynchronize(stream);
    (void)cu.GraphExecDestroy(executable);
    return ended;
  }

  static constexpr std::size_t words = 4096;
  Word* memory = nullptr;

 private:
  CUgraph graph_ = nullptr;
  CUlibrary library_ = nullptr;
};

std::ptrdiff_t threads_of_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

}  // namespace

TEST_CASE("kernels of a graph that wait for each other run at the same time, and their threads end",
          "[cuda]") {
  const StandIn stand_in;
  const std::ptrdiff_t before = threads_of_process();
  {
    NodeRig rig;
    const CUgraphNode begin = rig.fill(0, 2, 0);
    const CUgraphNode one = rig.kernel("meet", rig.address(0), 1, {begin}),
                      other = rig.kernel("meet", rig.address(0), 1, {begin});
    rig.copy(1, 2, 1, {one, other});
    REQUIRE(rig.run(20) == CUDA_SUCCESS);
    CHECK(rig.memory[2] == 2);
    CHECK(threads_of_process() > before + 1);
  }
  // A thread that has been joined may be listed for a moment.
  CHECK(test::becomes_true([&] { return threads_of_process() <= before; }));
}

TEST_CASE("a graph of many nodes that fork and join gives the same result each time", "[cuda]") {
  const StandIn stand_in;
  NodeRig rig;
  constexpr std::size_t wide = 12, deep = 8;
  std::vector<CUgraphNode> row(wide);
  for (std::size_t x = 0; x < wide; ++x) row[x] = rig.fill(x, 1, static_cast<Word>(x));
  for (std::size_t y = 1; y < deep; ++y) {
    std::vector<CUgraphNode> next(wide);
    for (std::size_t x = 0; x < wide; ++x)
      next[x] = rig.copy((y - 1) * wide + (x + 1) % wide, y * wide + x, 1, {row[(x + 1) % wide]});
    row = next;
  }
  REQUIRE(rig.run(20) == CUDA_SUCCESS);
  for (std::size_t x = 0; x < wide; ++x) CHECK(rig.memory[(deep - 1) * wide + x] == (x + deep - 1) % wide);
}

TEST_CASE("a kernel of a graph that fails beside others ends the launch with its error", "[cuda]") {
  const StandIn stand_in;
  NodeRig rig;
  const CUgraphNode begin = rig.fill(0, 2, 0);
  rig.kernel("absent_from_barrier", rig.address(1000), 64, {begin});
  const CUgraphNode beside = rig.fill(2000, 2, 7, {begin});
  rig.copy(2000, 3000, 2, {beside});
  CHECK(rig.run(3) == CUDA_ERROR_LAUNCH_FAILED);
}

TEST_CASE("the stand-in finds a copy or a fill that no path orders with another use of its memory",
          "[cuda][no_tsan]") {
  const StandIn stand_in;
  NodeRig rig;
  const CUgraphNode first = rig.fill(0, 100, 1);
  SECTION("two fills of the same words") {
    rig.fill(99, 100, 2);
    CHECK(rig.run() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("fills of neighbours") {
    rig.fill(100, 100, 2);
    CHECK(rig.run() == CUDA_SUCCESS);
  }
  SECTION("a copy of what a fill writes") {
    rig.copy(50, 200, 100);
    CHECK(rig.run() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("a kernel that uses what a fill writes") {
    rig.kernel("absent_from_barrier", rig.address(10), 1);
    CHECK(rig.run() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("a path of two edges orders them, in one place of the graph") {
    const CUgraphNode between = rig.fill(300, 1, 3, {first});
    rig.copy(50, 200, 100, {between});
    CHECK(rig.run() == CUDA_SUCCESS);
    rig.copy(60, 400, 10);
    CHECK(rig.run() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("two copies read the same words") {
    rig.copy(1000, 200, 100);
    rig.copy(1000, 400, 100);
    CHECK(rig.run() == CUDA_SUCCESS);
  }
}

}  // namespace wye::test
