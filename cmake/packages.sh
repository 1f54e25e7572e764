#!/bin/sh
# cmake/packages.sh PURPOSE...: installs the Debian packages a purpose needs, those that are missing only.
# CONTRIBUTING.md lists the purpose of each package.
set -eu

packages() {
  case $1 in
    build) echo g++ cmake ninja-build pkg-config libfmt-dev nlohmann-json3-dev libsodium-dev libxxhash-dev libvulkan-dev \
      libhwy-dev libutf8proc-dev libshaderc-dev glslang-dev spirv-tools spirv-headers ;;
    run) echo libvulkan1 mesa-vulkan-drivers ;;
    tools) echo libcli11-dev ;;
    examples) echo libcairo2-dev libcli11-dev ;;
    tests) echo catch2 vulkan-validationlayers lld ;;
    bench) echo libbenchmark-dev libopenblas0-serial libtbb-dev libcli11-dev ;;
    ci) echo git ccache clang clang-format libclang-rt-14-dev lld llvm binutils debootstrap doxygen ;;
    wheels) echo python3-pip ;;
    *) echo "packages.sh: no purpose is called '$1' (build, run, tools, examples, tests, bench, ci, wheels)." >&2
       exit 2 ;;
  esac
}

wanted=
for purpose in "$@"; do
  names=$(packages "$purpose")
  wanted="$wanted $names"
done
if ! command -v dpkg-query >/dev/null; then
  echo "This is not Debian: wye needs what Debian calls$wanted." >&2
  exit 0
fi

# One look into dpkg's own list: apt is not called if nothing is missing.
present=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^installed //p' || true)
missing=
for package in $wanted; do
  case "
$present
" in *"
$package
"*) ;; *) missing="$missing $package" ;; esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null; then
  as_root=sudo
else
  echo "Packages are missing and this user is neither root nor has sudo:$missing" >&2
  exit 1
fi
echo "Installing$missing"
$as_root apt-get -qq update
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends install $missing >/dev/null
