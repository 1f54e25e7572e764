#!/bin/sh
# Builds wye with its tests and examples and runs all of them; installs the packages that are missing.
# tests/run.sh [ARGUMENT...]: arguments are ctest's, such as -R pool. WYE_TEST_TARGETS names the targets to build (all by default),
# WYE_TEST_OPTIONS options of CMake.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/cmake/packages.sh" build run tools examples tests
"$root/cmake/wheels.sh" cuda ptx ptxas slang models
cd "$root"
cmake --preset dev --log-level=WARNING -D WYE_BENCHMARKS=OFF -D CMAKE_CXX_FLAGS_DEBUG=-g1 ${WYE_TEST_OPTIONS:-} # a tenth faster; traces have lines
cmake --build --preset dev ${WYE_TEST_TARGETS:+--target $WYE_TEST_TARGETS}
# A backend that should be here and is not fails the run, and so does one that ran no test. Where its compiler is here, CUDA is,
# on the stand-in for its driver.
[ -f build/wheels/cuda/fetched.txt ] && cuda=,cuda || cuda=
export WYE_REQUIRE_BACKENDS="${WYE_REQUIRE_BACKENDS-cpu,vulkan$cuda}"
# Validation with synchronization validation in every program, and no word of it (cmake/wye_targets.cmake, wye_watch_driver).
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
export VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
# Of Debian 12's layer (1.3.239): on a busy machine it now and then waits ten seconds for a thread of its own and says then that
# this is "most likely a validation bug". Not needed where a newer layer passes backend_cuda beside other tests.
export VK_LAYER_MESSAGE_ID_FILTER=UNASSIGNED-VkSemaphore-state-timeout
. tests/support/ctest.sh
ctest_reporting dev "$@"
