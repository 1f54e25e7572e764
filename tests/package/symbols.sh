#!/bin/sh
# symbols.sh PREFIX [--update]: compares what the shared libraries under PREFIX export with exported_symbols.txt, or
# writes that list. A line that goes away breaks programs that were linked before: CHANGELOG has to say why.
set -eu
list=$(dirname "$0")/exported_symbols.txt
now=$(mktemp)
trap 'rm -f "$now"' EXIT
for library in $(find "$1" -name 'libwye*.so' | sort); do
  echo "$(basename "$library"):"
  nm -D --defined-only --demangle "$library" | cut -d' ' -f3- | LC_ALL=C sort -u
done >"$now"
if [ "${2:-}" = --update ]; then
  cp "$now" "$list"
else
  diff "$list" "$now"
fi
