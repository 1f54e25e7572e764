#!/bin/sh
# faults.sh LIST [WORD]: plants each fault of a list, or of its lines with WORD before the edit, and runs the tests that must
# fail then. A fault that they do not find fails. An empty one shows that they pass without. Lists: faults.txt has faults of the
# rooms, workloads/faults.txt those of kernels for the stand-in for CUDA. Needs build/dev with its tests; changes nothing there.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/dev
driver=$build/tests/support/cuda
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

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
kernel_tests() { # kernel_tests TAG
  BUILD=$work WYE_BACKENDS=cuda WYE_REQUIRE_BACKENDS=cuda WYE_CACHE_DIR=none WYE_STANDIN_SEED=2 WYE_STANDIN_ORDER=3 \
    LD_LIBRARY_PATH=$root/build/wheels/cuda/nvidia/cu13/lib timeout 300 "$root/tests/with-stand-in-cuda.sh" \
    "$build/tests/wye_workloads_tests" "[$1]~[cuda]~[huge]" --abort >"$work/log" 2>&1
}
# plant_in_kernel KERNEL FILE EDIT: sets $said and fails if the fault could not be planted.
plant_in_kernel() {
  [ -d "$work/tests" ] || {
    mkdir -p "$work/tests/support/cuda/twins" && cp "$driver"/lib*.so* "$work/tests/support/cuda" &&
      ln -s "$driver/libraries" "$work/tests/support/cuda/libraries"
  } || { said="has no stand-in"; return 1; }
  rm -rf "$work/shaders" && cp -r "$root/shaders" "$work/shaders" && sed -i -e "$3" "$work/shaders/$2"
  [ -z "$3" ] || ! cmp -s "$root/shaders/$2" "$work/shaders/$2" || { said="changes nothing"; return 1; }
  rm -f "$work"/tests/support/cuda/twins/* && ln -s "$driver"/twins/* "$work/tests/support/cuda/twins/"
  library=$work/tests/support/cuda/twins/$(echo "$1" | tr / _).so
  rm "$library" && twin "$1" "$library" || { said="does not compile"; return 1; }
}
room_tests() { # room_tests PROGRAM CASES
  WYE_CACHE_DIR=none timeout 300 "$1" "$2" --abort >"$work/log" 2>&1 </dev/null
}
# plant_in_room ROOM FILE EDIT: as plant_in_kernel. Links the tests with the edited file before the library: of two definitions
# the linker takes the first.
plant_in_room() {
  sed -e "$3" "$root/$2" >"$work/fault.cpp"
  [ -z "$3" ] || ! cmp -s "$root/$2" "$work/fault.cpp" || { said="changes nothing"; return 1; }
  target=$(echo "${2#src/}" | sed 's|^backend/|backend_|; s|/.*||')
  compile=$(ninja -C "$build" -t commands src/libwye_internal.a | sed -n "/wye_$target\.dir/{s| -MD .*||p;q;}")
  link=$(ninja -C "$build" -t commands "wye_$1_tests" |
    sed -n "\$s# -o [^ ]*wye_$1_tests # -o '$work/program' '$work/fault.o' -Wl,-z,muldefs #p")
  (cd "$build" && eval "$compile -w -c '$work/fault.cpp' -o '$work/fault.o' && $link") >"$work/log" 2>&1 ||
    { said="does not compile: $(grep -m 1 error "$work/log")"; return 1; }
}
# fault FIRST SECOND FILE EDIT: plants one line of a list and runs its tests. Sets $said. Fails if it could not be planted, or if
# an edit was not found.
fault() {
  case $3 in
    src/*)
      room_tests "$(find "$build/tests" -type f -name "wye_$1_tests")" "$2" ||
        { said="the tests fail without it"; return 1; }
      plant_in_room "$1" "$3" "$4" || return 1
      room_tests "$work/program" "$2"
      ;;
    *)
      plant_in_kernel "$2" "$3" "$4" || return 1
      kernel_tests "$1"
      ;;
  esac
  failed=$?
  said="not found"
  [ "$failed" = 0 ] || said=$(sed -n '/^---/{n;p;q;}' "$work/log")
  if [ -z "$4" ]; then [ "$failed" = 0 ]; else [ "$failed" != 0 ]; fi
}
found=0 missed=0
while IFS='|' read -r first second file edit; do
  case $first in '#'* | '') continue ;; esac
  case "$first|$second|$file" in *"${2-}"*) ;; *) continue ;; esac
  if fault "$first" "$second" "$file" "$edit"; then found=$((found + 1)); else missed=$((missed + 1)) said="MISSED: $said"; fi
  echo "$first, $second: ${edit:-(nothing)}: $said"
done <"$1"
echo "$found as it should be, $missed not."
[ "$missed" = 0 ]
