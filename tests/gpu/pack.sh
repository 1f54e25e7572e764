#!/bin/sh
# tests/gpu/pack.sh [ARCHIVE]: builds the programs that need a card and packs them for a machine with a driver and no
# compiler: copy the archive, `tar xf` it, and run `wye-gpu/run.sh`. ARCHIVE: build/wye-gpu.tar.xz. The folder of the
# same name beside it can be copied instead. All libraries except glibc and libstdc++ are included; those of the machine
# must be as new as this one's. The NVRTC of CUDA 12.2 is included, for machines that have none: each driver that wye
# supports takes its code.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
archive=${1:-$root/build/wye-gpu.tar.xz}
folder=$root/build/wye-gpu
cd "$root"
cmake/wheels.sh ptx
nvrtc=build/wheels/ptx/nvidia/cuda_nvrtc/lib
[ -e "$nvrtc/libnvrtc.so.12" ] || { echo "pack.sh: there is no '$nvrtc/libnvrtc.so.12'." >&2; exit 1; }
tests="contract gpu workloads interop data scheduler runtime"
cmake --preset gpu --log-level=WARNING
cmake --build --preset gpu --parallel "${JOBS:-$(nproc)}" --target wye_bench wye_example_document_network wye_no_cublas wye_no_cublaslt \
  wye_no_cudnn \
  $(printf 'wye_%s_tests ' $tests)
rm -rf "$folder"
mkdir -p "$folder/programs" "$folder/lib" "$folder/nvrtc" "$folder/no-cublas" "$folder/documents"
for name in wye_bench document_network $(printf 'wye_%s_tests ' $tests); do
  program=$(find build/gpu -name "$name" -type f -perm -u+x | head -n 1)
  [ -n "$program" ] || { echo "pack.sh: the build made no '$name': is WYE_CUDA OFF?" >&2; exit 1; }
  strip -o "$folder/programs/$name" "$program"
  ldd "$program" | awk '$2 == "=>" {print $3}' | grep -Ev '/(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s)\.so' |
    xargs -r cp -L -t "$folder/lib"
done
# Opened by name: the dynamic loader does not list it.
loader=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | awk '$1 == "libvulkan.so.1" {print $NF; exit}')
if [ -n "$loader" ]; then cp -L "$loader" "$folder/lib"; fi
cp -L "$nvrtc"/libnvrtc.so.12 "$nvrtc"/libnvrtc-builtins.so.* "$folder/nvrtc"
cp build/gpu/tests/support/cuda/libraries/none/* "$folder/no-cublas"
cp -L /usr/share/common-licenses/* LICENSE "$folder/documents"
cp tests/gpu/run.sh tests/gpu/machine.sh tests/support/steps.sh bench/peers/attention_torch.py "$folder"
git describe --always --dirty >"$folder/commit.txt" 2>/dev/null || echo unknown >"$folder/commit.txt"
# The programs have most of their code in common: with a dictionary larger than one, the archive is half of gzip's.
XZ_OPT=--lzma2=preset=1,dict=64MiB tar -C "$root/build" -cJf "$archive" wye-gpu
ls -l "$archive" | awk '{printf "%s: %.1f MiB\n", $NF, $5 / 1048576}'
