#!/usr/bin/env bash
# The wheel of the Python package: tools/wheel.sh BUILD ARCHIVE... (make wheel), dist/fpac-VERSION-py3-none-PLATFORM.whl
#
# BUILD/wheel has libfpa.so, which looks beside itself ($ORIGIN). Added there: the shared libraries that it needs beyond
# the C library's, and the licences of those and of the ARCHIVEs that it was linked with, as Debian's packages state them.
# The platform is manylinux_2_N, glibc 2.36 as Debian 12 has it: refused is a library that needs a later one.
# pip fetches the backend (hatchling) from PyPI. The same sources and packages give the same bytes.
set -eu

build=$1
shift
files=$build/wheel
python=${PYTHON:-python3}
glibc=2.36
stop() { echo "wheel: $*" >&2; exit 1; }

needs() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
is_c_library() { case $1 in libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | ld-linux*) ;; *) return 1 ;; esac; }

# The copyright file of the package that a file is from: Debian's, with the whole licence.
licence() { # FILE NAME
    local package
    package=$(dpkg -S "$(realpath "$1")" 2>/dev/null | cut -d : -f 1) || stop "no Debian package has $1: whose licence?"
    [ -f "/usr/share/doc/$package/copyright" ] || stop "$package has no copyright file"
    install -D -m 644 "/usr/share/doc/$package/copyright" "$files/licenses/$2.txt"
}

# Shared libraries beside it, and theirs.
carry() { # FILE
    local name path
    for name in $(needs "$1"); do
        is_c_library "$name" && continue
        path=$(ldd "$1" | awk -v name="$name" '$1 == name {print $3}')
        [ -f "$path" ] || stop "$1 needs $name, which is not found"
        [ -e "$files/$name" ] && continue
        licence "$path" "${name%%.so*}"
        strip -o "$files/$name" "$path"
        carry "$path"
    done
}

rm -rf "$files"/licenses "$files"/*.so.*
carry "$files/libfpa.so"
for archive in "$@"; do
    name=${archive##*/}
    licence "$archive" "${name%.a}"
done
for library in "$files"/*.so*; do
    newest=$(objdump -T "$library" | grep -o 'GLIBC_[0-9.]*' | cut -d _ -f 2 | sort -V | tail -1)
    [ "$(printf '%s\n' "$newest" $glibc | sort -V | tail -1)" = $glibc ] || stop "$library needs glibc $newest, not $glibc"
done
readelf -d "$files/libfpa.so" | grep -q 'RUNPATH.*\[\$ORIGIN\]' || stop "libfpa.so does not look beside itself"

FPAC_WHEEL_FILES=$(realpath "$files") FPAC_WHEEL_PLATFORM=manylinux_${glibc/./_}_$(uname -m)
export FPAC_WHEEL_FILES FPAC_WHEEL_PLATFORM
rm -f dist/fpac-*.whl
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
ls dist/fpac-*.whl
