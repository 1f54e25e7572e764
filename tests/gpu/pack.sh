#!/bin/sh
# tests/gpu/pack.sh [ARCHIVE]: builds what runs on a card and packs it, for a machine that has a driver and nothing to build
# with: copy the archive there, `tar xf` it, and run `wye-gpu/run.sh`. ARCHIVE: build/wye-gpu.tar.xz. What the programs need
# beside glibc and libstdc++ goes with them.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
archive=${1:-$root/build/wye-gpu.tar.xz}
folder=$root/build/wye-gpu
cd "$root"
cmake --preset gpu --log-level=WARNING
cmake --build --preset gpu
rm -rf "$folder"
mkdir -p "$folder/programs" "$folder/lib"
for name in wye_contract_tests wye_workloads_tests wye_gpu_tests wye_runtime_tests wye_data_tests wye_scheduler_tests \
  document_network wye_bench; do
  program=$(find build/gpu -name "$name" -type f -perm -u+x | head -n 1)
  [ -n "$program" ] || { echo "pack.sh: the build made no '$name': is WYE_CUDA OFF?" >&2; exit 1; }
  strip -o "$folder/programs/$name" "$program"
  ldd "$program" | awk '$2 == "=>" {print $3}' | grep -Ev '/(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s)\.so' |
    xargs -r cp -L -t "$folder/lib"
done
cp tests/gpu/run.sh tests/support/steps.sh "$folder"
git describe --always --dirty >"$folder/commit.txt" 2>/dev/null || echo unknown >"$folder/commit.txt"
XZ_OPT=-T2 tar -C "$root/build" -cJf "$archive" wye-gpu
ls -l "$archive" | awk '{printf "%s: %.1f MiB\n", $NF, $5 / 1048576}'
