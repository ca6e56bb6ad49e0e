#!/usr/bin/env bash
# clang-tidy on one file: tools/tidy.sh FILE FLAGS... Says nothing when there is nothing to say; else what was
# found, and status 1.
#
# The analyzer follows TIDY_NODES steps of each function's paths (40000; its own limit is 225000, which takes three times as
# long: make tidy TIDY_NODES=225000 before a release).
set -eu

limit=(--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang "--extra-arg=max-nodes=${TIDY_NODES:-40000}")
file=$1
shift
if ! words=$(clang-tidy --quiet "${limit[@]}" "$file" -- "$@" 2>&1); then
    printf '%s\n' "$words" | grep -v ' warnings\? generated\.$\|warnings treated as errors' >&2
    exit 1
fi
