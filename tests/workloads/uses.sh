#!/bin/sh
# tests/workloads/uses.sh FOLDER: fails if src/workloads/uses.cmake lacks a use. FOLDER has the objects of src/workloads, one for
# each file: build/clang/src/CMakeFiles/wye_workloads.dir/workloads.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
{
  sed -n 's/^set(\([a-z_]*\)_uses \(.*\))$/uses \1 \2/p' "$root/src/workloads/uses.cmake"
  nm -A --format=posix "$1"/*.o
} | awk '
  $1 == "uses" { for (i = 3; i <= NF; i++) uses[$2, ++count[$2]] = $i; next }
  {
    workload = $1
    sub(/^.*\//, "", workload)
    sub(/(_cpu|_reference)?(\.cpp)?\.o:$/, "", workload)
    workloads[workload]
    if ($3 ~ /^[TWVDBR]$/) definers[$2] = definers[$2] " " workload
    if ($3 == "U") needed[workload, $2]
  }
  function reach(workload, i) {
    if (workload in reached) return
    reached[workload]
    for (i = 1; i <= count[workload]; i++) reach(uses[workload, i])
  }
  END {
    for (workload in workloads) {
      split("", reached)
      reach("steps"); reach("rows"); reach(workload)
      for (key in needed) {
        split(key, parts, SUBSEP)
        if (parts[1] != workload || !(parts[2] in definers)) continue
        total = split(definers[parts[2]], names, " ")
        found = 0
        for (i = 1; i <= total; i++) if (names[i] in reached) found = 1
        if (!found) { print workload " uses" definers[parts[2]] ": " parts[2]; status = 1 }
        seen++
      }
    }
    if (!seen) { print "There is no object with a use."; status = 1 }
    exit status
  }'
