#!/bin/sh
# Builds wye_bench and runs it: bench/run.sh [--json FILE] [FILTER]
# Ends with a table of ratios against the peers; --json writes the same as {"ratios": [...]}.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
json=
if [ "${1:-}" = --json ]; then
  json=$2
  shift 2
fi
filter=${1:-.}
"$root/cmake/packages.sh" build run bench
build=${WYE_BENCH_BUILD:-$root/build/bench}
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DWYE_TESTS=OFF -DWYE_EXAMPLES=OFF \
  -DWYE_BENCHMARKS=ON >/dev/null
cmake --build "$build" --target wye_bench
exec "$build/wye_bench" "--benchmark_filter=$filter" ${json:+"--ratios=$json"}
