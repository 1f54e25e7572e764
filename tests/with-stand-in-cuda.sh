#!/bin/sh
# tests/with-stand-in-cuda.sh COMMAND...: runs a command with the stand-in for CUDA's driver as its driver. BUILD names the tree
# that has it (build/dev). It runs the kernels whose text is in tests/support/cuda and shaders/.
# WYE_STANDIN_TEST_PART: WYE_TEST_PART of test programs that run so (tests/support/catch_main.cpp).
# LIBRARIES=standin: it has stand-ins for NVIDIA's libraries, too; else (none) it has none, whatever the machine has.
root=$(cd "$(dirname "$0")/.." && pwd)
driver=${BUILD:-$root/build/dev}/tests/support/cuda/libcuda.so.1
[ -f "$driver" ] || { echo "with-stand-in-cuda.sh: there is no '$driver': build the target wye_standin_workloads." >&2; exit 2; }
[ $# -gt 0 ] || { echo "usage: tests/with-stand-in-cuda.sh COMMAND..." >&2; exit 2; }
WYE_CUDA_DRIVER=$(cd "$(dirname "$driver")" && pwd)/libcuda.so.1
LIBRARIES=${LIBRARIES:-none}
LD_LIBRARY_PATH=${WYE_CUDA_DRIVER%/*}/libraries/$LIBRARIES${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
[ -z "${WYE_STANDIN_TEST_PART:-}" ] || export WYE_TEST_PART="$WYE_STANDIN_TEST_PART"
export WYE_CUDA_DRIVER LIBRARIES LD_LIBRARY_PATH
exec "$@"
