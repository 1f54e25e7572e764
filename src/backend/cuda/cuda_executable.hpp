#pragma once
/// A kernel that is loaded into a context, or a native function.
#include <wye/base/result.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "backend/cuda/cuda_device.hpp"
#include "device/artefact.hpp"
#include "device/executable.hpp"

namespace wye::inline v0::cuda {

/// Returns a launch, or a graph's node, with the grid, the block and the dynamic shared memory.
/// Other members are zero.
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
  /// Loads an artefact.
  /// Errors:  unsupported (language, architecture, limit or feature), compile_failed, not_found (no
  ///          such kernel in the code), out_of_memory, device_lost.
  static Result<std::shared_ptr<CudaExecutable>> create(std::shared_ptr<CudaDevice> device,
                                                        const device::Artefact& artefact);
  CudaExecutable(std::shared_ptr<CudaDevice> device, const device::Artefact& artefact)
      : ExecutableBase(std::move(device), artefact), bytes_{artefact.code.size()} {}
  ~CudaExecutable() override;
  Bytes bytes() const noexcept override { return bytes_; }
  bool is_native() const noexcept { return kernel_ == nullptr; }
  /// Returns the kernel, which belongs to no context: a launch takes the context of its stream,
  /// also in a partition.
  CUkernel kernel() const noexcept { return kernel_; }
  std::uint64_t resident_groups() const noexcept override { return resident_; }
  /// Returns the attributes of a launch: cluster size, cooperation.
  std::span<const CUlaunchAttribute> attributes() const noexcept { return {attributes_, attribute_count_}; }
  /// Checks a grid against the cluster size and the limit of cooperative launches.
  /// Errors:  unsupported.
  Result<void> check_grid(Extent3 groups) const;

 private:
  Result<void> load_library();
  /// Loads the function into the context. The `CreationContext` is current.
  Result<void> load_function();
  Error not_loaded(CUresult result, const char* api);
  Result<void> check_limits();
  /// Sets the options of the kernel, and fills the attributes of its launches.
  Result<void> prepare_launches();
  /// Returns the cluster size that the code requires; {0} if it requires none.
  Result<Extent3> required_cluster();
  Result<void> prepare_clusters();
  Result<void> count_resident();
  CudaDevice& cuda() const noexcept { return static_cast<CudaDevice&>(*device()); }
  Bytes bytes_;
  CUlibrary library_ = nullptr;
  /// The log of the PTX compiler, and the options that name it. A driver that loads lazily may
  /// write it at any time, so it lives as long as the library.
  struct Log {
    std::array<char, 4096> text{};
    CUjit_option options[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[2] = {text.data(), reinterpret_cast<void*>(text.size() - 1)};
  };
  std::unique_ptr<Log> log_;
  CUkernel kernel_ = nullptr;
  CUfunction function_ = nullptr;  // of the kernel, in the context of work: loaded, and asked for its limits
  CUlaunchAttribute attributes_[2] = {};
  std::size_t attribute_count_ = 0;
  Extent3 cluster_;
  std::uint64_t resident_ = 0;
};

}  // namespace wye::cuda
