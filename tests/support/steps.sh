# For scripts that do many things and say at the end how many went well. Before it is read, $logs names a folder.
mkdir -p "$logs"
# The user's own cache is left alone.
export WYE_CACHE_DIR=none
steps_passed=0
steps_failed=0

# step NAME COMMAND...: runs it, says how it went and how long it took, and shows the end of its log where it failed.
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
  if [ "$step_result" = FAILED ]; then tail -n 60 "$step_log" | sed 's/^/    | /'; fi
}

# finish: the closing line; fails where a step did.
finish() {
  echo "$steps_passed passed, $steps_failed failed"
  [ "$steps_failed" = 0 ]
}
