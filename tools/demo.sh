#!/usr/bin/env bash
# The demonstration: tools/demo.sh BUILD
#
# Compiles and verifies every head in specs/, measures each form, then lets heads of growing
# state memorise a real text. Ends with the status of the verification.
set -eu

build=$1
echo "Every head in specs/: compiled here, compared with the formula in double precision, measured."
echo "error: largest error over largest result; of bound: share of the error bound; rms: over plain float32;"
echo "ns/token/head: with one head on each of the $(nproc) cores."
echo
status=0
"$build/fpac" verify --time specs/*.lua || status=$?
echo
echo "What a state is for: each word of a text is stored with its successor, then all are asked again."
echo
"$build/examples/recall" ${RECALL_TEXT:+"$RECALL_TEXT"}
exit $status
