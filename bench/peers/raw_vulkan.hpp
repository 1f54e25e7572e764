#pragma once
// The same work in hand-written Vulkan, as an expert would write it for this purpose only.
#include <cstdint>
#include <memory>
#include <string>

namespace wye_bench {

// One device, one queue, one storage buffer at set 0 binding 0 in mapped memory, one push constant,
// one kernel.
class RawVulkan {
 public:
  // Null where there is no Vulkan device, or something failed.
  static std::unique_ptr<RawVulkan> open(const std::string& glsl, std::uint64_t buffer_bytes);
  // Another one on the same device and queue, for another thread; this one must not be one of those
  // itself.
  std::unique_ptr<RawVulkan> beside(const std::string& glsl, std::uint64_t buffer_bytes) const;
  ~RawVulkan();

  // Records `dispatches` dispatches of one workgroup, each after a barrier for the writes of the
  // previous one.
  void record(std::uint32_t dispatches, float push_constant);
  // Makes the pipeline again, for a host that keeps none; earlier recordings use the old one.
  bool make_pipeline_again();
  // Submits the recording and waits for its timeline value.
  bool submit_and_wait();
  float* data();

 private:
  struct State;
  explicit RawVulkan(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace wye_bench
