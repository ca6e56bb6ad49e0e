#!/usr/bin/env bash
# What libfpa.so of the wheel needs beside it: tools/wheel-files.sh FOLDER ARCHIVE... (make build/wheel/libfpa.so)
#
# FOLDER has libfpa.so, which looks beside itself ($ORIGIN). Added there: the shared libraries that it needs beyond the C
# library's, and in licenses/ the licences of those and of the ARCHIVEs that it was linked with, as Debian's packages state
# them. Refused is a library that needs a later glibc than Debian 12's, $glibc below.
set -eu

files=$1
shift
glibc=2.36
stop() { echo "wheel-files: $*" >&2; exit 1; }

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
# shellcheck disable=SC2016
readelf -d "$files/libfpa.so" | grep -q 'RUNPATH.*\[\$ORIGIN\]' || stop "libfpa.so does not look beside itself"
