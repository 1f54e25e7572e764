#!/bin/sh
# Writes bench/traces/recorded.cpp anew: which kernels the tests of the workloads ask a Vulkan device for, in their order.
# A cache that keeps nothing tells of each request in its log.
# bench/traces/record.sh [TREE]: the build tree whose tests are run, build/dev unless named.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
tree=${1:-$root/build/dev}
said=$(mktemp)
trap 'rm -f "$said"' EXIT
WYE_CACHED_KERNELS=0 WYE_CACHE_DIR=none WYE_LOG=warning,cache=debug "$tree/tests/wye_workloads_tests" >"$said" 2>&1
sed -n "s/.*cache: Kernel '\([^']*\)' for 'vulkan:.*/\1/p" "$said" | awk '
  !($1 in letter) { letter[$1] = sprintf("%c", 97 + count); name[count++] = $1 }
  { requests = requests letter[$1] }
  END {
    print "// Made by bench/traces/record.sh: " length(requests) " requests of " count " kernels."
    print "#include \"traces/trace.hpp\"\n"
    print "namespace wye_bench {\nnamespace recorded {\n"
    print "// clang-format off"
    print "constexpr std::string_view names[] = {"
    for (i = 0; i < count; ++i) print "    \"" name[i] "\","
    print "};"
    print "const std::span<const std::string_view> kernels = names;"
    printf "const std::string_view requests ="
    for (i = 1; i <= length(requests); i += 100) printf "\n    \"%s\"", substr(requests, i, 100)
    print ";\n// clang-format on\n"
    print "}  // namespace recorded\n}  // namespace wye_bench"
  }' >"$root/bench/traces/recorded.cpp"
