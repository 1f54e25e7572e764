#pragma once
/// Attention weights from scores.
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

struct AttentionWeightsOptions {
  std::uint64_t columns = 0;    ///< scores of one query; 0: the matrix of scores is square
  std::uint64_t head_size = 0;  ///< scores are divided by its square root; 0: not divided
};

/// Replaces the scores of every query by the weights of its keys, softmax(scores /
/// sqrt(head_size)), in place.
/// Shape:   row after row, a row for each query. Without `columns` the matrix is square, and its
///          length a square number.
/// Bound:   5e-5 + 2^-23 max |score / sqrt(head_size)| of each weight; otherwise as softmax.
/// Bits:    the same device gives the same bits.
/// Errors:  invalid_argument (a length that is no square number, or no multiple of `columns`).
/// Source:  Vaswani et al., Attention is all you need, arXiv:1706.03762, section 3.2.1.
WYE_API Job attention_weights(ReadWrite<float> scores, AttentionWeightsOptions options = {});

namespace reference {
/// The same in float64, on this thread.
WYE_API std::vector<double> attention_weights(std::span<const float> scores,
                                              AttentionWeightsOptions options = {});
}  // namespace reference

}  // namespace wye::workloads
