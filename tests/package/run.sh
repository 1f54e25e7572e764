#!/bin/sh
# Foreign projects against an installed wye: tests/package/run.sh [FOLDER]
# Installs it static (Debug) and shared (Release), moves the installation, hides the source and build trees, and builds
# foreign projects with it. FOLDER is emptied; it keeps a log of each step. WYE_INSTALLED_STATIC names a static installation
# of this source to use; by default, one is made. WYE_PACKAGE=whole, as in .ci/nightly: README's project in each flavour with
# each compiler (otherwise each flavour has one of the compilers), the examples, and the subdirectory's build (otherwise its
# configuration).
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

is_whole() { [ "${WYE_PACKAGE:-}" = whole ]; }
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

install_flavour() { # static|shared TYPE; no step depends on how well a release is optimized
  cmake -S "$work/source" -B "$work/build-$1" -G Ninja -DCMAKE_BUILD_TYPE="$2" \
    -DBUILD_SHARED_LIBS="$([ "$1" = shared ] && echo ON || echo OFF)" -DCMAKE_INSTALL_PREFIX="$work/first-$1" \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=24 -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" \
    -DWYE_TESTS=OFF -DWYE_EXAMPLES=OFF -DWYE_BENCHMARKS=OFF &&
    cmake --build "$work/build-$1" && cmake --install "$work/build-$1" &&
    mkdir -p "$work/moved/far" && mv "$work/first-$1" "$work/moved/far/$1"
}

mkdir "$work/source"
(cd "$root" && git ls-files -z --cached --others --exclude-standard | xargs -0 tar -cf - --ignore-failed-read) |
  tar -xf - -C "$work/source"
if [ -n "${WYE_INSTALLED_STATIC:-}" ]; then
  mkdir -p "$work/moved/far" && mv "$WYE_INSTALLED_STATIC" "$work/moved/far/static" || exit
else
  step "static Debug installs" install_flavour static Debug
fi
step "shared Release installs" install_flavour shared Release
finish >/dev/null || { finish; exit 1; }
mv "$work/source" "$work/source-is-away"
for tree in "$work"/build-*; do mv "$tree" "$tree-is-away"; done

g++ -std=c++20 "$here/plugin/host.cpp" -ldl -o "$work/plugin_host" || exit
no_build_path() { ! grep -rF -e "$work/" -e "$root/" "$prefix"; }
links() { # every installed page is one that links.cmake reads
  pages=$prefix/share/doc/wye
  [ "$(find "$prefix" -name '*.md' | wc -l)" = "$(ls "$pages"/*.md "$pages"/docs/*.md | wc -l)" ] &&
    cmake -D ROOT="$pages" -P "$root/tests/readme/links.cmake"
}
no_empty_folder() { ! find "$prefix" -type d -empty | grep .; }
compiled_by_pkgconfig() { # compiled_by_pkgconfig MODULES OUTPUT SOURCE OPTION...: as README says
  modules=$1 output=$2
  shift 2
  flags=$(PKG_CONFIG_PATH="$pkgconfig" pkg-config $static --cflags --libs $modules) || return
  echo "$flags"
  g++ -std=c++20 "$@" $flags -o "$output"
}
with_pkgconfig() ( # programs of the core alone and of the other libraries, and a plug-in
  folder=$work/pkgconfig-$flavour
  mkdir "$folder" && export LD_LIBRARY_PATH="$libraries" &&
    compiled_by_pkgconfig wye "$folder/core" "$here/core/program.cpp" && "$folder/core" &&
    compiled_by_pkgconfig "wye wye-workloads" "$folder/program" "$here/program.cpp" && "$folder/program" &&
    compiled_by_pkgconfig wye-models "$folder/models" "$here/models.cpp" && "$folder/models" &&
    compiled_by_pkgconfig wye-records "$folder/records" "$here/records.cpp" && "$folder/records" &&
    compiled_by_pkgconfig "wye wye-workloads" "$folder/plugin.so" "$here/plugin/plugin.cpp" -shared -fPIC -fno-gnu-unique &&
    exports_its_own "$folder/plugin.so" && "$work/plugin_host" "$folder/plugin.so"
)
readme() { # readme FOLDER COMPILER: README's CMakeLists.txt and program, as they stand there
  mkdir "$1" &&
    cmake -D README="$root/README.md" -D LANGUAGE=cmake -D OUTPUT="$1/CMakeLists.txt" -P "$root/tests/readme/extract.cmake" &&
    cmake -D README="$root/README.md" -D LANGUAGE=cpp -D OUTPUT="$1/main.cpp" -P "$root/tests/readme/extract.cmake" &&
    foreign "$1" "$1/build" -DCMAKE_CXX_COMPILER="$2" && "$1/build/app"
}
readme_plugin() { # readme_plugin FOLDER COMPILER: the same project, whose program is a plug-in
  cp "$here/plugin/plugin.cpp" "$1/main.cpp" && sed -i 's/add_executable(app /add_library(app MODULE /' "$1/CMakeLists.txt" &&
    foreign "$1" "$1/build" && exports_its_own "$1/build/libapp.so" && "$work/plugin_host" "$1/build/libapp.so" &&
    foreign "$1" "$1/build" -DCMAKE_CXX_VISIBILITY_PRESET=hidden -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON &&
    [ "$(nm -DC --defined-only "$1/build/libapp.so" | cut -d' ' -f2- | grep -v '^[WV] .*std::')" = "T use_wye" ] &&
    "$work/plugin_host" "$1/build/libapp.so"
}
readme_fork() { # readme_fork FOLDER: the same project, whose program forks
  cp "$here/fork.cpp" "$1/main.cpp" && cmake --build "$1/build" && "$1/build/app"
}
exports_its_own() { # exports_its_own PLUGIN: one function, weak symbols that plugin.cpp alone makes, and nothing unique
  if [ ! -f "$work/own" ]; then
    for compiler in "g++ -fno-gnu-unique" clang++; do
      $compiler -std=c++20 -fPIC -I"$prefix/include" -c "$here/plugin/plugin.cpp" -o "$work/own.o" &&
        nm --defined-only "$work/own.o" >>"$work/own" || return
    done
  fi
  nm -D --defined-only "$1" >"$1.exports" || return
  [ "$(grep -v ' [WV] ' "$1.exports" | cut -d' ' -f2-)" = "T use_wye" ] || { grep -v ' [WV] ' "$1.exports" | c++filt; return 1; }
  cut -d' ' -f3 "$work/own" | sort -u >"$work/own.names"
  ! cut -d' ' -f3 "$1.exports" | sort -u | comm -23 - "$work/own.names" | grep .
}
headers_make_nothing_unique() { # apart from libstdc++'s own symbols at -O0, see cmake/wye_targets.cmake
  for source in plugin/plugin.cpp core/program.cpp interop/program.cpp ../../examples/15_fastest_of.cpp; do
    g++ -std=c++20 -fPIC -shared -I"$prefix/include" "$here/$source" -o "$work/unique.so" || return
    nm -DC "$work/unique.so" | grep ' u ' | grep -v ' std::ranges::__cust::' && { echo "$source"; return 1; }
  done
  true
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
other_layout() {
  flags=$(PKG_CONFIG_PATH="$pkgconfig" pkg-config --cflags --libs $static wye)
  g++ -std=c++20 -D_GLIBCXX_DEBUG "$here/other_layout.cpp" $flags -o "$work/layout-$flavour" &&
    said=$(LD_LIBRARY_PATH="$libraries" "$work/layout-$flavour") && echo "$said" && echo "$said" | grep -c "those of the library"
}
mistakes() { # with the sentence beside the deleted function
  compile="g++ -std=c++20 -I$prefix/include -c $here/mistakes.cpp -o $work/mistakes.o"
  $compile && fails_saying "call its value: (*kernel)(x)" $compile -D UNCHECKED &&
    fails_saying "give the container a name" $compile -D TEMPORARY
}
other_standard() {
  fails_saying "wye needs C++20" g++ -std=c++17 -I"$prefix/include" -c "$here/core/program.cpp" -o "$work/older.o" &&
    [ "$(echo "$output" | grep -c "error:")" -le 3 ]
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
  # Debug uses Release and vice versa: the meaning of a header may not depend on the build type.
  if [ "$flavour" = static ]; then
    opposite=Release suffix=a static=--static compilers=g++
  else
    opposite=Debug suffix=so static= compilers=clang++
  fi
  if is_whole; then compilers="g++ clang++"; fi
  step "$flavour: find_package, $opposite consumer, warnings are errors" \
    foreign_program find_package "$work/find-$flavour" -DCMAKE_BUILD_TYPE=$opposite
  step "$flavour: the headers of interop, beside those of others" foreign_program interop "$work/interop-$flavour"
  step "$flavour: versions and components" foreign components "$work/components-$flavour"
  step "$flavour: a missing component is named" \
    fails_saying "This wye has no component 'teleport'; it has core, vulkan, glsl" \
    foreign components "$work/missing-$flavour" -DMISSING=ON
  step "$flavour: kernels compiled at build time, and again when an include changes" kernels
  for compiler in $compilers; do
    step "$flavour: README's project, $compiler" readme "$work/readme-$flavour-$compiler" "$compiler"
    step "$flavour: README's project, $compiler: a child of fork goes on" readme_fork "$work/readme-$flavour-$compiler"
    step "$flavour: README's project as a plug-in, $compiler: unloads without a trace, 30 times" \
      readme_plugin "$work/readme-$flavour-$compiler" "$compiler"
  done
  step "$flavour: pkg-config" with_pkgconfig
  step "$flavour: include folder and libraries alone" without_build_system
  step "$flavour: headers of another version are noticed" other_version
  step "$flavour: other layouts of the standard library are noticed" other_layout
  step "$flavour: no path of the build in what is installed" no_build_path
  step "$flavour: no empty folder" no_empty_folder
  step "$flavour: every link of the installed pages leads to a file" links
done

prefix=$work/moved/far/static
examples() { # of the source that is no longer where it was built
  foreign examples "$work/examples" -DEXAMPLES="$work/source-is-away/examples" || return
  for program in "$work"/examples/[0-9][0-9]_*; do
    (cd "$work/examples" && "$program") || { echo "$program fails."; return 1; }
  done
}
is_whole && step "static: the examples without exceptions and RTTI" examples
step "mistakes in calls are named by the compiler" mistakes
step "headers compiled as C++17 say what they need" other_standard
step "the headers make no unique symbol" headers_make_nothing_unique
step "static: find_package with clang" \
  foreign_program find_package "$work/find-clang" -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug
step "macros of the headers begin with WYE_" "$here/macros.sh" "$work/moved/far/static/include"
step "the shared library exports what exported_symbols.txt lists" \
  "$here/symbols.sh" "$work/moved/far/shared"

mv "$work/source-is-away" "$work/source"
added=$work/add_subdirectory
add_subdirectory() {
  cmake -S "$here/add_subdirectory" -B "$added" -G Ninja -DWYE_SOURCE="$work/source" \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=24 -DWYE_VULKAN=OFF -DWYE_GLSL=OFF && ! ctest --test-dir "$added" -N | grep "Test *#.*wye"
}
add_subdirectory_builds() { # without what can be left out, as the vcpkg port
  cmake --build "$added" && ctest --test-dir "$added" --output-on-failure &&
    cmake --install "$added" --prefix "$work/host" && [ "$(find "$work/host" -type f)" = "$work/host/bin/program" ]
}
prefix=$work/nowhere
step "add_subdirectory leaves its host as it was" add_subdirectory
is_whole && step "add_subdirectory builds and installs what its host does" add_subdirectory_builds
step "FetchContent answers find_package" \
  cmake -S "$here/fetch_content" -B "$work/fetch" -G Ninja -DWYE_SOURCE="$work/source"
# Both of its build types compile the same: ccache takes their folders for one.
step "the vcpkg port installs" env CCACHE_BASEDIR="$root" cmake -D WORK="$work/port" -P "$here/port/rehearse.cmake"

finish
