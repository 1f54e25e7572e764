#!/bin/sh
# Writes bench/traces/buffers.cpp anew: the buffers that programs create and destroy on a Vulkan device, in their order.
# bench/traces/record_buffers.sh [TREE [BENCH]]: the build trees whose programs are run, build/dev and build/bench unless
# named. Of the tests of the workloads, which create most of the buffers, only the first are kept.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
tree=${1:-$root/build/dev}
bench=${2:-$root/build/bench}
out=$root/bench/traces/buffers.cpp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -shared -fPIC -fvisibility=hidden -o "$work/libvulkan.so.1" "$root/bench/traces/recorder/vulkan_buffers.c" -ldl -lpthread
WYE_REAL_VULKAN=$(ldconfig -p | sed -n 's/.*libvulkan\.so\.1 .*=> //p' | head -n 1)
export WYE_REAL_VULKAN

# record NAME PROGRAM [ARGUMENT...]
record() {
  name=$1
  shift
  (cd "$work" && RECORD=$work/$name LD_LIBRARY_PATH=$work WYE_CACHE_DIR=none WYE_QUALIFICATION=never "$@") >/dev/null 2>&1
  awk -v name="$name" '
    $1 == "+" { place[$2] = live++; at[live - 1] = $2; event = $3 }
    $1 == "-" {  # the distance from the youngest buffer
      from = place[$2]
      event = from - live
      for (i = from; i < live - 1; ++i) { at[i] = at[i + 1]; place[at[i]] = i }
      --live
      delete place[$2]
    }
    NR > 6000 { exit }
    { text = text event "," }
    END {
      printf "constexpr std::int32_t in_%s[] = {", name
      n = split(text, events, ",")
      line = ""
      for (i = 1; i < n; ++i) {
        if (length(line) + length(events[i]) > 110) { printf "\n    %s", line; line = "" }
        line = line events[i] ", "
      }
      printf "\n    %s\n};\n", line
    }' "$work/$name" >>"$work/text"
}
record workloads "$tree/tests/wye_workloads_tests" '~[large]~[.]'
WYE_BACKENDS=vulkan record batches "$tree/26_batches"
WYE_BACKENDS=vulkan record limited_memory "$tree/28_limited_memory"
record document_network "$tree/document_network" --backend vulkan
record pipelines "$bench/wye_bench" --benchmark_filter=main_job_steps_vulkan/wye\|pipeline_vulkan/wye \
  --benchmark_repetitions=1 --benchmark_min_time=0.01
{
  echo "// Made by bench/traces/record_buffers.sh."
  echo '#include "traces/buffers.hpp"'
  echo
  echo "namespace wye_bench {"
  echo "namespace {"
  echo
  echo "// clang-format off"
  sed 's/ *$//' "$work/text"
  echo
  echo "constexpr std::span<const std::int32_t> programs[] = {"
  sed -n 's/^constexpr std::int32_t \([a-z_]*\).*/    \1,/p' "$work/text"
  echo "};"
  echo "// clang-format on"
  echo
  echo "}  // namespace"
  echo
  echo "std::span<const std::span<const std::int32_t>> recorded_buffers() { return programs; }"
  echo
  echo "}  // namespace wye_bench"
} >"$out"
