#pragma once
/// Comparison of kernel descriptions.
#include <wye/base/bytes.hpp>
#include <wye/kernel/kernel.hpp>

#include <cstdint>

namespace wye::inline v0 {

using detail::KernelDescription;
namespace kernel {

/// Returns whether the description needs no file and no `find_include`. Kernels made from it are
/// then always equal.
bool is_complete(const KernelDescription& description);

/// Returns the total size of its texts and modules.
Bytes size_of(const KernelDescription& description);

/// Returns a hash of part of the description: equal for equal descriptions, usually different for
/// others.
std::uint64_t sample(const KernelDescription& description);

/// Compares two descriptions byte by byte. Host and native functions are equal only in copies of
/// one source.
bool equal(const KernelDescription& a, const KernelDescription& b);

}  // namespace kernel
}  // namespace wye
