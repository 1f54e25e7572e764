#include <wye/kernel/kernel.hpp>

#include <new>

#include "kernel/program.hpp"

namespace wye::inline v0 {

namespace {

const kernel::KernelProgram& program_of(const std::shared_ptr<const device::Program>& program) {
  return static_cast<const kernel::KernelProgram&>(*program);  // only `make` creates the programs of kernels
}

}  // namespace

Result<AnyKernel> AnyKernel::make(std::string name, ParamSchema schema, std::vector<AnySource> sources) {
  return make(detail::KernelDescription{std::move(name), std::move(schema), std::move(sources)});
}

Result<AnyKernel> AnyKernel::make(detail::KernelDescription description) {
  try {
    auto program = kernel::KernelProgram::make(std::move(description.name), std::move(description.schema),
                                               description.sources, description.batchable,
                                               std::move(description.adapters), description.features,
                                               description.has_short_loops);
    if (!program) return std::move(program).error();
    return AnyKernel(detail::Programs(std::move(*program)));
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to make a kernel.");
  }
}

const std::string& AnyKernel::name() const noexcept { return program_of(programs_[0]).name_string(); }
const ParamSchema& AnyKernel::schema() const noexcept { return programs_[0]->schema(); }
std::string AnyKernel::languages() const { return program_of(programs_[0]).languages(); }

}  // namespace wye
