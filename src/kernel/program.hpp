#pragma once
/// What a kernel is inside: sources turned into artefacts.
#include <wye/base/result.hpp>
#include <wye/kernel/source.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/provider.hpp"
#include "kernel/glsl.hpp"
#include "kernel/source.hpp"

namespace wye {
inline namespace v0 {
namespace kernel {

/// A kernel's sources behind the device room's port.
/// Threads: thread-safe.
class KernelProgram final : public device::Program {
 public:
  /// Errors: those of `AnyKernel::make`.
  static Result<std::shared_ptr<const KernelProgram>> make(std::string name, ParamSchema schema,
                                                           const std::vector<AnySource>& sources);

  std::string_view name() const noexcept override { return name_; }
  const std::string& name_string() const noexcept { return name_; }
  const ParamSchema& schema() const noexcept override { return schema_; }
  std::uint64_t id() const noexcept override { return id_; }
  std::optional<Error> refusal(const device::DeviceBase& device) const override;
  Result<Digest> key(const device::DeviceBase& device) const override;
  bool storable(const device::DeviceBase& device) const noexcept override;
  Result<device::Artefact> build(const device::DeviceBase& device) const override;

  /// "Glsl, host".
  std::string languages() const;

 private:
  /// One source. What needs no compiler is ready at once.
  struct Prepared {
    std::string_view language;  ///< "Glsl", "SpirV", "host"
    Digest key;
    std::shared_ptr<const SourceData> glsl;
    std::shared_ptr<const std::vector<SourceText>> texts;  ///< of `glsl`
    std::vector<device::Specialization> constants;
    std::shared_ptr<device::Artefact> ready;
  };

  KernelProgram(std::string name, ParamSchema schema);
  Result<void> add(const AnySource& source);
  Result<void> add_glsl(const std::shared_ptr<const SourceData>& data, const Glsl& source);
  Result<void> add_spirv(const SpirV& source);
  Result<void> add_host(const HostSource& source);
  Result<device::Artefact> shader(std::vector<std::uint32_t> words, const std::string& entry,
                                  const std::vector<device::Specialization>& constants,
                                  std::optional<Extent3> tile, const Digest& key) const;
  void take_names();
  const Prepared* find(std::string_view language) const noexcept;
  /// The source that serves `device` best, or null.
  const Prepared* choose(const device::DeviceBase& device) const noexcept;

  std::string name_;
  ParamSchema schema_;
  std::uint64_t id_;
  std::vector<Prepared> sources_;
  std::shared_ptr<const GlslCompiler> compiler_;  ///< where there is GLSL, and a compiler for it
};

/// Keeps the compilers that were used loaded for as long as it is held.
std::shared_ptr<const void> keep_compilers();

}  // namespace kernel
}  // namespace v0
}  // namespace wye
