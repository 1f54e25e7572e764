#!/bin/sh
# cmake/wheels.sh SET...: fetches what Debian does not have from PyPI into build/wheels/<set>, pinned by hash: cuda (the
# CUDA Toolkit's headers and NVRTC), ptx (the NVRTC that makes the PTX of wye's own kernels) and slang. Licences of their own apply to both. What is there is not fetched again.
# Where there is no network, or no wheel for this machine, it says so and succeeds: what needs them is then left out.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)

fetch() {
  set=$1
  list=$root/cmake/wheels/$set.txt
  folder=$root/build/wheels/$set
  [ -f "$list" ] || { echo "wheels.sh: no set is called '$set' (cuda, ptx, slang)." >&2; exit 2; }
  cmp -s "$list" "$folder/fetched.txt" && return
  [ "$(uname -m)" = x86_64 ] || { echo "The wheels of '$set' are for x86_64: left out." >&2; return; }
  "$root/cmake/packages.sh" wheels
  rm -rf "$folder"
  mkdir -p "$folder/download"
  echo "Fetching the wheels of '$set' from PyPI"
  platforms=
  for name in manylinux_2_34 manylinux2014 manylinux_2_17 manylinux2010 manylinux_2_12 manylinux1; do
    platforms="$platforms --platform ${name}_x86_64"
  done
  if ! said=$(python3 -m pip --disable-pip-version-check download --no-deps --require-hashes \
    --only-binary=:all: --python-version 3.11 $platforms --dest "$folder/download" -r "$list" 2>&1); then
    echo "$said" | grep -E "Could not fetch|ERROR" | head -n 1 | cut -c 1-300 >&2
    echo "The wheels of '$set' could not be fetched: what needs them is left out." >&2
    rm -rf "$folder"
    return
  fi
  for wheel in "$folder"/download/*.whl; do
    (cd "$folder" && cmake -E tar xf "$wheel") || return
  done
  rm -rf "$folder/download"
  cp "$list" "$folder/fetched.txt"
}

for set in "$@"; do fetch "$set"; done
