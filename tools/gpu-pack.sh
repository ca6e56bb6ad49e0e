#!/usr/bin/env bash
# Pack programs for a machine that has a GPU but no Lua, CMocka or package registry.
#
#   tools/gpu-pack.sh BUILD PROGRAM...     into BUILD/gpu (make gpu-pack: those that need a GPU)
#
# Copies fpac, the tests given, CMocka's library and what Python loads (the wheel's libfpa and the libraries beside it),
# without debug symbols, and checks that they need nothing but the C library and themselves. How to run them there:
# CONTRIBUTING.md.
set -eu

build=$1
shift
pack=$build/gpu
limit_mib=100

mkdir -p "$pack/tests" "$pack/examples"
rm -f "$pack"/fpac "$pack"/*.so* "$pack"/tests/test_* "$pack"/tests/*.so.* "$pack"/examples/*

strip -o "$pack/fpac" "$build/fpac"
for program in "$@"; do strip -o "$pack/${program#"$build"/}" "$program"; done

# The tests look beside themselves ($ORIGIN) for it.
cmocka=$(ldd "$1" | awk '$1 ~ /^libcmocka/ {print $3; exit}')
if [ ! -f "$cmocka" ]; then
    echo "gpu-pack: $1 is not linked to libcmocka" >&2
    exit 1
fi
cp -L "$cmocka" "$pack/tests/${cmocka##*/}"

# The wheel's library looks beside itself, too.
cp -L "$build"/wheel/*.so* "$pack/"

needs() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
bad=0
for program in "$pack"/fpac "$pack"/bench_* "$pack"/tests/* "$pack"/examples/*; do
    [ -e "$program" ] || continue
    for library in $(needs "$program"); do
        case $library in
        libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | ld-linux*) ;;
        libcmocka.so.*) [ -e "$pack/tests/$library" ] || bad=1 ;;
        *)
            echo "gpu-pack: $program needs $library, which the other machine may lack" >&2
            bad=1
            ;;
        esac
    done
done
for test in "$pack"/tests/test_*; do
    if ! readelf -d "$test" | grep -q 'R.*PATH.*\$ORIGIN'; then
        echo "gpu-pack: $test does not look for libraries beside itself" >&2
        bad=1
    fi
done
[ $bad -eq 0 ] || exit 1

size=$(du -sk "$pack" | awk '{print int(($1 + 1023) / 1024)}')
glibc=$(readelf -V "$pack"/fpac "$pack"/tests/* 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
if [ "$size" -ge $limit_mib ]; then
    echo "gpu-pack: $pack has $size MiB; at most $limit_mib are meant to travel" >&2
    exit 1
fi
echo "$pack: fpac and $# programs, $size MiB, for ${glibc:-any C library} and later"
