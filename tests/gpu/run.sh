#!/bin/sh
# tests/gpu/run.sh [REPORT]: everything that needs a card, on a machine that has one and its driver, offline: the contract suite,
# the workloads, the main job, real faults, the compute sanitizer where the toolkit has one, benchmarks. Runs the programs
# beside it (tests/gpu/pack.sh), else builds them. REPORT (gpu-report.txt): card, driver, date, each step, the figures.
set -u
here=$(cd "$(dirname "$0")" && pwd)
report=${1:-gpu-report.txt}
if [ ! -d "$here/programs" ]; then
  "$here/pack.sh" || exit 1
  exec "$here/../../build/wye-gpu/run.sh" "$report"
fi
case $report in /*) ;; *) report=$PWD/$report ;; esac
cd "$here" || exit 1
logs=$here/logs
. ./steps.sh

# NVRTC, cuBLAS: of the toolkit, wherever it is.
toolkit=
for folder in "${CUDA_HOME:-}" "$(dirname "$(dirname "$(command -v nvcc 2>/dev/null || echo /usr/local/cuda/bin/nvcc)")")" \
  /usr/local/cuda /opt/cuda; do
  for lib in "$folder/lib64" "$folder/targets/x86_64-linux/lib"; do
    if [ -d "$lib" ]; then toolkit=$toolkit:$lib; fi
  done
done
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}$toolkit"
export WYE_REQUIRE_BACKENDS=cuda WYE_REQUIRE_CARD=1
export WYE_BACKENDS=cuda,cpu

say() { echo "$@" | tee -a "$report"; }
# part NAME PROGRAM ARGUMENT...: a step with a limit, its last words in the report
part() {
  part_name=$1
  shift
  step "$part_name" timeout 500 "$@" | tee "$logs/step.txt" | tee -a "$report"
  if grep -q '^FAILED' "$logs/step.txt"; then failed=$((failed + 1)); else passed=$((passed + 1)); fi
  grep -E '^contract:|assertions|test cases|passed|largest' \
    "$logs/$(echo "$part_name" | tr -c 'A-Za-z0-9\n' '_').log" | tail -n 4 | sed 's/^/            /' >>"$report"
}
passed=0
failed=0

: >"$report"
say "wye $(cat commit.txt) on a card, $(date -u '+%Y-%m-%d %H:%M UTC')"
say "card: $(nvidia-smi --query-gpu=name,memory.total,driver_version,clocks.max.sm --format=csv,noheader 2>/dev/null ||
  echo "${WYE_CUDA_DRIVER:-nvidia-smi does not say}")"
say "host: $(uname -sr), $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'), $(nproc) processors"
say ""

part "card: what it is, its memory, its deadlines" programs/wye_gpu_tests
part "contract suite" programs/wye_contract_tests
part "workloads against their references" programs/wye_workloads_tests
for room in data scheduler runtime; do part "$room room, with a card" "programs/wye_${room}_tests"; done
part "main job on the card, beside the CPU" programs/document_network --backend cuda --compare --out "$logs/report"
# Each ends CUDA in its process.
programs/wye_gpu_tests "[fatal]" --list-tests --verbosity quiet | sed 's/^ *//' | grep . >"$logs/fatal.txt"
while read -r name; do part "fault: $name" programs/wye_gpu_tests "$name"; done <"$logs/fatal.txt"
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck synccheck; do
    part "compute-sanitizer $tool, contract suite" compute-sanitizer --tool "$tool" --error-exitcode 9 \
      programs/wye_contract_tests
  done
else
  say "left out: compute-sanitizer is not on the PATH"
fi
part "benchmarks" programs/wye_bench --benchmark_filter=cuda --benchmark_repetitions=5
say ""
sed -n '1,400p' "$logs/benchmarks.log" >>"$report"
say ""
say "$passed passed, $failed failed"
[ "$failed" = 0 ]
