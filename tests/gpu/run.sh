#!/bin/sh
# tests/gpu/run.sh [--seconds N] [REPORT]: everything that needs a card, on a machine with a card and its driver,
# offline: the contract suite, the workloads, benchmarks, the main job, real faults, and the compute sanitizer if the
# toolkit has it. The most important steps come first. Each step has a limit; --seconds limits all together, and skipped
# steps are reported. Runs the programs beside it (tests/gpu/pack.sh), or else builds them.
# REPORT (gpu-report.txt, in the folder OUT if set): card, driver, date, each step, the figures. It is written step by
# step.
# If WYE_CUDA_DRIVER names the stand-in for the driver, this is a rehearsal: everything runs, and nothing is claimed of
# a card.
set -u
here=$(cd "$(dirname "$0")" && pwd)
seconds=
if [ "${1:-}" = --seconds ]; then seconds=$2 && shift 2; fi
report=${1:-${OUT:+$OUT/}gpu-report.txt}
if [ ! -d "$here/programs" ]; then
  "$here/pack.sh" || exit 1
  exec "$here/../../build/wye-gpu/run.sh" ${seconds:+--seconds "$seconds"} "$report"
fi
case $report in /*) ;; *) report=$PWD/$report ;; esac
cd "$here" || exit 1
logs=$here/logs
rm -rf "$logs"
. ./steps.sh

# NVRTC and cuBLAS: of the toolkit, or of Python's packages.
toolkit=
cublas=
packages=$(python3 -c "import sysconfig; print(sysconfig.get_path('purelib'))" 2>/dev/null)/nvidia
for folder in "${CUDA_HOME:-}" "$(dirname "$(dirname "$(command -v nvcc 2>/dev/null || echo /usr/local/cuda/bin/nvcc)")")" \
  /usr/local/cuda /opt/cuda "$packages"/*; do
  if [ -z "$folder" ]; then continue; fi
  for lib in "$folder/lib64" "$folder/targets/x86_64-linux/lib" "$folder/lib"; do
    if [ -d "$lib" ]; then toolkit=$toolkit:$lib; fi
    for file in "$lib/libcublas.so.13" "$lib/libcublas.so.12"; do
      if [ -z "$cublas" ] && [ -e "$file" ]; then cublas=$file; fi
    done
  done
done
small=
mode=
torch="--device cuda"
torch_libraries=${LD_LIBRARY_PATH:-}  # it brings its own, and finds none of another version
times=1  # what a step may take longer
if [ -n "${WYE_CUDA_DRIVER:-}" ]; then
  # Under the names of the system's driver and cuBLAS.
  driver=$(dirname "$WYE_CUDA_DRIVER")
  cublas=$driver/libraries/standin/libcublas.so.13
  toolkit=:$driver:$driver/libraries/standin$toolkit
  small="--small --benchmark_min_time=0.01"
  torch="--device cpu --small"
  times=4
  mode=", a rehearsal on '${WYE_CUDA_DRIVER##*/}', which is no card"
else
  export WYE_REQUIRE_CARD=1
fi
export LD_LIBRARY_PATH="$here/lib$toolkit${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export WYE_REQUIRE_BACKENDS=cuda
for icd in /usr/share/vulkan/icd.d /etc/vulkan/icd.d /usr/local/nvidia/share/vulkan/icd.d; do
  if [ -z "${VK_DRIVER_FILES:-}" ] && [ -e "$icd/nvidia_icd.json" ]; then export VK_DRIVER_FILES="$icd/nvidia_icd.json"; fi
done

say() { echo "$@" | tee -a "$report"; }
begin=$(date +%s)
# A test program that ran no test proves nothing.
did_something() { "$@" && ! grep -E '^No (test cases matched|tests ran)' "$step_log" >/dev/null; }
# part LIMIT NAME PROGRAM ARGUMENT...: a step with a time limit in seconds; the end of its output is in the report
part() {
  limit=$(($1 * times))
  name=$2
  shift 2
  if [ -n "$seconds" ]; then
    left=$((begin + seconds - $(date +%s)))
    if [ "$left" -lt 10 ]; then say "left out: $name: the time is over" && return; fi
    if [ "$left" -lt "$limit" ]; then limit=$left; fi
  fi
  echo "        $name, $limit s at most" >&2
  step "$name" did_something timeout "$limit" "$@" >"$logs/step.txt"
  tee -a "$report" <"$logs/step.txt"
  grep -hE '^contract:|assertions|test cases|passed|largest|^wye_bench|[Ss]kipped|ERROR SUMMARY' "$step_log" |
    tail -n 6 | cut -c1-200 | sed 's/^/            /' >>"$report"
}
# figures LIMIT NAME [VARIABLE=VALUE...] PROGRAM ARGUMENT...: benchmarks; their output goes to the end of the report
figures() {
  figures_limit=$1
  figures_name=$2
  shift 2
  begun=$steps_passed.$steps_failed
  part "$figures_limit" "$figures_name" env "$@"
  if [ "$begun" = "$steps_passed.$steps_failed" ]; then return; fi  # left out
  sed 's/^/    /' "$step_log" >>"$logs/figures.txt"
  if grep -E "ERROR OCCURRED: '(failed|.*something else)" "$step_log" >>"$report"; then
    say "FAILED           $figures_name: a result is wrong"
    steps_failed=$((steps_failed + 1))
  fi
}

: >"$report"
say "wye $(cat commit.txt) on a card, $(date -u '+%Y-%m-%d %H:%M UTC')$mode"
say "card: $(nvidia-smi --query-gpu=name,memory.total,driver_version,clocks.max.sm --format=csv,noheader 2>/dev/null ||
  echo "${WYE_CUDA_DRIVER:-nvidia-smi does not say}")"
say "host: $(uname -sr), $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'), $(nproc) processors"
say "cuBLAS: ${cublas:-none}"
say ""

only_cuda="env WYE_BACKENDS=cuda,cpu"
part 120 "card: what it is, its memory, its deadlines" $only_cuda programs/wye_gpu_tests
part 240 "contract suite" programs/wye_contract_tests
part 240 "workloads against their references" $only_cuda programs/wye_workloads_tests "~[cuda]"
figures 300 "benchmarks" programs/wye_bench --benchmark_filter='^cuda_' $small --benchmark_repetitions=5
figures 120 "benchmarks of wye's own product, without cuBLAS" WYE_BENCH_CUBLAS="$cublas" \
  LD_LIBRARY_PATH="$here/no-cublas:$LD_LIBRARY_PATH" programs/wye_bench \
  --benchmark_filter='^cuda_matmul_own' $small --benchmark_repetitions=5
if LD_LIBRARY_PATH=$torch_libraries python3 -c "import torch; assert '$torch' != '--device cuda' or torch.cuda.is_available()" \
  2>/dev/null; then
  figures 300 "attention by PyTorch" LD_LIBRARY_PATH="$torch_libraries" python3 -W ignore attention_torch.py $torch
else
  say "left out: attention by PyTorch, which is not there"
fi
part 120 "main job on the card, beside the CPU" $only_cuda programs/document_network --documents documents \
  --backend cuda --compare --out "$logs/report"
# Each one ends CUDA in its process.
programs/wye_gpu_tests "[fatal]" --list-tests --verbosity quiet |
  grep -Ev '^(Matching|All available) |^[0-9]+ matching|^ *\[|^ *$' | sed 's/^ *//' >"$logs/fatal.txt"
while read -r fault <&3; do
  name=$(echo "$fault" | sed 's/,/\\,/g')  # or it would mean "or"
  part 60 "fault: $fault" $only_cuda programs/wye_gpu_tests "$name"
done 3<"$logs/fatal.txt"
part 60 "interop, with a card" programs/wye_interop_tests
for room in data scheduler runtime; do part 60 "$room room, with a card" "programs/wye_${room}_tests"; done
PATH=$PATH:/usr/local/cuda/bin
if [ -n "${WYE_CUDA_DRIVER:-}" ]; then
  say "left out: compute-sanitizer, which needs a driver"
elif command -v compute-sanitizer >/dev/null; then
  # Failing calls are not errors here: tests provoke them, and a kernel's parameters are queried until there are no
  # more.
  for tool in memcheck racecheck synccheck; do
    part 300 "compute-sanitizer $tool, contract suite" compute-sanitizer --tool "$tool" --report-api-errors no \
      --error-exitcode 9 programs/wye_contract_tests -c "on cuda:0"
  done
else
  say "left out: compute-sanitizer is not on the PATH"
fi
say ""
if [ -f "$logs/figures.txt" ]; then tee -a "$report" <"$logs/figures.txt"; fi
say ""
say "$steps_passed passed, $steps_failed failed, $(($(date +%s) - begin)) s"
if [ -n "${OUT:-}" ]; then tar -C "$here" -czf "$OUT/gpu-logs.tar.gz" logs; fi
[ "$steps_failed" = 0 ]
