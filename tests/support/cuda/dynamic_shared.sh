#!/bin/sh
# dynamic_shared.sh READELF OBJECT...: writes the source of the dynamic shared memory of the kernels in these objects: all names
# of thread-local memory that they have and nobody defines begin at the same place.
readelf=$1
shift
names=$("$readelf" -sW "$@" | awk '$4 == "TLS" && $7 == "UND" && $8 !~ /twin/ { print $8 }' | sort -u)
cat <<END
#include <cstddef>
asm(R"(
  .pushsection .tbss,"awT",@nobits
  .balign 128
END
for name in $names wye_dynamic_shared; do printf '  .hidden %s\n  .globl %s\n  .type %s,@object\n%s:\n' "$name" "$name" "$name" "$name"; done
cat <<END
  .zero 227 * 1024
  .popsection
)");
extern "C" __thread std::byte wye_dynamic_shared[];
namespace twin {
std::byte* dynamic_shared() { return wye_dynamic_shared; }
}  // namespace twin
END
