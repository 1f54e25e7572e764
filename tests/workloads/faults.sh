#!/bin/sh
# faults.sh [KERNEL]: plants each fault of faults.txt, or those of one kernel, in a kernel for the stand-in for CUDA, and runs the tests of
# its tag. A fault that they do not find fails. An empty one shows that they pass without. Needs build/dev with its tests.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
driver=$root/build/dev/tests/support/cuda
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tests/support/cuda/twins"
cp "$driver"/lib*.so* "$work/tests/support/cuda"
ln -s "$driver/libraries" "$work/tests/support/cuda/libraries"

# Compiles the kernel in $1 of the folder of shaders as the build does, into the file $2.
twin() {
  name=wye_twins_$(echo "$1" | tr / _)
  sed "s|$root/shaders/|$work/shaders/|" "$driver/$name.cpp" >"$work/twin.cpp" &&
    g++ -std=c++20 -O1 -fPIC -fvisibility=hidden -fno-strict-aliasing -w -I"$root/tests" -I"$root/tests/support/cuda/host" \
      -I"$work/shaders/include" -c "$work/twin.cpp" -o "$work/twin.o" &&
    "$root/tests/support/cuda/dynamic_shared.sh" readelf "$work/twin.o" >"$work/shared.cpp" &&
    g++ -std=c++20 -fPIC -shared "$work/twin.o" "$work/shared.cpp" -o "$2" -Wl,-rpath,"$work/tests/support/cuda" \
      "$work/tests/support/cuda/libwye_cuda_engine.so"
}
tests() { # tests TAG
  BUILD=$work WYE_BACKENDS=cuda WYE_REQUIRE_BACKENDS=cuda WYE_CACHE_DIR=none WYE_STANDIN_SEED=2 WYE_STANDIN_ORDER=3 \
    LD_LIBRARY_PATH=$root/build/wheels/cuda/nvidia/cu13/lib timeout 300 "$root/tests/with-stand-in-cuda.sh" \
    "$root/build/dev/tests/wye_workloads_tests" "[$1]~[cuda]~[huge]" --abort >"$work/log" 2>&1
}
# plant TAG KERNEL FILE EDIT: sets $said, and fails if it could not be planted or was not found.
plant() {
  rm -rf "$work/shaders" && cp -r "$root/shaders" "$work/shaders" && sed -i -e "$4" "$work/shaders/$3"
  [ -z "$4" ] || ! cmp -s "$root/shaders/$3" "$work/shaders/$3" || { said="changes nothing"; return 1; }
  rm -f "$work"/tests/support/cuda/twins/* && ln -s "$driver"/twins/* "$work/tests/support/cuda/twins/"
  library=$work/tests/support/cuda/twins/$(echo "$2" | tr / _).so
  rm "$library" && twin "$2" "$library" || { said="does not compile"; return 1; }
  if tests "$1"; then
    said="not found"
    [ -z "$4" ]
  else
    said=$(sed -n '/^---/{n;p;q;}' "$work/log")
    [ -n "$4" ]
  fi
}
found=0 missed=0
while IFS='|' read -r tag kernel file edit; do
  case $tag in '#'* | '') continue ;; esac
  [ -z "${1-}" ] || [ "$kernel" = "$1" ] || continue
  if plant "$tag" "$kernel" "$file" "$edit"; then found=$((found + 1)); else missed=$((missed + 1)) said="MISSED: $said"; fi
  echo "$kernel: ${edit:-(nothing)}: $said"
done <"$root/tests/workloads/faults.txt"
echo "$found as it should be, $missed not."
[ "$missed" = 0 ]
