#pragma once
// The code of kernels of planted.cu, of which a stand-in reads the names and the parameters.

namespace standin {

inline constexpr char planted_ptx[] = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry meet(
	.param .u64 meet_param_0,
	.param .u32 meet_param_1
)
{
	ret;
}
.visible .entry meet_too(
	.param .u64 meet_too_param_0,
	.param .u32 meet_too_param_1
)
{
	ret;
}
.visible .entry slow_add(
	.param .u64 slow_add_param_0,
	.param .u32 slow_add_param_1
)
{
	ret;
}
.visible .entry absent_from_barrier(
	.param .u64 absent_from_barrier_param_0
)
{
	ret;
}
)";

}  // namespace standin
