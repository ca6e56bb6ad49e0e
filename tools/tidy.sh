#!/usr/bin/env bash
# clang-tidy on one file: tools/tidy.sh FILE FLAGS... Says nothing when there is nothing to say; else what was
# found, and status 1.
set -eu

file=$1
shift
if ! words=$(clang-tidy --quiet "$file" -- "$@" 2>&1); then
    printf '%s\n' "$words" | grep -v ' warnings\? generated\.$\|warnings treated as errors' >&2
    exit 1
fi
