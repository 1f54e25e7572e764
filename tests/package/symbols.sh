#!/bin/sh
# symbols.sh PREFIX [--update]: compares the exports of the shared libraries under PREFIX with exported_symbols.txt, or
# writes that list. A removed line breaks programs that were linked before: CHANGELOG has to give the reason.
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
