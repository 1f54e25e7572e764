#include "backend/cuda/cuda_replay.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/cuda/cuda_error.hpp"
#include "backend/cuda/cuda_executable.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cuda {
namespace {

CUDA_KERNEL_NODE_PARAMS kernel_of(const Step& step, LaunchBlock& block, CUcontext context) {
  auto kernel = launch_of<CUDA_KERNEL_NODE_PARAMS>(step.executable->artefact(), step.grid);
  kernel.kern = step.executable->kernel();
  kernel.ctx = context;
  kernel.kernelParams = block.each();
  kernel.extra = block.extra();
  return kernel;
}

CUDA_MEMCPY3D copy_of(const Step& step) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = step.from;
  copy.dstDevice = step.to;
  copy.WidthInBytes = step.bytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

CUDA_MEMSET_NODE_PARAMS fill_of(const Step& step) {
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = step.to;
  fill.value = step.pattern;
  fill.elementSize = 4;
  fill.width = step.bytes / 4;
  fill.height = 1;
  return fill;
}

bool fits_graph(const Step& step) {
  return !step.source && !step.target && !step.peer && step.kind != Step::Kind::native &&
         step.kind != Step::Kind::graph;
}

/// Returns whether the node of `was` becomes that of `is` by new arguments.
bool same_node(const Step& was, const Step& is) {
  return was.kind == is.kind && was.barrier == is.barrier && was.executable == is.executable &&
         was.event == is.event;
}

bool same_arguments(const Plan& before, const Step& was, const Plan& now, const Step& is) {
  return was.to == is.to && was.from == is.from && was.bytes == is.bytes && was.pattern == is.pattern &&
         was.grid == is.grid && was.parameter_count == is.parameter_count &&
         std::equal(before.parameters.data() + was.parameters,
                    before.parameters.data() + was.parameters + was.parameter_count,
                    now.parameters.data() + is.parameters);
}

}  // namespace

Result<std::shared_ptr<CudaGraph>> CudaGraph::create(std::shared_ptr<CudaDevice> device, Plan& plan) {
  auto graph = base::make_own<CudaGraph>(std::move(device));
  if (auto built = graph->build(plan); !built) return std::move(built).error();
  return graph;
}

Result<void> CudaGraph::build(Plan& plan) {
  const DriverTable& cu = device_->cu;
  const auto refused = [&](CUresult r, const char* api) {
    return device_->failed(
        r, api, base::text("Device '{}' cannot create a graph of a recording.", device_->info().id));
  };
  CUgraph graph = nullptr;
  if (const CUresult r = cu.GraphCreate(&graph, 0); r != CUDA_SUCCESS) return refused(r, "cuGraphCreate");
  graph_ = graph;
  // Every node depends on one node before the last barrier. If several precede it, an empty node
  // joins them.
  std::vector<CUgraphNode> since;  // nodes since the last barrier
  CUgraphNode before = nullptr;
  for (const Step& step : plan.steps) {
    if (step.barrier && !since.empty()) {
      before = since.front();
      if (since.size() > 1)
        if (const CUresult r = cu.GraphAddEmptyNode(&before, graph_, since.data(), since.size());
            r != CUDA_SUCCESS)
          return refused(r, "cuGraphAddEmptyNode");
      since.clear();
    }
    CUgraphNode node = nullptr;
    if (const CUresult r = add(node, std::span(&before, before ? 1 : 0), plan, step); r != CUDA_SUCCESS)
      return refused(r, "cuGraphAddNode");
    nodes_.push_back(node);
    since.push_back(node);
  }
  CUgraphExec executable = nullptr;
  if (const CUresult r = cu.GraphInstantiateWithFlags(&executable, graph_, 0); r != CUDA_SUCCESS)
    return refused(r, "cuGraphInstantiateWithFlags");
  executable_ = executable;
  return {};
}

CUresult CudaGraph::add(CUgraphNode& node, std::span<const CUgraphNode> after, Plan& plan, const Step& step) {
  const DriverTable& cu = device_->cu;
  if (step.kind == Step::Kind::copy) {
    const CUDA_MEMCPY3D copy = copy_of(step);
    return cu.GraphAddMemcpyNode(&node, graph_, after.data(), after.size(), &copy, device_->work_context());
  }
  if (step.kind == Step::Kind::fill) {
    const CUDA_MEMSET_NODE_PARAMS fill = fill_of(step);
    return cu.GraphAddMemsetNode(&node, graph_, after.data(), after.size(), &fill, device_->work_context());
  }
  if (step.kind == Step::Kind::stamp)
    return cu.GraphAddEventRecordNode(&node, graph_, after.data(), after.size(), step.event);
  LaunchBlock block(step.executable->artefact(), plan.parameters.data() + step.parameters);
  const CUDA_KERNEL_NODE_PARAMS kernel = kernel_of(step, block, device_->work_context());
  CUresult r = cu.GraphAddKernelNode(&node, graph_, after.data(), after.size(), &kernel);
  for (const CUlaunchAttribute& attribute : step.executable->attributes())
    if (r == CUDA_SUCCESS) r = cu.GraphKernelNodeSetAttribute(node, attribute.id, &attribute.value);
  return r;
}

CUresult CudaGraph::set(std::size_t i, Plan& plan, const Step& step) const {
  const DriverTable& cu = device_->cu;
  if (step.kind == Step::Kind::copy) {
    const CUDA_MEMCPY3D copy = copy_of(step);
    return cu.GraphExecMemcpyNodeSetParams(executable_, nodes_[i], &copy, device_->work_context());
  }
  if (step.kind == Step::Kind::fill) {
    const CUDA_MEMSET_NODE_PARAMS fill = fill_of(step);
    return cu.GraphExecMemsetNodeSetParams(executable_, nodes_[i], &fill, device_->work_context());
  }
  LaunchBlock block(step.executable->artefact(), plan.parameters.data() + step.parameters);
  const CUDA_KERNEL_NODE_PARAMS kernel = kernel_of(step, block, device_->work_context());
  return cu.GraphExecKernelNodeSetParams(executable_, nodes_[i], &kernel);
}

CudaGraph::~CudaGraph() {
  if (!graph_ || device_->lost()) return;
  const CurrentContext current(*device_);
  if (!current) return;
  if (executable_) device_->lose_if_fatal(device_->cu.GraphExecDestroy(executable_), "cuGraphExecDestroy");
  device_->lose_if_fatal(device_->cu.GraphDestroy(graph_), "cuGraphDestroy");
}

CudaReplay* CudaReplay::of(const device::Submission& submission, const CudaDevice& device) noexcept {
  device::ReplayBase* const replay = submission.replay.get();
  return replay && replay->device().get() == &device ? static_cast<CudaReplay*>(replay) : nullptr;
}

bool CudaReplay::set_changes(Plan& plan) const {
  if (!std::equal(plan_.steps.begin(), plan_.steps.end(), plan.steps.begin(), plan.steps.end(), same_node))
    return false;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (same_arguments(plan_, plan_.steps[i], plan, plan.steps[i])) continue;
    if (const CUresult r = graph_->set(i, plan, plan.steps[i]); r != CUDA_SUCCESS)
      return static_cast<CudaDevice&>(*device()).lose_if_fatal(r, "cuGraphExecNodeSetParams"), false;
  }
  return true;
}

Result<void> CudaReplay::update(const device::Recording& recording, Plan& plan) {
  CudaDevice& device = static_cast<CudaDevice&>(*this->device());
  const bool fits = !plan.steps.empty() && std::all_of(plan.steps.begin(), plan.steps.end(), fits_graph);
  if (!fits) return graph_.reset(), Result<void>();
  if (!graph_ || !set_changes(plan)) {
    // Launches in flight keep the old graph.
    graph_.reset();
    auto graph = CudaGraph::create(device.self(), plan);
    if (!graph) return device.lost() ? Result<void>(std::move(graph).error()) : Result<void>();
    graph_ = *std::move(graph);
  }
  plan_ = plan;
  revision_ = recording.revision();
  return {};
}

}  // namespace wye::cuda
