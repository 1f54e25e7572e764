#!/bin/sh
# Builds wye and runs the main job on this machine's own documents; installs the packages that are missing.
# examples/run.sh [ARGUMENT...]: arguments are the main job's; --help names them.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/cmake/packages.sh" build run tools examples
"$root/cmake/wheels.sh" cuda ptx >&2
(
  cd "$root"
  cmake --preset release --log-level=WARNING -D WYE_TESTS=OFF -D WYE_BENCHMARKS=OFF
  cmake --build --preset release --target wye_example_document_network
) >&2
# A kernel that one run compiles is found on disk by the next.
export WYE_CACHE_DIR="${WYE_CACHE_DIR-$root/build/kernels}"
# NVRTC, where the machine has none of its own.
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$root/build/wheels/cuda/nvidia/cu13/lib"
exec "$root/build/release/document_network" "$@"
