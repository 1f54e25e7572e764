#!/bin/sh
# Foreign projects against an installed wye: tests/package/run.sh [FOLDER]
# Installs it static (Debug) and shared (Release), moves what was installed, takes source and build trees away, and
# then sees whether others can still use it. FOLDER is emptied; it keeps a log of each step.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${1:-$root/build/package}
rm -rf "$work"
mkdir -p "$work"
work=$(cd "$work" && pwd)
command -v ccache >/dev/null && export CMAKE_CXX_COMPILER_LAUNCHER=ccache

logs=$work/log
. "$root/tests/support/steps.sh"

fails_saying() {
  said=$1
  shift
  output=$("$@" 2>&1) && { echo "It did not fail."; return 1; }
  echo "$output" | tr -s ' \n' '  ' | grep -F -- "$said" || { echo "$output"; return 1; }
}
foreign() { # foreign PROJECT BUILD OPTION...: configures and builds one of the projects here, or of a full path
  case $1 in /*) project=$1 ;; *) project=$here/$1 ;; esac
  build=$2
  shift 2
  cmake -S "$project" -B "$build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" "$@" && cmake --build "$build"
}
foreign_program() { foreign "$@" && "$build/program"; }

install_flavour() { # static|shared TYPE
  cmake -S "$work/source" -B "$work/build-$1" -G Ninja -DCMAKE_BUILD_TYPE="$2" \
    -DBUILD_SHARED_LIBS="$([ "$1" = shared ] && echo ON || echo OFF)" -DCMAKE_INSTALL_PREFIX="$work/first-$1" \
    -DCMAKE_UNITY_BUILD=ON \
    -DWYE_TESTS=OFF -DWYE_EXAMPLES=OFF -DWYE_BENCHMARKS=OFF &&
    cmake --build "$work/build-$1" && cmake --install "$work/build-$1" &&
    mkdir -p "$work/moved/far" && mv "$work/first-$1" "$work/moved/far/$1"
}

mkdir "$work/source"
(cd "$root" && git ls-files -z --cached --others --exclude-standard | xargs -0 tar -cf - --ignore-failed-read) |
  tar -xf - -C "$work/source"
step "static Debug installs" install_flavour static Debug
step "shared Release installs" install_flavour shared Release
finish >/dev/null || { finish; exit 1; }
mv "$work/source" "$work/source-is-away"
for tree in "$work"/build-*; do mv "$tree" "$tree-is-away"; done

no_build_path() { ! grep -rF -e "$work/" -e "$root/" "$prefix"; }
no_empty_folder() { ! find "$prefix" -type d -empty | grep .; }
with_pkgconfig() { # with_pkgconfig PROGRAM OPTION_OF_PKGCONFIG...
  program=$1
  shift
  flags=$(PKG_CONFIG_PATH="$pkgconfig" pkg-config --cflags --libs "$@" wye-workloads) || return
  echo "$flags"
  g++ -std=c++20 "$here/program.cpp" $flags -o "$program" && LD_LIBRARY_PATH="$libraries" "$program"
}
without_build_system() { # the include folder and every library, no macro
  private=
  [ "$flavour" = shared ] ||
    private=$(PKG_CONFIG_PATH="$pkgconfig" pkg-config --static --libs wye-workloads | tr ' ' '\n' | grep -v '^-[lL].*wye')
  g++ -std=c++20 -I"$prefix/include" "$here/program.cpp" "$libraries"/libwye_workloads*.$suffix \
    "$libraries"/libwye*.$suffix $private -o "$work/plain-$flavour" &&
    LD_LIBRARY_PATH="$libraries" "$work/plain-$flavour"
}
other_version() {
  cp -r "$prefix/include" "$work/other-$flavour"
  sed -i 's/\(WYE_VERSION_MINOR\) .*/\1 99/' "$work/other-$flavour/wye/base/build.hpp"
  flags=$(PKG_CONFIG_PATH="$pkgconfig" pkg-config --libs $static wye)
  g++ -std=c++20 -I"$work/other-$flavour" "$here/other_version.cpp" $flags -o "$work/other-$flavour/program" &&
    said=$(LD_LIBRARY_PATH="$libraries" "$work/other-$flavour/program") && echo "$said" &&
    echo "$said" | grep -F "0.99" >/dev/null
}

kernels() { # a copy of the project, of which files are changed
  project=$work/kernels-$flavour
  nvrtc=$root/build/wheels/ptx/nvidia/cuda_nvrtc/lib/libnvrtc.so.12
  [ -e "$nvrtc" ] || nvrtc=
  cp -r "$here/kernels" "$project" && foreign_program "$project" "$project/build" -DNVRTC="$nvrtc" && before=$("$build/program") || return
  cmake --build "$build" | grep -F "no work to do" || return
  sed -i 's/2\.0/3.0/' "$project/shaders/factor.glsl"
  cmake --build "$build" && after=$("$build/program") || return
  [ "$before" = "factor 2" ] && [ "$after" = "factor 3" ] || { echo "It said $before, then $after."; return 1; }
  echo "nonsense" >>"$project/shaders/factor.glsl"
  fails_saying "factor.glsl:3: error: " cmake --build "$build"
}

for flavour in static shared; do
  prefix=$work/moved/far/$flavour
  libraries=$(dirname "$(find "$prefix" -name 'libwye[.d]*' | head -1)")
  pkgconfig=$libraries/pkgconfig
  # Debug uses Release and the other way round: what a header says may not depend on it.
  if [ "$flavour" = static ]; then
    opposite=Release suffix=a static=--static
  else
    opposite=Debug suffix=so static=
  fi
  step "$flavour: find_package, $opposite consumer, warnings are errors" \
    foreign_program find_package "$work/find-$flavour" -DCMAKE_BUILD_TYPE=$opposite
  step "$flavour: the headers of interop, beside those of others" foreign_program interop "$work/interop-$flavour"
  step "$flavour: versions and components" foreign components "$work/components-$flavour"
  step "$flavour: a missing component is named" \
    fails_saying "This wye has no component 'teleport'; it has core, vulkan, glsl" \
    foreign components "$work/missing-$flavour" -DMISSING=ON
  step "$flavour: kernels compiled at build time, and again when an include changes" kernels
  step "$flavour: pkg-config" with_pkgconfig "$work/pkgconfig-$flavour" $static
  step "$flavour: include folder and libraries alone" without_build_system
  step "$flavour: headers of another version are noticed" other_version
  step "$flavour: no path of the build in what is installed" no_build_path
  step "$flavour: no empty folder" no_empty_folder
done

prefix=$work/moved/far/static
examples() { # of the source that is no longer where it was built
  foreign examples "$work/examples" -DEXAMPLES="$work/source-is-away/examples" || return
  for program in "$work"/examples/[0-9][0-9]_*; do
    "$program" || { echo "$program fails."; return 1; }
  done
}
step "static: the examples without exceptions and RTTI" examples
readme() { # the README's CMakeLists.txt and program, as they stand there
  mkdir "$work/readme" &&
    cmake -D README="$root/README.md" -D LANGUAGE=cmake -D OUTPUT="$work/readme/CMakeLists.txt" -P "$root/tests/readme/extract.cmake" &&
    cmake -D README="$root/README.md" -D LANGUAGE=cpp -D OUTPUT="$work/readme/main.cpp" -P "$root/tests/readme/extract.cmake" &&
    foreign "$work/readme" "$work/readme/build" && "$work/readme/build/app"
}
step "static: README's project" readme
if command -v clang++ >/dev/null; then
  step "static: find_package with clang" \
    foreign_program find_package "$work/find-clang" -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug
fi
unloads() { foreign plugin "$work/plugin" && "$work/plugin/host" "$work/plugin/libplugin.so"; }
step "static: a plug-in unloads without a trace, 50 times" unloads
step "macros of the headers begin with WYE_" "$here/macros.sh" "$work/moved/far/static/include"
step "the shared library exports what exported_symbols.txt lists" \
  "$here/symbols.sh" "$work/moved/far/shared"

mv "$work/source-is-away" "$work/source"
add_subdirectory() { # without what can be left out: that too has to build and run
  foreign add_subdirectory "$work/add_subdirectory" -DWYE_SOURCE="$work/source" -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_UNITY_BUILD=ON -DWYE_VULKAN=OFF -DWYE_GLSL=OFF &&
    (cd "$work/add_subdirectory" && ctest --output-on-failure && ! ctest -N | grep -i wye) &&
    cmake --install "$work/add_subdirectory" --prefix "$work/host" &&
    [ "$(find "$work/host" -type f)" = "$work/host/bin/program" ]
}
prefix=$work/nowhere
step "add_subdirectory leaves its host as it was" add_subdirectory
step "FetchContent answers find_package" \
  cmake -S "$here/fetch_content" -B "$work/fetch" -G Ninja -DWYE_SOURCE="$work/source"
step "the vcpkg port installs" cmake -D WORK="$work/port" -P "$here/port/rehearse.cmake"

finish
