#pragma once
/// Recordings that are submitted many times, as graphs of the driver.
#include <wye/base/result.hpp>

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cuda/cuda_stream.hpp"
#include "device/lane_base.hpp"
#include "device/recording.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

/// A graph, ready to be launched. Between barriers its nodes may run at the same time, which a stream's steps never do.
class CudaGraph {
 public:
  /// Makes it of the steps of `plan`: launches, and copies and fills on the device. The context is current.
  static Result<std::shared_ptr<CudaGraph>> create(std::shared_ptr<CudaDevice> device, Plan& plan);
  explicit CudaGraph(std::shared_ptr<CudaDevice> device) : device_(std::move(device)) {}
  CudaGraph(const CudaGraph&) = delete;
  ~CudaGraph();
  CUgraphExec executable() const noexcept { return executable_; }
  /// Gives node `i` what `step` has. Launches that are in flight keep what they had.
  CUresult set(std::size_t i, Plan& plan, const Step& step) const;

 private:
  Result<void> build(Plan& plan);
  CUresult add(CUgraphNode& node, std::span<const CUgraphNode> after, Plan& plan, const Step& step);
  const std::shared_ptr<CudaDevice> device_;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
  std::vector<CUgraphNode> nodes_;  // one per step
};

/// The graph of a recording, with the plan it was made from: of another revision only the nodes are set that differ. A
/// recording with copies of the host's memory or native functions is none, nor one that the driver makes no graph of: it is
/// given step by step.
/// Threads: one thread at a time.
class CudaReplay final : public device::ReplayBase {
 public:
  explicit CudaReplay(std::shared_ptr<CudaDevice> device) : ReplayBase(std::move(device)) {}
  /// That of a submission, where it has one of `device`.
  static CudaReplay* of(const device::Submission& submission, const CudaDevice& device) noexcept;
  /// Whether it is up to date.
  bool is_for(const device::Recording& recording) const noexcept {
    return graph_ && revision_ == recording.revision();
  }
  /// Brings it up to date with `recording`, which was encoded as `plan`. The context is current.
  /// Errors: device_lost.
  Result<void> update(const device::Recording& recording, Plan& plan);
  /// Null where there is none.
  const std::shared_ptr<CudaGraph>& graph() const noexcept { return graph_; }

 private:
  /// Whether the nodes that differ could be set.
  bool set_changes(Plan& plan) const;
  std::shared_ptr<CudaGraph> graph_;
  Plan plan_;
  std::uint64_t revision_ = 0;
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
