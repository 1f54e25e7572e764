# For scripts with many steps that report at the end how many passed. $logs must name a folder before this is read.
mkdir -p "$logs"
# The user's own cache is not used.
export WYE_CACHE_DIR=none
steps_passed=0
steps_failed=0

# step NAME COMMAND...: runs a command, prints its result and time; if it failed also the lines of its log that name
# an error, with those after them, and its end.
step() {
  step_name=$1
  shift
  step_log=$logs/$(echo "$step_name" | tr -c 'A-Za-z0-9\n' '_').log
  step_begin=$(date +%s)
  if "$@" >"$step_log" 2>&1; then
    steps_passed=$((steps_passed + 1))
    step_result=ok
  else
    steps_failed=$((steps_failed + 1))
    step_result=FAILED
  fi
  printf '%-7s %5d s  %s\n' "$step_result" $(($(date +%s) - step_begin)) "$step_name"
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
  echo "$steps_passed passed, $steps_failed failed"
  [ "$steps_failed" = 0 ]
}
