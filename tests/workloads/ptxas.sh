#!/bin/sh
# ptxas.sh PTXAS FOLDER [TABLE]: writes registers, shared memory and spills of each kernel whose PTX is in FOLDER, for the GPUs
# that use it. With TABLE: fails if that says otherwise, and writes the lines that differ. GPUS: these architectures only.
set -u
ptxas=$1
folder=$2
table=${3-}
code=$(mktemp) made=$(mktemp)
trap 'rm -f "$code" "$made"' EXIT

for gpu in ${GPUS:=75 80 86 89 90 100 120}; do
  for ptx in "$folder"/*.ptx; do
    name=$(basename "$ptx" .ptx)
    made_for=${name##*compute_}
    kernel=${name%.compute_*}
    [ "$gpu" -ge "$made_for" ] || continue
    if [ "$made_for" -lt 80 ] && [ "$gpu" -ge 80 ] && [ -e "$folder/$kernel.compute_80.ptx" ]; then
      continue  # a device uses the newest PTX
    fi
    said=$("$ptxas" -v "-arch=sm_$gpu" "$ptx" -o "$code" 2>&1) || { echo "$ptx for sm_$gpu: $said" >&2; exit 1; }
    echo "sm_$gpu $kernel compute_$made_for:" $(echo "$said" | sed -n -e 's/.*Used \([0-9]*\) registers.*/\1 registers/p' \
      -e 's/.* \([0-9]*\) bytes spill stores.*/\1 bytes spilled/p') $(echo "$said" | grep -o '[0-9]* bytes smem')
  done
done >"$made"

[ -n "$table" ] || { cat "$made"; exit; }
[ -s "$made" ] || { echo "ptxas.sh: $folder has no PTX."; exit 1; }
grep -E "^sm_($(echo $GPUS | tr ' ' '|')) " "$table" | diff - "$made" || {
  echo "Kernels need other resources than $table says (<). To write it again: ptxas.sh PTXAS FOLDER >TABLE"
  exit 1
}
echo "$(wc -l <"$made") kernels for GPUs, as in the table."
