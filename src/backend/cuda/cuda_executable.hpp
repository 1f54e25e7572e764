#pragma once
/// A kernel that a context has loaded, or a function of the host that enqueues.
#include <wye/base/result.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "backend/cuda/cuda_device.hpp"
#include "device/artefact.hpp"
#include "device/executable.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

/// A launch of the driver's, or a graph's node, with what both say of sizes; the rest is zero.
template <class Launch>
Launch launch_of(const device::Artefact& artefact, Extent3 groups) {
  const auto narrow = [](std::uint64_t n) { return static_cast<unsigned>(n); };
  Launch launch{};
  launch.gridDimX = narrow(groups.x);
  launch.gridDimY = narrow(groups.y);
  launch.gridDimZ = narrow(groups.z);
  launch.blockDimX = narrow(artefact.workgroup.x);
  launch.blockDimY = narrow(artefact.workgroup.y);
  launch.blockDimZ = narrow(artefact.workgroup.z);
  launch.sharedMemBytes = artefact.dynamic_shared;
  return launch;
}

/// Threads: thread-safe.
class CudaExecutable final : public device::ExecutableBase {
 public:
  /// Errors: unsupported (language, architecture, limit or feature), compile_failed, not_found (no such kernel in
  ///         the code), out_of_memory, device_lost.
  static Result<std::shared_ptr<CudaExecutable>> create(std::shared_ptr<CudaDevice> device,
                                                        const device::Artefact& artefact);
  CudaExecutable(std::shared_ptr<CudaDevice> device, const device::Artefact& artefact)
      : ExecutableBase(std::move(device), artefact), bytes_{artefact.code.size()} {}
  ~CudaExecutable() override;
  Bytes bytes() const noexcept override { return bytes_; }
  bool is_native() const noexcept { return function_ == nullptr; }
  CUfunction function() const noexcept { return function_; }
  std::uint64_t resident_groups() const noexcept override { return resident_; }
  /// What a launch says beside its sizes; empty where it says nothing.
  std::span<const CUlaunchAttribute> attributes() const noexcept { return {attributes_, attribute_count_}; }
  /// Errors: unsupported: such a grid cannot be launched.
  Result<void> check_grid(Extent3 groups) const;

 private:
  Result<void> load_library();
  /// Takes the kernel into the context, where launches find it. The making context is current.
  Result<void> load_function();
  Error not_loaded(CUresult result, const char* api);
  Result<void> check_limits();
  /// Asks what launches may be, and makes the attributes that they have.
  Result<void> prepare_launches();
  /// The cluster that the code requires, {0} where it does not.
  Result<Extent3> required_cluster();
  Result<void> prepare_clusters();
  Result<void> count_resident();
  CudaDevice& cuda() const noexcept { return static_cast<CudaDevice&>(*device()); }
  Bytes bytes_;
  CUlibrary library_ = nullptr;
  /// What is wrong with PTX, and the options that say where it goes. A driver that loads lazily compiles it when it likes, and
  /// writes it then: it lasts as the library does.
  struct Log {
    std::array<char, 4096> text{};
    CUjit_option options[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[2] = {text.data(), reinterpret_cast<void*>(text.size() - 1)};
  };
  std::unique_ptr<Log> log_;
  CUfunction function_ = nullptr;
  CUlaunchAttribute attributes_[2] = {};
  std::size_t attribute_count_ = 0;
  Extent3 cluster_;
  std::uint64_t resident_ = 0;
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
