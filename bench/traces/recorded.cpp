// Made by bench/traces/record.sh: 361 requests of 17 kernels.
#include "traces/trace.hpp"

namespace wye_bench {
namespace recorded {

// clang-format off
constexpr std::string_view names[] = {
    "softmax",
    "softmax_sums",
    "softmax_apply",
    "axpy",
    "matmul",
    "matmul_add",
    "normalize",
    "normalize_sums",
    "normalize_apply",
    "pagerank_clear",
    "pagerank_count",
    "pagerank_start",
    "pagerank_sum",
    "pagerank_pull",
    "pagerank_blocks",
    "copy",
    "timeline",
};
const std::span<const std::string_view> kernels = names;
const std::string_view requests =
    "aaaaaaaaaaaaabcaabcaabcaabcaabcdddddddddddddeeeeeeeeeeeeeeeeeeeeefeeeeeggggggggggggghihihiggghigghig"
    "ghigghigghigghigghigghigghihigggghihijklmnjklmnjklmnjklmnjklmnjklmnjklmonjklmonjklmonjklmonjjklmnjkl"
    "mnjklmnjklmonjklmonjklmonjklmnjklmnjklmonjklmonpgepgepgepgepgepgepgepgepgephiefpgepgepgepgeaaaaaaaaa"
    "aabcbcbcaaabcbcbcbcbcbcbcaaaabcbcqqqqqqqqqqqqqqqqqqqqqqqqqqqq";
// clang-format on

}  // namespace recorded
}  // namespace wye_bench
