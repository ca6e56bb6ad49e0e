#!/usr/bin/env bash
# What make install writes can be used: tools/install-check.sh BUILD (make install-check)
#
# Installs into a folder of its own, moves the tree, and there, by pkg-config alone and with nothing from this
# checkout: compiles every example against libfpa, the one of bundles against libfpa-run, shared and static, as C
# and as C++, and runs what fpac gen wrote. Then uninstalls: nothing may be left. One line a claim; status 1.
set -eu

build=$1
make=${MAKE:-make}
cc=${CC:-cc} cxx=${CXX:-c++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FPA_CACHE_DIR=$work/cache
mkdir -m 700 "$FPA_CACHE_DIR"

try() { # CLAIM COMMAND...
    if "${@:2}" >"$work/said" 2>&1; then
        echo "ok    $1"
    else
        echo "FAIL  $1" >&2
        cat "$work/said" >&2
        exit 1
    fi
}
install_tree() { "$make" --no-print-directory BUILD="$build" DESTDIR="$1" "${@:3}" "$2"; }
files_of() { (cd "$1" && find . -type f -o -type l | sort); }

# Folders that differ from the usual ones, as a distribution's do.
folders=(PREFIX=/usr LIBDIR=/usr/lib/some-machine INCLUDEDIR=/usr/include/fpa MANDIR=/usr/man DATADIR=/usr/data)
try "make install DESTDIR= ${folders[*]}" install_tree "$work/staged" install "${folders[@]}"
listed() {
    local file
    for file in bin/fpac include/fpa/fpa.h include/fpa/fpa_error.h lib/some-machine/libfpa.so \
        lib/some-machine/libfpa-run.a lib/some-machine/pkgconfig/fpa.pc lib/some-machine/pkgconfig/fpa-run.pc \
        man/man1/fpac.1 data/bash-completion/completions/fpac data/fpac/specs/tspow.lua \
        data/doc/fpac/LICENSE data/doc/fpac/examples/bundle.c; do
        [ -e "$work/staged/usr/$file" ] || { echo "there is no $file"; return 1; }
    done
}
try "each folder is honoured" listed

# The tree under another name: pkg-config knows where its files are.
tree=$work/moved
mv "$work/staged/usr" "$tree"
export PKG_CONFIG_PATH=$tree/lib/some-machine/pkgconfig
flags() { pkg-config --define-variable=prefix="$tree" "$@"; }
library_folder=$tree/lib/some-machine
examples=$tree/data/doc/fpac/examples
specs=$tree/data/fpac/specs
version_is() { [ "$("$tree/bin/fpac" --version)" = "fpac $(flags --modversion "$1")" ]; }
try "fpa.pc has the version of fpac" version_is fpa
try "fpa-run.pc has it too" version_is fpa-run

# -Werror: the headers give no warning to anybody.
warnings=(-Wall -Wextra -Wpedantic -Werror)
build_example() { # NAME PACKAGE [static]
    local libraries
    libraries=$(flags --libs ${3:+--static} "$2")
    # shellcheck disable=SC2046,SC2086
    "$cc" -std=gnu11 "${warnings[@]}" $(flags --cflags "$2") "$examples/$1.c" -o "$work/$1" $libraries -lm
}
needs() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
lacks() { ! needs "$1" | grep -E "$2"; }

for example in "$examples"/*.c; do
    example=$(basename "$example" .c)
    case $example in bundle | gradient_descent) package=fpa-run ;; *) package=fpa ;; esac
    try "$example.c with lib$package.so" build_example "$example" "$package"
done
try "a program of libfpa-run needs no Lua" lacks "$work/bundle" 'lua|libfpa\.'
try "nor does libfpa-run" lacks "$library_folder/libfpa-run.so" lua

"$tree/bin/fpac" gen "$specs/linear.lua" --head linear_d64 --target c --object -o "$work/models" >/dev/null
try "bundle runs what fpac gen wrote" env LD_LIBRARY_PATH="$library_folder" "$work/bundle" "$work/models" linear_d64
runs_without() { # nothing of the PATH, so that no compiler is found
    env -i FPA_CACHE_DIR="$FPA_CACHE_DIR" LD_LIBRARY_PATH="$library_folder" PATH=/nowhere "$work/bundle" "$work/models"
}
try "without a compiler" runs_without
"$tree/bin/fpac" gen "$specs/trainable.lua" --head trainable_shared --target c --object --backward -o "$work/trained" >/dev/null
try "gradient_descent learns from gradients that fpac gen wrote" env LD_LIBRARY_PATH="$library_folder" "$work/gradient_descent" "$work/trained"
"$tree/bin/fpac" explain "$specs/linear.lua" >/dev/null
try "prefill_decode runs" env LD_LIBRARY_PATH="$library_folder" "$work/prefill_decode" "$specs/linear.lua" linear_d64

# As C++: the header alone, used by every name that it declares.
cat >"$work/open.cc" <<'CC'
#include <fpa.h>
int main(int, char **arguments)
{
    fpa_kernel *kernel = nullptr;
    fpa_error error = {};
    fpa_options options = {};
    fpa_tensors tensors = {};
    (void)tensors;
    fpa_status status = fpa_open_bundle(arguments[1], nullptr, &options, &kernel, &error);
    int code = status || fpa_describe(kernel)->d != 64 || !*fpa_version() || !*fpa_status_name(status);
    fpa_close(kernel);
    return code;
}
CC
build_cxx() { # shellcheck disable=SC2046
    "$cxx" -std=c++17 "${warnings[@]}" $(flags --cflags fpa-run) "$work/open.cc" -o "$work/open" $(flags --libs fpa-run)
}
try "a C++ program with libfpa-run.so" build_cxx
try "runs" env LD_LIBRARY_PATH="$library_folder" "$work/open" "$work/models"

# An engine's build files: make with pkg-config, and CMake. Both programs say the same.
engine=$examples/embed
"$tree/bin/fpac" gen "$specs/trainable.lua" --head trainable_dense --target c:sse2,c:avx2 --object -o "$work/engine" \
    >/dev/null
engine_makes() {
    "$make" --no-print-directory -C "$engine" CC="$cc" CXX="$cxx" PKG_CONFIG="pkg-config --define-variable=prefix=$tree" "$@"
}
engine_cmake() {
    cmake -S "$engine" -B "$work/cmake" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
        -DPKG_CONFIG_ARGN="--define-variable=prefix=$tree" && cmake --build "$work/cmake"
}
engines_agree() { # FOLDER
    export LD_LIBRARY_PATH=$library_folder
    "$1/make_weights" "$work/model.fpaw" &&
        "$1/engine" "$work/engine" trainable_dense "$work/model.fpaw" >"$work/said.c" &&
        "$1/engine_cpp" "$work/engine" trainable_dense "$work/model.fpaw" >"$work/said.cpp" &&
        grep -q '^sequence 1, token 208: ' "$work/said.c" && cmp "$work/said.c" "$work/said.cpp"
}
refuses_weights() { # a file that was cut off
    head -c 200 "$work/model.fpaw" >"$work/cut.fpaw"
    ! LD_LIBRARY_PATH=$library_folder "$engine/engine" "$work/engine" trainable_dense "$work/cut.fpaw" 2>"$work/told" &&
        grep -q 'is no file of weights' "$work/told"
}
try "examples/embed by make and pkg-config" engine_makes
try "its engines in C and C++ say the same" engines_agree "$engine"
try "refuse a file of weights that was cut off" refuses_weights
engine_makes clean >"$work/said"
if command -v cmake >/dev/null 2>&1; then
    try "examples/embed by CMake" engine_cmake
    try "its engines say the same" engines_agree "$work/cmake"
else
    echo "skip  examples/embed by CMake: there is no cmake"
fi

# The line that an emitted file has at its top compiles it.
"$tree/bin/fpac" gen "$specs/linear.lua" --head linear_d64 --target c:sse2,c:avx2 -o "$work/lines" >/dev/null
compile_line() { # FILE: its command, for this compiler and this file
    local line
    line=$(sed -n 's/^ \* Compile: cc \(.*\) THIS_FILE; link .*/\1/p' "$1")
    # shellcheck disable=SC2086
    [ -n "$line" ] && "$cc" $line "$1" -o "$work/emitted.o"
}
try "the compile line of linear_d64.avx2.c" compile_line "$work/lines/linear_d64.avx2.c"

# A tree without shared libraries: pkg-config --static knows what the archives need.
rm "$library_folder"/*.so*
try "bundle.c with libfpa-run.a" build_example bundle fpa-run static
try "runs" "$work/bundle" "$work/models" linear_d64
try "needs no Lua" lacks "$work/bundle" 'lua|libfpa'
try "prefill_decode.c with libfpa.a" build_example prefill_decode fpa static
try "runs" "$work/prefill_decode" "$specs/linear.lua" linear_d64

# The usual folders, where pkg-config finds the prefix by itself.
second=$work/second/opt/fpac
install_tree "$work/second" install PREFIX=/opt/fpac >"$work/said" 2>&1
finds() { [ "$(PKG_CONFIG_PATH=$second/lib/pkgconfig pkg-config --define-prefix --variable="$1" fpa-run)" = "$second/$2" ]; }
try "pkg-config --define-prefix finds a moved tree's headers" finds includedir include
try "and its libraries" finds libdir lib
try "make uninstall" install_tree "$work/second" uninstall PREFIX=/opt/fpac
left=$(files_of "$work/second")
try "leaves nothing" [ -z "$left" ]
