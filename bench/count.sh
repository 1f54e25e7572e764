#!/bin/sh
# bench/count.sh [BENCHMARK...]: what wye itself does on the host for one launch through CUDA, where a clock says little because
# others use the processors too: instructions of the thread that launches, how many of them are atomic, and calls of the driver.
# What the driver's functions do, and Google Benchmark's, is left out. Counted by valgrind's callgrind, on the stand-in for the
# driver, which has done everything by the time it is asked, so the same numbers come out each time. BUILD names the tree
# (build/release). Each takes a minute or two, most of it for the compiler of the kernel. The profiles stay in BUILD/count, for
# callgrind_annotate.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build/release}
command -v valgrind >/dev/null || { echo "count.sh: valgrind is not on the PATH: nothing is counted." >&2; exit 2; }
cd "$root"
if [ -z "${BUILD:-}" ]; then
  cmake --preset release -D WYE_TESTS=ON -D WYE_BENCHMARKS=ON --log-level=WARNING >/dev/null
  cmake --build --preset release --target wye_bench wye_standin_workloads >/dev/null
fi
[ $# -gt 0 ] || set -- cuda_dispatch_batch/wye cuda_dispatch_sync/wye cuda_replay/wye
mkdir -p "$build/count"
export BUILD="$build" LIBRARIES=none LD_BIND_NOW=1 WYE_STANDIN_DONE_WHEN_ASKED=1
export LD_LIBRARY_PATH="$root/build/wheels/cuda/nvidia/cu13/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

printf '%-28s %12s %12s %12s\n' "for one launch" instructions "atomic ones" "driver calls"
for name; do
  profile=$build/count/$(echo "$name" | tr / .)
  rm -f "$profile"*
  tests/with-stand-in-cuda.sh valgrind --tool=callgrind --callgrind-out-file="$profile" --separate-threads=yes --collect-bus=yes \
    --zero-before='wye_bench::HostTime::HostTime*' --dump-before='wye_bench::HostTime::~HostTime*' \
    "$build/wye_bench" --small --benchmark_filter="^$name/" --benchmark_repetitions=1 --benchmark_min_time=3 \
    >"$profile.log" 2>&1 || { cat "$profile.log" >&2; exit 1; }
  # Of the last time it was run, which was the longest, the first thread.
  last=$(find "$build/count" -name "${profile##*/}.[0-9]*-01" | sort -V | tail -n 1)
  [ -n "$last" ] || { cat "$profile.log" >&2; exit 1; }
  awk -v name="$name" -v driver='/libcuda\.so' '
    # "(7) what": what 7 stands for from here on.
    function said(kind, text,  number) {
      number = text
      sub(/\).*/, ")", number)
      if (text != number) names[kind, number] = substr(text, length(number) + 2)
      return names[kind, number]
    }
    /^ob=/ { object = said("object", substr($0, 4)) }
    /^cob=/ { called = said("object", substr($0, 5)) }
    /^c?fn=/ { function_called = said("function", substr($0, index($0, "=") + 1)) }
    /^summary:/ { instructions += $2; atomic += $3 }
    /^calls=/ {
      split($1, count, "=")
      getline  # where, and what was done in there
      if (called == "") called = object
      of_driver = called ~ driver && object !~ driver
      if (of_driver || function_called ~ /^benchmark::State::/) {
        instructions -= $2
        atomic -= $3
      }
      if (of_driver) calls += count[2]
      if (of_driver && function_called ~ /::(LaunchKernel|GraphLaunch)>/) launches += count[2]
      called = ""
    }
    END {
      if (!launches) exit 1
      printf "%-28s %12.1f %12.2f %12.2f\n", name, instructions / launches, atomic / launches, calls / launches
    }' "$last" || { echo "count.sh: nothing was launched in '$last'." >&2; exit 1; }
done
