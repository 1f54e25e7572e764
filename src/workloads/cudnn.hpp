#pragma once
/// Attention by NVIDIA's cuDNN, if it can be opened.
#include <wye/base/result.hpp>
#include <wye/device/detail/native_code.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>

namespace wye::inline v0::workloads::cudnn {

/// Returns whether an attempt to open cuDNN has failed in this process. Opens nothing.
/// Threads: thread-safe.
bool known_absent();

/// Checks that cuDNN has attention for the device of `lane`, without and with causal masks.
/// Compiles nothing.
/// Errors: unavailable (a library that is older than its first version with this operation),
///         unsupported (no engine for the device); those of cuDNN, as native().
/// Threads: thread-safe.
Result<void> probe(const NativeLane& lane);
Result<void> probe_causal(const NativeLane& lane);

/// An attention without its addresses and its scale. cuDNN compiles a kernel for each.
struct Attention {
  bool bfloat = false;  ///< else half
  bool causal = false;
  std::uint64_t heads = 0;
  std::uint64_t queries = 0;
  std::uint64_t keys = 0;
  std::uint64_t head_size = 0;
  std::uint64_t value_size = 0;
  friend auto operator<=>(const Attention&, const Attention&) = default;
};

/// Returns whether cuDNN computes it as wye does: rows begin at multiples of 16 bytes, every query
/// sees a key, and all indices and grids are in range.
bool takes(const Attention& attention);

/// Returns whether cuDNN may compute it. That compiles a kernel, which takes about a second, so a
/// process admits the first `most_attentions`.
/// Threads: thread-safe.
bool admits(const Attention& attention);
inline constexpr std::size_t most_attentions = 64;

/// Bytes of memory that kernels may use beside their operands: for the best kernels on Hopper, 256.
inline constexpr std::uint64_t workspace_size = 4096;

/// Addresses on the device, all at multiples of 16.
struct Addresses {
  const void* q;
  const void* k;
  const void* v;
  void* out;
  void* workspace;
  std::uint64_t workspace_bytes;
};

/// Enqueues attention, of all keys at once. The first call with an attention on a lane makes its
/// plan.
/// Errors: those of cuDNN, as native(); unsupported if a lane keeps no handles.
Result<void> attend(const NativeLane& lane, const Attention& attention, const Addresses& addresses,
                    float scale);

}  // namespace wye::workloads::cudnn
