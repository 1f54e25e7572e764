#pragma once
/// Checks of the parameters that an application declares for a kernel.
#include <wye/base/result.hpp>
#include <wye/device/schema.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace wye::inline v0::kernel {

/// Checks the parameters of a kernel.
/// Errors: invalid_argument, naming the parameter.
Result<void> check_schema(const std::string& kernel, const ParamSchema& schema);

/// Returns a bit for each parameter with a leading index (`Kernel::Options::batchable`).
/// Errors: invalid_argument, naming the parameter.
Result<std::uint32_t> batchable_bits(const std::string& kernel, const ParamSchema& schema,
                                     const std::vector<std::size_t>& batchable);

}  // namespace wye::kernel
