#pragma once
/// Comparison of kernel descriptions.
#include <wye/base/bytes.hpp>
#include <wye/kernel/kernel.hpp>

#include <cstdint>

namespace wye {
inline namespace v0 {

using detail::KernelDescription;
namespace kernel {

/// Whether a kernel made of it now and one made of it later are the same: nothing is read from elsewhere.
bool is_complete(const KernelDescription& description);

/// Returns the bytes of its texts and modules.
Bytes size_of(const KernelDescription& description);

/// Returns a hash of a part of the description: equal for equal descriptions, and mostly different for others.
std::uint64_t sample(const KernelDescription& description);

/// Compares byte for byte. Host and native functions are equal only in copies of one source.
bool equal(const KernelDescription& a, const KernelDescription& b);

}  // namespace kernel
}  // namespace v0
}  // namespace wye
