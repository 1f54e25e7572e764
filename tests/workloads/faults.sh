#!/bin/sh
# faults.sh [WORD]: plants the faults of faults.txt in kernels. See tests/faults.sh.
root=$(cd "$(dirname "$0")/../.." && pwd)
exec "$root/tests/faults.sh" "$root/tests/workloads/faults.txt" "$@"
