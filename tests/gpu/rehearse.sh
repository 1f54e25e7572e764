#!/bin/sh
# tests/gpu/rehearse.sh [FOLDER]: a rehearsal of what happens on a card, on the stand-in for its driver with the latencies of a
# card. Packs the programs, unpacks the archive in FOLDER (build/rehearsal), and runs each part there as on a machine that has a
# driver, no toolkit and no network; each has to pass within its time. Then it kills one part midway: the part keeps its rows.
set -u
# rehearse.sh --alone FOLDER PART: one part of them; all its processes end with it
if [ "${1:-}" = --alone ]; then
  # As the same user: in a namespace whose only user is root, a test cannot become another one.
  [ "$(id -u)" = 0 ] && user= || user="--user --map-current-user --keep-caps"
  exec unshare $user --mount --net --pid --fork --kill-child sh -c '
    for file in $(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | awk "/libnvrtc/ {print \$NF}"); do
      mount --bind /dev/null "$file" || exit
    done
    exec "$@"' alone "$2/wye-gpu/run.sh" "$3"
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-$root/build/rehearsal}
cd "$root" || exit 1
rm -rf "$folder"
mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || exit 1
logs=$folder/logs
. tests/support/steps.sh
export WYE_CUDA_DRIVER="$root/build/gpu/tests/support/cuda/libcuda.so.1"

unpacked() {
  tests/gpu/pack.sh && cmake --build --preset gpu --parallel "${JOBS:-$(nproc)}" --target wye_standin_workloads &&
    tar xf build/wye-gpu.tar.xz -C "$folder"
}
killed() {
  log=$folder/killed/gpu-bench/benchmarks__launch.log
  OUT=$folder/killed tests/gpu/rehearse.sh --alone "$folder" bench &
  until grep _median "$log" >/dev/null 2>&1; do
    kill -0 $! || return 1
    sleep 0.05
  done
  kill -KILL $!
  wait $!
  grep '^    cuda_copy.*_median' "$folder/killed/gpu-bench.txt" && grep '^cuda_dispatch_sync.*_median' "$log" &&
    ! grep 'cuda_dispatch_batch' "$log" && ! grep -E '^[0-9]+ passed' "$folder/killed/gpu-bench.txt"
}

step "pack and unpack" unpacked
for part in tests bench sanitize; do
  step "part: $part" env OUT="$folder/$part" tests/gpu/rehearse.sh --alone "$folder" "$part"
done
step "a killed part keeps its rows" killed
finish
