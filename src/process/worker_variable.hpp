#pragma once
/// How a worker process finds its parent.

namespace wye::inline v0::process {

/// The environment variable with the number of the parent's process.
constexpr const char* worker_variable = "WYE_WORKER";
/// The descriptors of the shared memory, in the order in which they are passed.
constexpr int block_descriptor = 3, bell_descriptor = 4;

}  // namespace wye::process
