#!/bin/sh
# tests/gpu/run.sh [--seconds N] [tests|bench|sanitize]: everything that needs a card, on a machine with a card and its
# driver, offline, in three parts (all, one after the other, if none is named):
#   tests     the card, the contract suite, the workloads, the main job, real faults, the rooms
#   bench     the benchmarks, one process for each family
#   sanitize  the workloads' kernels and the contract suite under compute-sanitizer, if the toolkit has it
# Each part takes 8 minutes at most (--seconds), each step of it has a limit, and the most important steps come first;
# skipped steps are reported. Runs the programs beside it (tests/gpu/pack.sh), or else builds them.
# In the folder OUT, or the current one, each part writes gpu-PART.txt (card, driver, date, each step, the figures) and
# the folder gpu-PART with the output of each step, both as they come: a killed part keeps what it had.
# If WYE_CUDA_DRIVER names the stand-in for the driver, this is a rehearsal: everything runs, with the latencies of a card
# (WYE_STANDIN_LATENCIES), and nothing is claimed of a card.
set -u
here=$(cd "$(dirname "$0")" && pwd)
seconds=480
if [ "${1:-}" = --seconds ]; then seconds=$2 && shift 2; fi
part=${1:-}
case $part in
  '' | tests | bench | sanitize) ;;
  *) echo "run.sh: there is no part '$part' (tests, bench, sanitize)." >&2; exit 2 ;;
esac
if [ ! -d "$here/programs" ]; then
  "$here/pack.sh" || exit 1
  exec "$here/../../build/wye-gpu/run.sh" --seconds "$seconds" $part
fi
if [ -z "$part" ]; then
  result=0
  for part in tests bench sanitize; do "$0" --seconds "$seconds" $part || result=1; done
  exit $result
fi
out=$(mkdir -p "${OUT:-.}" && cd "${OUT:-.}" && pwd) || exit 1
cd "$here" || exit 1
report=$out/gpu-$part.txt
logs=$out/gpu-$part
rm -rf "$logs"
. ./steps.sh
. ./machine.sh

say() { echo "$@" | tee -a "$report"; }
begin=$(date +%s)
# A test program that ran no test proves nothing.
did_something() { "$@" && ! grep -E '^No (test cases matched|tests ran)' "$step_log" >/dev/null; }
# run LIMIT NAME PROGRAM ARGUMENT...: a step with a time limit in seconds; the end of its output is in the report. Returns
# 1 if no time was left for it.
run() {
  limit=$(($1 * times))
  name=$2
  shift 2
  left=$((begin + seconds - $(date +%s)))
  if [ "$left" -lt 10 ]; then say "left out: $name: the time is over" && return 1; fi
  if [ "$left" -lt "$limit" ]; then limit=$left; fi
  echo "        $name, $limit s at most" >&2
  step "$name" did_something timeout -k 5 "$limit" "$@" >"$logs/step.txt"
  tee -a "$report" <"$logs/step.txt"
  grep -hE '^contract:|assertions|test cases|passed|largest|[Ss]kipped|(ERROR|RACECHECK) SUMMARY' "$step_log" |
    tail -n 6 | cut -c1-200 | sed 's/^/            /' >>"$report"
}
# A benchmark that found a wrong result, or that has no figures, fails its family.
wrong() {
  say "FAILED           $1"
  steps_failed=$((steps_failed + 1))
}
# family LIMIT NAME FILTER [VARIABLE=VALUE...]: benchmarks, with their figures in the report
family() {
  family_limit=$1
  family=$2
  filter=$3
  shift 3
  echo "$filter" >>"$logs/filters.txt"
  run "$family_limit" "benchmarks: $family" env "$@" programs/wye_bench --benchmark_filter="$filter" $small \
    --benchmark_repetitions=5 --benchmark_min_time=$least || return
  sed 's/^/    /' "$step_log" | tee -a "$report"
  if grep -E "ERROR OCCURRED: '(failed|.*something else)" "$step_log" >/dev/null; then wrong "$family: a result is wrong"; fi
  env "$@" programs/wye_bench --benchmark_filter="$filter" --benchmark_list_tests=true >"$logs/names.txt" 2>/dev/null
  while read -r name; do
    if grep -F "${name}_median" "$step_log" >/dev/null; then continue; fi
    if grep -E "^$name .*ERROR OCCURRED" "$step_log" >/dev/null; then
      say "left out: $name: $(grep -E "^$name .*ERROR OCCURRED" "$step_log" | head -n 1 | sed "s/.*ERROR OCCURRED: //")"
      if [ -n "${WYE_CUDA_DRIVER:-}" ]; then wrong "$family: no figure of $name in a rehearsal"; fi
    else
      wrong "$family: no figure of $name"
    fi
  done <"$logs/names.txt"
}

part_tests() {
  run 60 "card: what it is, its memory, its deadlines" $only_cuda programs/wye_gpu_tests
  run 90 "contract suite" programs/wye_contract_tests -c "on cuda:0"
  run 120 "workloads against their references" $only_cuda programs/wye_workloads_tests '~[cuda]~[large]~[.]'
  run 60 "products by wye's own kernels, without cuBLAS" env WYE_BACKENDS=cuda,cpu \
    LD_LIBRARY_PATH="$here/no-cublas:$LD_LIBRARY_PATH" programs/wye_workloads_tests '[products]~[large],[matmul]~[large]'
  # Of its own: a process uses cuDNN for a limited number of sizes.
  run 60 "attention by cuDNN" env WYE_BACKENDS=cuda,cpu $of_cudnn programs/wye_workloads_tests '[cudnn]'
  run 60 "attention by wye's own kernels, without cuDNN" env WYE_BACKENDS=cuda,cpu \
    LD_LIBRARY_PATH="$here/no-cublas:$LD_LIBRARY_PATH" programs/wye_workloads_tests '[attention]~[large]'
  run 60 "main job on the card, beside the CPU" $only_cuda programs/document_network --documents documents \
    --backend cuda --compare --out "$logs/report"
  # Each one ends CUDA in its process.
  programs/wye_gpu_tests "[fatal]" --list-tests --verbosity quiet |
    grep -Ev '^(Matching|All available) |^[0-9]+ matching|^ *\[|^ *$' | sed 's/^ *//' >"$logs/fatal.txt"
  while read -r fault <&3; do
    name=$(echo "$fault" | sed 's/,/\\,/g')  # or it would mean "or"
    run 40 "fault: $fault" $only_cuda programs/wye_gpu_tests "$name"
  done 3<"$logs/fatal.txt"
  run 60 "interop, with a card" programs/wye_interop_tests
  # Most of their cases open the card anew.
  for room in data scheduler runtime; do run 120 "$room room, with a card" "programs/wye_${room}_tests" '~[large]~[.]'; done
  run 60 "contract suite, checked" programs/wye_contract_tests -c "on checked(cuda:0)"
  if [ -n "${WYE_CUDA_DRIVER:-}" ]; then
    say "left out: large workloads, and Vulkan, which are for a card"
    return
  fi
  run 60 "large workloads against their references" $only_cuda programs/wye_workloads_tests '[large]~[cuda]~[.]'
  run 60 "contract suite, Vulkan" env WYE_REQUIRE_BACKENDS= programs/wye_contract_tests -c "on vulkan:0"
}

part_bench() {
  export WYE_CACHE_DIR="$here/cache"  # a benchmark sets up several times, and compiles its kernels once
  family 60 copy '^cuda_(copy|roundtrip)'
  family 40 launch '^cuda_dispatch'
  family 40 replay '^cuda_replay'
  family 40 waits '^cuda_wait'
  family 50 matmul '^cuda_matmul_[0-9]'
  family 60 "matmul of 16 bits" '^cuda_matmul_(half|bfloat16)'
  family 70 "matmul by wye's own kernels" '^cuda_matmul_own' WYE_BENCH_CUBLAS="$cublas" \
    LD_LIBRARY_PATH="$here/no-cublas:$LD_LIBRARY_PATH"
  family 70 attention '^cuda_(cached_)?attention_(half_)?[0-9]'
  family 70 "attention by wye's own kernels" '^cuda_attention_own' LD_LIBRARY_PATH="$here/no-cublas:$LD_LIBRARY_PATH"
  family 70 "attention of 16 bits" '^cuda_attention_(bfloat16|half_causal)'
  family 60 softmax '^cuda_(softmax|attention_weights)'
  family 40 axpy '^cuda_axpy'
  family 40 normalize '^cuda_normalize'
  family 40 lanes '^cuda_lane'
  family 40 open '^cuda_open'
  programs/wye_bench --benchmark_filter='^cuda_' --benchmark_list_tests=true 2>/dev/null |
    grep -Ev -f "$logs/filters.txt" >"$logs/names.txt"
  while read -r name; do wrong "$name: no family has it"; done <"$logs/names.txt"
  if LD_LIBRARY_PATH=$torch_libraries python3 -c "import torch; assert '$torch' != '--device cuda' or torch.cuda.is_available()" \
    2>/dev/null; then
    run 90 "attention by PyTorch" env LD_LIBRARY_PATH="$torch_libraries" python3 -W ignore attention_torch.py $torch &&
      sed 's/^/    /' "$step_log" | tee -a "$report"
  else
    say "left out: attention by PyTorch, which is not there"
  fi
}

# checked LIMIT TOOL NAME PROGRAM ARGUMENT...: failing calls are not errors here: tests provoke them, and a kernel's
# parameters are queried until there are no more
checked() {
  checked_limit=$1
  tool=$2
  name=$3
  shift 3
  if [ -n "$sanitizer" ]; then set -- "$sanitizer" --tool "$tool" --report-api-errors no --error-exitcode 9 "$@"; fi
  run "$checked_limit" "$tool, $name" $only_cuda "$@"
}
part_sanitize() {
  if [ -z "$sanitizer" ] && [ -z "${WYE_CUDA_DRIVER:-}" ]; then
    say "left out: compute-sanitizer, which is not on the PATH"
    return
  fi
  if [ -z "$sanitizer" ]; then say "left out: compute-sanitizer, which needs a driver: its programs run without it"; fi
  export LD_LIBRARY_PATH="$here/no-cublas:$LD_LIBRARY_PATH"  # to check wye's own kernels
  for tool in memcheck racecheck synccheck; do
    checked 60 $tool "products" programs/wye_workloads_tests '[products]~[large],[matmul]~[large]'
    checked 60 $tool "attention" programs/wye_workloads_tests '[attention]~[large],[cached_attention]~[large],[transformer]~[large]'
    checked 40 $tool "vectors and rows" programs/wye_workloads_tests \
      '[softmax]~[large],[normalize]~[large],[axpy]~[large],[reduce]~[large],[scan]~[large],[dot]~[large],[norm]~[large],[scale]~[large],[transpose]~[large],[sort]~[large],[top_k]~[large],[quantized]~[large],[rms_norm]~[large],[layer_norm]~[large],[rope]~[large],[silu_multiply]~[large],[embed]~[large],[add_rows]~[large],[segment_mean]~[large]'
  done
  for tool in memcheck racecheck synccheck; do
    checked 40 $tool "graphs and timelines" programs/wye_workloads_tests \
      '[csr_multiply]~[large],[force_layout]~[large],[pagerank]~[large],[similarity]~[large],[timeline]~[large]'
    checked 40 $tool "numbers and pictures" programs/wye_workloads_tests \
      '[collatz]~[large],[thread_simulation]~[large],[render]~[large]'
    checked 60 $tool "contract suite" programs/wye_contract_tests -c "on cuda:0"
  done
}

: >"$report"
say "wye $(cat commit.txt) on a card, part '$part', $(date -u '+%Y-%m-%d %H:%M UTC')$mode"
say "card: $(nvidia-smi --query-gpu=name,memory.total,driver_version,clocks.max.sm --format=csv,noheader 2>/dev/null ||
  echo "${WYE_CUDA_DRIVER:-nvidia-smi does not say}")"
say "host: $(uname -sr), $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'), $(nproc) processors"
say "cuBLAS: ${cublas:-none}"
say "cuDNN: ${cudnn:-none}"
say ""
"part_$part"
say ""
say "$steps_passed passed, $steps_failed failed, $(($(date +%s) - begin)) s"
[ "$steps_failed" = 0 ]
