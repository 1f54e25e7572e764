#!/bin/sh
# Builds wye_bench and runs it: bench/run.sh [--quick] [--json FILE | --results] [FILTER]
# Ends with a table of ratios against the peers. --json writes the same as {"ratios": [...]}; --results keeps both in
# bench/results, named by the day. --quick runs everything for as short as it can: to see that it works, not how fast.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
json=
results=
quick=
while :; do
  case ${1:-} in
    --quick) quick='--benchmark_repetitions=2 --benchmark_min_time=0.001' ;;
    --json) json=$2 && shift ;;
    --results) results=$root/bench/results/$(date +%F) && json=$results.json ;;
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
if [ -z "$results" ]; then
  exec "$build/wye_bench" "--benchmark_filter=$filter" $quick ${json:+"--ratios=$json"}
fi

"$build/wye_bench" "--benchmark_filter=$filter" $quick "--ratios=$json" >"$results.log"
cat "$results.log"
{
  echo "$(date +%F), commit $(git -C "$root" rev-parse --short HEAD), Release," \
    "$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$build/CMakeCache.txt" | xargs -I{} sh -c '{} --version | head -n 1')," \
    "$(. /etc/os-release && echo "$PRETTY_NAME"); $(nproc) processors ($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1))."
  echo "bench/run.sh$([ "$filter" = . ] || echo " '$filter'")${quick:+ --quick}; medians of the ratios repetition by repetition."
  sed -n '/^wye, as a multiple of/,$p' "$results.log"
} >"$results.txt"
rm "$results.log"
