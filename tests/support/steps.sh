# For scripts with many steps that report at the end how many passed. $logs must name a folder before this is read.
mkdir -p "$logs"
# The user's own cache is not used.
export WYE_CACHE_DIR=none
steps_passed=0
steps_failed=0
steps_flaky=0

# compiled_before: prints "found,all" of the calls of ccache so far.
compiled_before() {
  ccache --print-stats 2>/dev/null |
    awk '/^(direct|preprocessed)_cache_hit\t/ {found += $2; all += $2} /^cache_miss\t/ {all += $2} END {print found + 0 "," all + 0}'
}

# hit_rate BEFORE: prints the share that ccache has found since `compiled_before` printed BEFORE; nothing if it was not called.
hit_rate() {
  echo "$1,$(compiled_before)" | awk -F , '$4 > $2 {printf "%.0f %% of %d", 100 * ($3 - $1) / ($4 - $2), $4 - $2}'
}

# read_cpu: sets $cpu to the seconds of processors that ended children of this shell have taken.
read_cpu() {
  times >"$logs/times" # in this shell: a subshell has no children
  cpu=$(tail -n 1 "$logs/times" | tr 'ms' '  ' | awk '{printf "%d", $1 * 60 + $2 + $3 * 60 + $4}')
}

# step NAME COMMAND...: runs a command, prints its result, its time, its processors' time and ccache's hit rate, and each test
# that was flaky; if it failed, also the lines of its log that name an error, with those after them, and its end. If WYE_STEPS is
# set, a step whose name this pattern of `grep -E` does not match is left out.
step() {
  [ -z "${WYE_STEPS:-}" ] || echo "$1" | grep -qE "$WYE_STEPS" || return 0
  step_name=$1
  shift
  step_log=$logs/$(echo "$step_name" | tr -c 'A-Za-z0-9\n' '_').log
  step_compiled=$(compiled_before)
  read_cpu
  step_cpu=$cpu
  step_begin=$(date +%s)
  if "$@" >"$step_log" 2>&1; then
    steps_passed=$((steps_passed + 1))
    step_result=ok
  else
    steps_failed=$((steps_failed + 1))
    step_result=FAILED
  fi
  step_seconds=$(($(date +%s) - step_begin))
  step_hits=$(hit_rate "$step_compiled")
  read_cpu
  printf '%-7s %5d s %5d CPU s  %s%s\n' "$step_result" $step_seconds $((cpu - step_cpu)) "$step_name" \
    "${step_hits:+ (compiled before: $step_hits)}"
  # Lines that ctest_reporting has printed (tests/support/ctest.sh).
  grep '^flaky: ' "$step_log" | sort -u >"$step_log.flaky"
  steps_flaky=$((steps_flaky + $(wc -l <"$step_log.flaky")))
  cat "$step_log.flaky"
  rm "$step_log.flaky"
  if [ "$step_result" = FAILED ]; then
    {
      grep -nE -A 6 'FAILED|WARNING: .*Sanitizer|ERROR: .*Sanitizer|error:' "$step_log" | head -n 60
      echo ...
      tail -n 40 "$step_log"
    } | sed 's/^/    | /'
  fi
}

# finish: prints the last line; fails if a step failed.
finish() {
  [ "$steps_flaky" = 0 ] || echo "$steps_flaky flaky: each failed once and then passed three times alone."
  echo "$steps_passed passed, $steps_failed failed"
  [ "$steps_failed" = 0 ]
}
