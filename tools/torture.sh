#!/usr/bin/env bash
# Attacks on fpac: tools/torture.sh BUILD SECONDS SEED [KIND]; SEED 0: a new one, which is printed.
#
# BUILD/torture plays the cases (tests/torture) and prints a table of what was tried and what held. A case that did
# not hold leaves a folder below BUILD/torture-cases, in which `command` repeats it from the top of the sources.
set -eu

build=$1
TORTURE_SOURCE=$PWD
TORTURE_FUZZERS=$(realpath "${TORTURE_FUZZERS:-$build}")
# a case of the fuzzers takes about a tenth of the time
TORTURE_FUZZ_SECONDS=$(($2 / 20 < 1 ? 1 : $2 / 20 > 20 ? 20 : $2 / 20))
export TORTURE_SOURCE TORTURE_FUZZERS TORTURE_FUZZ_SECONDS
# specs that only the budget of specs ends take half a minute each
if [ "$2" -ge 300 ]; then export TORTURE_ENDLESS=1; fi
exec "$build/torture" "$2" "$3" "$build/torture-cases" ${4:+"$4"}
