#!/bin/sh
# macros.sh INCLUDE_FOLDER: fails, with their names, if wye's headers define macros that do not begin with WYE_, or
# depend on macros that a consumer may define (peers 12: a class whose size depended on one).
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$1"
grep -rhoE '^#include <[a-z_0-9]+>' wye | sort -u >"$work/standard.cpp"
# Headers that show a vendor's types include its macros, by the user's choice.
find wye -name '*.hpp' ! -path wye/interop/vulkan.hpp ! -path wye/interop/cuda.hpp | sed 's/.*/#include <&>/' >"$work/all.cpp"
cat "$work/standard.cpp" >>"$work/all.cpp"
for unit in standard all; do
  g++ -std=c++20 -I. -dM -E "$work/$unit.cpp" | cut -d' ' -f2 | cut -d'(' -f1 | sort -u >"$work/$unit.macros"
done
grep -q '^WYE_VERSION_MAJOR$' "$work/all.macros"
if comm -13 "$work/standard.macros" "$work/all.macros" | grep -v '^WYE_'; then exit 1; fi

# Conditions may depend on the platform, on the installation's build.hpp, and on whether stdexec is there, in the header for it.
if grep -rnE '^ *# *(if|ifdef|ifndef|elif)' wye | grep -vE '_WIN32|WYE_BUILDING|sender.hpp:[0-9]+:#if __has_include'; then exit 1; fi
