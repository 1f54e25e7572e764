// Graphs. Nodes without a path between them run at the same time (team.hpp), in an order that is
// drawn anew for each launch, so that a missing edge shows.
#include <algorithm>
#include <atomic>

#include "support/cuda/code.hpp"
#include "support/cuda/memory.hpp"
#include "support/cuda/order.hpp"
#include "support/cuda/stream.hpp"

namespace standin {
namespace {

/// A copy of a node's parameters.
struct GraphNode {
  enum class Kind { kernel, copy, fill, empty, event } kind = Kind::empty;
  std::vector<std::size_t> after;
  CUDA_KERNEL_NODE_PARAMS kernel{};
  std::vector<std::byte> block;
  bool in_one_piece = false;  // the layout of `extra`
  CUDA_MEMCPY3D copy{};
  CUDA_MEMSET_NODE_PARAMS fill{};
  CUevent event = nullptr;
  LaunchKind launched{};
};

/// A graph, launched or not. A node's handle is its index plus one.
struct Graph {
  static constexpr std::string_view kind = "graphs";
  std::vector<GraphNode> nodes;
  std::vector<std::vector<bool>> behind{};  // [i][j]: a path leads from node j to node i
  std::mt19937 random{};
  std::shared_ptr<Mark> last{};  // of its launches, which are serialized
};

CUresult read_kernel(GraphNode& node, const CUDA_KERNEL_NODE_PARAMS& given) {
  if ((!given.func && !given.kern) || (given.extra && (given.kernelParams || node.launched.cooperative)) ||
      given.gridDimX == 0)
    return CUDA_ERROR_INVALID_VALUE;
  node.kind = GraphNode::Kind::kernel;
  node.kernel = given;
  if (!given.func) {
    node.kernel.func = reinterpret_cast<CUfunction>(given.kern);
    if (!given.ctx) node.kernel.ctx = contexts.back();
  }
  node.block.clear();
  node.in_one_piece = given.extra != nullptr;
  if (given.kernelParams) node.block = gather(kernel_of(node.kernel.func), given.kernelParams);
  if (!given.extra) return CUDA_SUCCESS;
  if (given.extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER || given.extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE ||
      given.extra[4] != CU_LAUNCH_PARAM_END)
    return CUDA_ERROR_INVALID_VALUE;
  const auto* block = static_cast<const std::byte*>(given.extra[1]);
  node.block.assign(block, block + *static_cast<std::size_t*>(given.extra[3]));
  return CUDA_SUCCESS;
}
CUresult read_copy(GraphNode& node, const CUDA_MEMCPY3D& given) {
  if (given.srcMemoryType != CU_MEMORYTYPE_UNIFIED || given.dstMemoryType != CU_MEMORYTYPE_UNIFIED ||
      given.Height != 1 || given.Depth != 1 || !is_known(given.srcDevice, given.WidthInBytes) ||
      !is_known(given.dstDevice, given.WidthInBytes))
    return CUDA_ERROR_INVALID_VALUE;
  node.kind = GraphNode::Kind::copy;
  node.copy = given;
  return CUDA_SUCCESS;
}
CUresult read_fill(GraphNode& node, const CUDA_MEMSET_NODE_PARAMS& given) {
  if (given.elementSize != 4 || given.height != 1 || given.dst % 4 != 0 ||
      !is_known(given.dst, given.width * 4))
    return CUDA_ERROR_INVALID_VALUE;
  node.kind = GraphNode::Kind::fill;
  node.fill = given;
  return CUDA_SUCCESS;
}
thread_local Graph* last_graph = nullptr;

CUresult add_node(CUgraphNode* handle, Graph& graph, const CUgraphNode* after, std::size_t count,
                  GraphNode node) {
  auto& nodes = graph.nodes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t before = reinterpret_cast<std::uintptr_t>(after[i]) - 1;
    if (before >= nodes.size()) return CUDA_ERROR_INVALID_VALUE;
    node.after.push_back(before);
  }
  nodes.push_back(std::move(node));
  last_graph = &graph;
  *handle = reinterpret_cast<CUgraphNode>(nodes.size());
  return CUDA_SUCCESS;
}
/// Returns the node of `executable` for `handle`, if it has that kind.
GraphNode* node_of(Graph& executable, CUgraphNode handle, GraphNode::Kind kind) {
  auto& nodes = executable.nodes;
  const std::size_t i = reinterpret_cast<std::uintptr_t>(handle) - 1;
  return i < nodes.size() && nodes[i].kind == kind ? &nodes[i] : nullptr;
}

CUresult GraphCreate(CUgraph* graph, unsigned) {
  WYE_NEEDS_CONTEXT;
  create<Graph>(graph);
  return CUDA_SUCCESS;
}
CUresult GraphDestroy(CUgraph graph) { return destroy<Graph>(graph); }
CUresult GraphAddKernelNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* after, std::size_t count,
                            const CUDA_KERNEL_NODE_PARAMS* given) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Graph, its, graph);
  GraphNode node;
  if (const CUresult r = read_kernel(node, *given); r != CUDA_SUCCESS) return r;
  return add_node(handle, *its, after, count, std::move(node));
}
/// Of a node of the graph that was extended last: a handle does not identify its graph.
CUresult GraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                     const CUkernelNodeAttrValue* value) {
  WYE_NEEDS_CONTEXT;
  GraphNode* const node = last_graph ? node_of(*last_graph, handle, GraphNode::Kind::kernel) : nullptr;
  return node && read_attribute(id, *value, node->launched) &&
                 !(node->launched.cooperative && node->in_one_piece)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}
CUresult GraphAddMemcpyNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* after, std::size_t count,
                            const CUDA_MEMCPY3D* given, CUcontext) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Graph, its, graph);
  GraphNode node;
  if (const CUresult r = read_copy(node, *given); r != CUDA_SUCCESS) return r;
  return add_node(handle, *its, after, count, std::move(node));
}
CUresult GraphAddMemsetNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* after, std::size_t count,
                            const CUDA_MEMSET_NODE_PARAMS* given, CUcontext) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Graph, its, graph);
  GraphNode node;
  if (const CUresult r = read_fill(node, *given); r != CUDA_SUCCESS) return r;
  return add_node(handle, *its, after, count, std::move(node));
}
CUresult GraphAddEmptyNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* after, std::size_t count) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Graph, its, graph);
  return add_node(handle, *its, after, count, {});
}
CUresult GraphAddEventRecordNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* after,
                                 std::size_t count, CUevent event) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Graph, its, graph);
  if (!find<Event>(event)) return CUDA_ERROR_INVALID_HANDLE;
  GraphNode node;
  node.kind = GraphNode::Kind::event;
  node.event = event;
  return add_node(handle, *its, after, count, std::move(node));
}
/// Returns for each node which others are before it. Edges lead to later nodes.
std::vector<std::vector<bool>> paths(const std::vector<GraphNode>& nodes) {
  std::vector<std::vector<bool>> behind;
  for (const GraphNode& node : nodes) {
    auto& all = behind.emplace_back(nodes.size(), false);
    for (const std::size_t before : node.after) {
      all[before] = true;
      for (std::size_t i = 0; i < before; ++i) all[i] = all[i] || behind[before][i];
    }
  }
  return behind;
}
CUresult GraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Graph, its, graph);
  static std::atomic<unsigned> count{0};
  create<Graph>(executable,
                Graph{its->nodes, paths(its->nodes), std::mt19937(world().seed.load() * 104729u + ++count)});
  return CUDA_SUCCESS;
}
CUresult GraphExecDestroy(CUgraphExec executable) { return destroy<Graph>(executable); }
CUresult GraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode handle,
                                      const CUDA_KERNEL_NODE_PARAMS* given) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Graph, its, executable);
  GraphNode* const node = node_of(*its, handle, GraphNode::Kind::kernel);
  return node ? read_kernel(*node, *given) : CUDA_ERROR_INVALID_VALUE;
}
CUresult GraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode handle, const CUDA_MEMCPY3D* given,
                                      CUcontext) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Graph, its, executable);
  GraphNode* const node = node_of(*its, handle, GraphNode::Kind::copy);
  return node ? read_copy(*node, *given) : CUDA_ERROR_INVALID_VALUE;
}
CUresult GraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode handle,
                                      const CUDA_MEMSET_NODE_PARAMS* given, CUcontext) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Graph, its, executable);
  GraphNode* const node = node_of(*its, handle, GraphNode::Kind::fill);
  return node ? read_fill(*node, *given) : CUDA_ERROR_INVALID_VALUE;
}

/// A node of a launch: its place in the order, behind all that its stream is behind, and its
/// operation.
class Place final : public Sequence {
 public:
  explicit Place(const Stream& stream) : Sequence(stream.device, stream.context, stream.number) {
    moment = moment_of(stream);
  }
  void push(std::function<void()> its) override { operation = std::move(its); }
  std::function<void()> operation = [] {};
};

CUresult push_node(Place& on, GraphNode& node) {
  switch (node.kind) {
    case GraphNode::Kind::empty: return CUDA_SUCCESS;
    case GraphNode::Kind::event: {
      WYE_NEEDS(Event, its, node.event);
      if (its->context != on.context) return CUDA_ERROR_INVALID_HANDLE;
      const auto mark = std::make_shared<Mark>();
      mark->moment = on.moment;
      its->record(mark);
      on.push([mark] { mark->reach(); });
      return CUDA_SUCCESS;
    }
    case GraphNode::Kind::copy:
      return push_copy(on, node.copy.dstDevice, node.copy.srcDevice, node.copy.WidthInBytes);
    case GraphNode::Kind::fill: return push_fill(on, node.fill.dst, node.fill.value, node.fill.width);
    case GraphNode::Kind::kernel: break;
  }
  std::size_t size = node.block.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, node.block.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  const CUDA_KERNEL_NODE_PARAMS& k = node.kernel;
  // A function has a context; a kernel has that of its node.
  if (!is_function(k.func) && on.context != k.ctx) return CUDA_ERROR_INVALID_HANDLE;
  CUlaunchConfig config{};
  config.gridDimX = k.gridDimX, config.gridDimY = k.gridDimY, config.gridDimZ = k.gridDimZ;
  config.blockDimX = k.blockDimX, config.blockDimY = k.blockDimY, config.blockDimZ = k.blockDimZ;
  config.sharedMemBytes = k.sharedMemBytes;
  if (node.in_one_piece || size == 0)
    return push_launch(on, config, node.launched, k.func, nullptr, size == 0 ? nullptr : extra);
  std::vector<void*> each;
  for (const auto& [offset, bytes_of_it] : kernel_of(k.func).parameters)
    each.push_back(node.block.data() + offset);
  return push_launch(on, config, node.launched, k.func, each.data(), nullptr);
}

/// Bytes that a node writes, or may use.
struct Access {
  std::size_t node;
  CUdeviceptr begin;
  std::size_t size;
};

/// Breaks the device if a copy or a fill writes bytes that another node uses, and no path leads
/// from one to the other. A kernel uses at least the byte at each address among its parameters.
void check_paths(const Graph& executable) {
  std::vector<Access> writes, uses;
  for (std::size_t i = 0; i < executable.nodes.size(); ++i) {
    const GraphNode& node = executable.nodes[i];
    if (node.kind == GraphNode::Kind::copy) {
      writes.push_back({i, node.copy.dstDevice, node.copy.WidthInBytes});
      uses.push_back({i, node.copy.srcDevice, node.copy.WidthInBytes});
    } else if (node.kind == GraphNode::Kind::fill) {
      writes.push_back({i, node.fill.dst, node.fill.width * 4});
    } else if (node.kind == GraphNode::Kind::kernel) {
      for (const CUdeviceptr address : addresses_in(node.block)) uses.push_back({i, address, 1});
    }
  }
  uses.insert(uses.end(), writes.begin(), writes.end());
  for (const Access& write : writes)
    for (const Access& use : uses)
      if (write.node != use.node && write.begin < use.begin + use.size &&
          use.begin < write.begin + write.size && !executable.behind[write.node][use.node] &&
          !executable.behind[use.node][write.node])
        return break_device(
            CUDA_ERROR_ILLEGAL_ADDRESS,
            "a node of a graph writes memory that another node uses, and no path orders them");
}

CUresult GraphLaunch(CUgraphExec handle, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  WYE_NEEDS(Graph, its, handle);
  Graph& executable = *its;
  if (executable.last) {
    await(*on, executable.last->moment);
    on->push([mark = executable.last] { (void)wait_for(*mark); });
  }
  const auto run = std::make_shared<GraphRun>(executable.nodes.size(), executable.random());
  for (std::size_t i = 0; i < executable.nodes.size(); ++i) {
    Place place(*on);
    if (const CUresult r = push_node(place, executable.nodes[i]); r != CUDA_SUCCESS) return r;
    run->nodes[i].after = executable.nodes[i].after;
    run->nodes[i].operation = std::move(place.operation);
  }
  check_paths(executable);
  begin(*on);  // one operation, as which its nodes have noted their memory
  on->push([on, run] { on->team.run(*run); });
  executable.last = on->mark();
  return CUDA_SUCCESS;
}

WYE_ENTRY_POINTS(WYE_ENTRY(GraphCreate, 10000), WYE_ENTRY(GraphDestroy, 10000),
                 WYE_OLDER(GraphAddKernelNode, 10000), WYE_ENTRY(GraphAddKernelNode, 12000),
                 WYE_ENTRY(GraphKernelNodeSetAttribute, 11000), WYE_ENTRY(GraphAddMemcpyNode, 10000),
                 WYE_ENTRY(GraphAddMemsetNode, 10000), WYE_ENTRY(GraphAddEmptyNode, 10000),
                 WYE_ENTRY(GraphAddEventRecordNode, 11010), WYE_ENTRY(GraphInstantiateWithFlags, 11040),
                 WYE_OLDER(GraphExecKernelNodeSetParams, 10010),
                 WYE_ENTRY(GraphExecKernelNodeSetParams, 12000),
                 WYE_ENTRY(GraphExecMemcpyNodeSetParams, 10020),
                 WYE_ENTRY(GraphExecMemsetNodeSetParams, 10020), WYE_ENTRY(GraphExecDestroy, 10000),
                 WYE_ENTRY(GraphLaunch, 10000));

}  // namespace
}  // namespace standin
