#pragma once
/// Implements kernels: their sources, and the artefacts built from them.
#include <wye/base/result.hpp>
#include <wye/kernel/source.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/provider.hpp"
#include "kernel/compilers/glsl.hpp"
#include "kernel/compilers/nvrtc.hpp"
#include "kernel/compilers/slang.hpp"
#include "kernel/key.hpp"
#include "kernel/reflect/cuda_code.hpp"
#include "kernel/source.hpp"

namespace wye::inline v0::kernel {

/// Implements `device::Program` with the sources of a kernel.
/// Threads: thread-safe.
class KernelProgram final : public device::Program {
 public:
  /// Errors: those of `AnyKernel::make`.
  static Result<std::shared_ptr<const KernelProgram>> make(std::string name, ParamSchema schema,
                                                           const std::vector<AnySource>& sources,
                                                           const std::vector<std::size_t>& batchable = {},
                                                           std::vector<AdapterType> adapters = {},
                                                           Features features = {},
                                                           bool has_short_loops = false);
  ~KernelProgram() override;

  std::string_view name() const noexcept override { return name_; }
  const std::string& name_string() const noexcept { return name_; }
  const ParamSchema& schema() const noexcept override { return schema_; }
  std::uint64_t id() const noexcept override { return id_; }
  const device::ProgramDigests& digests() const noexcept override { return digests_; }
  std::uint32_t batchable() const noexcept override { return batchable_; }
  bool has_short_loops() const noexcept override { return has_short_loops_; }
  bool names_adapters() const noexcept override { return !adapters_.empty(); }
  bool runs_on(const device::DeviceBase& device) const override;
  std::optional<Error> refusal(const device::DeviceBase& device) const override;
  bool passes_over(const device::DeviceBase& device) const override;
  std::optional<Error> passed_over(const device::DeviceBase& device) const override;
  KernelCode code(const device::DeviceBase& device) const override;
  bool is_native(const device::DeviceBase& device) const noexcept override;
  Result<Digest> key(const device::DeviceBase& device) const override;
  bool storable(const device::DeviceBase& device) const noexcept override;
  Result<device::Artefact> build(const device::DeviceBase& device) const override;

  /// Returns the languages of its sources: "Glsl, host".
  std::string languages() const;

  /// Returns whether any source is from a file.
  bool is_from_files() const noexcept { return !given_.empty(); }
  /// Makes the same kernel from the current contents of its files.
  /// Errors: those of `make` and of reading the files.
  Result<std::shared_ptr<const KernelProgram>> read_again() const;
  /// Returns the files that the kernel depends on.
  std::vector<std::string> files() const;
  /// Replaces this program with `next`, which must not be replaced itself. Earlier replacements
  /// live as long as this program.
  void replace(std::shared_ptr<const KernelProgram> next) const;

 private:
  /// One source. `ready` is set at once if the source needs no compiler.
  struct Prepared {
    std::string_view language;  ///< "Glsl", "Slang", "SpirV", "CudaCpp", "Ptx", "Cubin", "host", "native"
    Digest key;                 ///< without the target, if the source is compiled for a target
    std::shared_ptr<const SourceData> data = {};  ///< null if the source is not compiled
    std::shared_ptr<const std::vector<SourceText>> texts = {};
    std::vector<device::Specialization> constants = {};
    std::shared_ptr<device::Artefact> ready = {};
    Architecture architecture = {};  ///< of Ptx and Cubin
    std::uint64_t driver = 0;        ///< of Ptx: the oldest driver that takes it (`oldest_driver`)
    std::string backend = {};        ///< of native
    std::string lacking = {};        ///< why it cannot be compiled here; empty if it can
  };
  /// A conversion of a source into a language that a device accepts.
  struct Conversion;
  static const Conversion conversions[11];
  struct Choice {
    const Prepared* source = nullptr;
    std::optional<CudaTarget> target = {};  ///< set if the source is compiled for a target
  };
  /// Whether to call probes of native functions that the device has not called yet. A probe may
  /// take long.
  enum class Probe : bool { no, yes };
  /// The source chosen for one device. It does not change during the life of the device.
  struct Route {
    device::DeviceRef device = {};
    Choice choice = {};
    std::optional<Error> refusal = {};
    std::unique_ptr<Route> next = {};
  };
  /// The CUDA C++ compiler after its first use, and the headers that it adds to the source.
  struct Cuda {
    Result<std::shared_ptr<const CudaCompiler>> compiler;
    ToolkitHeaders headers;
    std::string build_id;  ///< identifies compiler and headers: a short digest
  };

  KernelProgram(std::string name, ParamSchema schema);
  /// Returns the parts of a key that every source has.
  Ingredients ingredients(std::string_view language, std::span<const std::byte> source,
                          std::string_view entry, std::optional<Extent3> tile) const;
  Result<void> add(const AnySource& source);
  Result<void> add_glsl(const std::shared_ptr<const SourceData>& data, const Glsl& source);
  Result<void> add_slang(const std::shared_ptr<const SourceData>& data, const Slang& source);
  Result<void> add_spirv(const SpirV& source);
  Result<void> add_cuda(const std::shared_ptr<const SourceData>& data, const CudaCpp& source);
  Result<void> add_ptx(const Ptx& source);
  Result<void> add_cubin(const Cubin& source);
  Result<void> add_host(const HostSource& source);
  Result<void> add_native(const NativeSource& source);
  Result<device::Artefact> shader(std::vector<std::uint32_t> words, const std::string& entry,
                                  const std::vector<device::Specialization>& constants,
                                  std::optional<Extent3> tile, const Digest& key) const;
  /// Makes the artefact of PTX or a cubin with the launch options of `source`.
  template <class Source>
  Result<device::Artefact> cuda_artefact(std::span<const std::byte> code, bool ptx, const Source& source,
                                         const Digest& key) const;
  template <class Source>
  Result<void> add_cuda_code(std::string_view language, std::span<const std::byte> code, const Source& source,
                             Architecture architecture, std::uint64_t driver = 0);
  Result<device::Artefact> build_cuda(const Prepared& source, const CudaTarget& target,
                                      const Digest& key) const;
  Result<device::Artefact> build_cuda(const Prepared& source, const CudaCpp& text,
                                      const std::vector<SourceText>& texts, const CudaTarget& target,
                                      const Digest& key) const;
  void take_names();
  const Prepared* find(std::string_view language) const noexcept;
  const Cuda& cuda(const Prepared& source) const;
  std::optional<Choice> serves(const Prepared& source, const Conversion& conversion,
                               const device::DeviceBase& device, Probe call, std::string& why) const;
  /// Returns the best source for `device`, or none. Appends the reasons against other sources to
  /// `why`.
  Choice choose(const device::DeviceBase& device, Probe call, std::string& why) const;
  /// Returns the existing route for `device`, or null.
  const Route* find_route(const device::DeviceBase& device) const noexcept;
  Route make_route(const device::DeviceBase& device, Probe call) const;
  /// Makes the route for `device` on the first call.
  const Route& route(const device::DeviceBase& device) const;
  bool has_native_probe(const device::DeviceBase& device) const;
  /// Returns the reason why `device` uses no native function, if a probe has refused it.
  std::optional<Error> refused_native(const device::DeviceBase& device) const;
  Result<Digest> key(const Choice& choice) const;

  std::string name_;
  ParamSchema schema_;
  std::uint64_t id_;
  device::ProgramDigests digests_;
  std::uint32_t batchable_ = 0;
  bool has_short_loops_ = false;
  std::vector<AdapterType> adapters_;  ///< that run it; empty: all
  Features features_;                  ///< that a device needs
  std::vector<Prepared> sources_;
  std::vector<AnySource> given_;                  ///< set if any source is from a file
  ParamSchema declared_;                          ///< likewise
  std::shared_ptr<const GlslCompiler> compiler_;  ///< set if there is GLSL and a compiler for it
  std::shared_ptr<const SlangCompiler> slang_;    ///< set if there is Slang
  mutable std::mutex mutex_;
  mutable std::atomic<const Route*> newest_route_{nullptr};
  mutable std::unique_ptr<Route> routes_;
  mutable std::atomic<const Cuda*> found_cuda_{nullptr};
  mutable std::unique_ptr<const Cuda> cuda_;
  mutable std::vector<std::shared_ptr<const KernelProgram>> replaced_with_;
};

/// Keeps the compilers alive as long as the result lives. Those of Slang and CUDA C++ start with
/// their first use.
std::shared_ptr<const void> keep_compilers();
/// Compiles a trivial GLSL shader. The first compile takes longest; later ones are fast while
/// compilers are kept.
void warm_compilers();

}  // namespace wye::kernel
