#!/bin/sh
# Builds wye_bench and runs it: bench/run.sh [--quick] [--json FILE | --results | --claims] [FILTER]
# Ends with a table of ratios against the peers. --json writes the same as {"ratios": [...]}; --results keeps both in
# bench/results, named by the day. --quick runs everything for as short as it can: to see that it works, not how fast.
# --claims runs the benchmarks of the figures that wye claims (bench/claims.cpp) and writes bench/results/claims.md. With
# --quick or a filter it prints the table only.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
json=
results=
quick=
claims=
while :; do
  case ${1:-} in
    --quick) quick='--benchmark_repetitions=2 --benchmark_min_time=0.001' ;;
    --json) json=$2 && shift ;;
    --results) results=$root/bench/results/$(date +%F) && json=$results.json ;;
    --claims) claims=$root/bench/results/claims.md ;;
    *) break ;;
  esac
  shift
done
filter=${1:-.}
"$root/cmake/packages.sh" build run tools bench examples
build=${WYE_BENCH_BUILD:-$root/build/bench}
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DWYE_TESTS=OFF -DWYE_EXAMPLES=ON \
  -DWYE_BENCHMARKS=ON >/dev/null
cmake --build "$build" --target wye_bench wye_example_document_network
identity() {
  echo "$(date +%F), commit $(git -C "$root" rev-parse --short HEAD), Release," \
    "$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$build/CMakeCache.txt" | xargs -I{} sh -c '{} --version | head -n 1')," \
    "$(. /etc/os-release && echo "$PRETTY_NAME"); $(nproc) processors ($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1))."
}

if [ -n "$claims" ]; then
  # Without a filter wye_bench selects the rows that the claims need.
  "$build/wye_bench" ${1:+"--benchmark_filter=$1"} $quick "--claims=$build/claims.md" ${json:+"--ratios=$json"}
  if [ -n "$quick${1:-}" ]; then
    cat "$build/claims.md"
    exit 0
  fi
  {
    printf '# Claims\n\n'
    echo 'The figures that the founding documents of wye state, and those of one machine. `bench/run.sh --claims` makes'
    printf 'this file.\n\n'
    identity | fold -s -w 120 | sed 's/ *$//'
    echo
    cat "$build/claims.md"
  } >"$claims"
  echo "The table of claims is in $claims."
  exit 0
fi
if [ -z "$results" ]; then
  exec "$build/wye_bench" "--benchmark_filter=$filter" $quick ${json:+"--ratios=$json"}
fi

"$build/wye_bench" "--benchmark_filter=$filter" $quick "--ratios=$json" >"$results.log"
cat "$results.log"
{
  identity
  echo "bench/run.sh$([ "$filter" = . ] || echo " '$filter'")${quick:+ --quick}; medians of the ratios repetition by repetition."
  sed -n '/^wye, as a multiple of/,$p' "$results.log"
} >"$results.txt"
rm "$results.log"
