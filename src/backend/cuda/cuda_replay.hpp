#pragma once
/// Replays recordings as graphs of the driver.
#include <wye/base/result.hpp>

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cuda/cuda_stream.hpp"
#include "device/lane_base.hpp"
#include "device/recording.hpp"

namespace wye::inline v0::cuda {

/// An instantiated graph. Its nodes may run at the same time between barriers; the steps of a
/// stream never do.
class CudaGraph {
 public:
  /// Creates a graph of the steps of `plan`: launches, and copies and fills on the device. The
  /// context is current.
  static Result<std::shared_ptr<CudaGraph>> create(std::shared_ptr<CudaDevice> device, Plan& plan);
  explicit CudaGraph(std::shared_ptr<CudaDevice> device) : device_(std::move(device)) {}
  CudaGraph(const CudaGraph&) = delete;
  ~CudaGraph();
  CUgraphExec executable() const noexcept { return executable_; }
  /// Sets the arguments of node `i` to those of `step`. Launches in flight keep their arguments.
  CUresult set(std::size_t i, Plan& plan, const Step& step) const;

 private:
  Result<void> build(Plan& plan);
  CUresult add(CUgraphNode& node, std::span<const CUgraphNode> after, Plan& plan, const Step& step);
  const std::shared_ptr<CudaDevice> device_;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
  std::vector<CUgraphNode> nodes_;  // one per step
};

/// The graph of a recording, with its plan. A new revision sets only the nodes that differ. A
/// recording with transfers from or to the host, or with native functions, has no graph, and is
/// enqueued step by step. So is a recording that the driver refuses.
/// Threads: one thread at a time.
class CudaReplay final : public device::ReplayBase {
 public:
  explicit CudaReplay(std::shared_ptr<CudaDevice> device) : ReplayBase(std::move(device)) {}
  /// Returns the replay of a submission if it belongs to `device`, otherwise null.
  static CudaReplay* of(const device::Submission& submission, const CudaDevice& device) noexcept;
  /// Returns whether the graph is up to date.
  bool is_for(const device::Recording& recording) const noexcept {
    return graph_ && revision_ == recording.revision();
  }
  /// Updates the graph to `recording`, which was encoded as `plan`. The context is current.
  /// Errors: device_lost.
  Result<void> update(const device::Recording& recording, Plan& plan);
  /// Returns the graph, or null.
  const std::shared_ptr<CudaGraph>& graph() const noexcept { return graph_; }

 private:
  /// Sets the nodes that differ. Returns whether that was possible.
  bool set_changes(Plan& plan) const;
  std::shared_ptr<CudaGraph> graph_;
  Plan plan_;
  std::uint64_t revision_ = 0;
};

}  // namespace wye::cuda
