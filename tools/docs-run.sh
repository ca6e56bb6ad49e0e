#!/usr/bin/env bash
# Run the commands of tutorials: tools/docs-run.sh FPAC FILE.md...
#
# A document with the line <!-- docs-check: run --> is gone through from its top, in a folder of its own that is empty:
#
#   ```sh            run by bash, a shell a block; the first command that fails is a mistake
#   ```text          what the block of commands before it prints, line by line, on both streams; ... within a line stands
#                    for any characters, alone on a line for any lines
#   <!-- docs-check: file NAME -->   the block behind it is written to NAME
#
# There `fpac` is FPAC, a cache is empty, and `pkg-config fpa-run` knows the library beside FPAC. One line a mistake, with
# document and line; status 1.
set -eu

[ $# -ge 1 ] || { sed -n 's/^# \{0,1\}//; 2,13p' "$0" >&2; exit 2; }
fpac=$(realpath "$1")
shift
build=$(dirname "$fpac")
top=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A library that a sanitizer's calls are in needs the sanitizer (make asan).
sanitizer=$(grep -o -- '-fsanitize=[a-z,]*' <<<"${FPA_CFLAGS:-}" || true)

mkdir -p "$work/bin" "$work/pkgconfig"
mkdir -m 700 "$work/cache"
ln -s "$fpac" "$work/bin/fpac"
cat >"$work/pkgconfig/fpa-run.pc" <<PC
Name: fpa-run
Description: the library of this build
Version: 0
Cflags: -I$top/runtime/api -I$top/base
Libs: $build/libfpa-run.a -lmd -ltommath -lm -ldl -pthread $sanitizer
PC
export PATH=$work/bin:$PATH PKG_CONFIG_PATH=$work/pkgconfig FPA_CACHE_DIR=$work/cache

# The blocks of a document, as files N.sh, N.text, N.file in order, N.line with the line of its fence, N.name of a file.
blocks() {
    awk -v to="$2" '
        function begin(kind) {
            n++; out = sprintf("%s/%03d.%s", to, n, kind); printf "" >out
            print NR >sprintf("%s/%03d.line", to, n)
        }
        /^```/ && block { block = 0; if (out) close(out); out = ""; next }
        /^```/ {
            block = 1
            if (name) { begin("file"); print name >sprintf("%s/%03d.name", to, n); name = "" }
            else if ($0 == "```sh") begin("sh")
            else if ($0 == "```text") begin("text")
            next
        }
        block { if (out) print >out; next }
        /^<!-- docs-check: file [^ ]+ -->$/ { name = $4 }' "$1"
}

# Whether the printed text is the expected one, where ... stands for anything.
same_text() { # EXPECTED PRINTED
    awk '
        function pattern(text) {
            gsub(/[][\\.^$*+?(){}|]/, "\\\\&", text)
            gsub(/\\\.\\\.\\\./, ".*", text)
            return "^" text "$"
        }
        { sub(/[ \t]+$/, "") }
        NR == FNR { want[++wants] = $0; next }
        { line[++lines] = $0 }
        # matches[w]: the wanted lines up to w can be the printed ones so far
        END {
            matches[0] = 1
            for (w = 1; w <= wants && want[w] == "..."; w++) matches[w] = 1
            for (l = 1; l <= lines; l++) {
                for (w = wants; w >= 1; w--) {
                    if (want[w] == "...") matches[w] = matches[w] || matches[w - 1]
                    else matches[w] = matches[w - 1] && line[l] ~ pattern(want[w])
                }
                matches[0] = 0
                for (w = 1; w <= wants; w++) if (want[w] == "..." && matches[w - 1]) matches[w] = 1
            }
            exit !matches[wants]
        }' "$1" "$2"
}

mistakes=0 commands=0
mistake() { # WHAT FILE-TO-SHOW
    echo "${document#"$top"/}:$(cat "${block%.*}.line"): $1"
    sed 's/^/    /' "$2" | tail -n 40
    mistakes=$((mistakes + 1))
}

run_document() {
    local folder=$work/run said=$work/said
    rm -rf "$folder" "$work/blocks"
    mkdir "$folder" "$work/blocks"
    blocks "$document" "$work/blocks"
    : >"$said"
    for block in "$work"/blocks/*.sh "$work"/blocks/*.text "$work"/blocks/*.file; do
        [ -e "$block" ] && echo "$block"
    done | sort >"$work/order"
    while IFS= read -r block <&3; do
        case $block in
        *.file) cp "$block" "$folder/$(cat "${block%.*}.name")" ;;
        *.text) same_text "$block" "$said" || mistake "this is not what is printed:" "$said" ;;
        *.sh)
            commands=$((commands + 1))
            if ! (cd "$folder" && bash -eu -o pipefail "$block") >"$said" 2>&1 </dev/null; then
                mistake "a command fails:" "$said"
                return 0 # what follows needs it
            fi
            ;;
        esac
    done 3<"$work/order"
}

documents=0
for document in "$@"; do
    grep -qxF '<!-- docs-check: run -->' "$document" || continue
    document=$(realpath "$document")
    documents=$((documents + 1))
    run_document
done
if [ $mistakes -gt 0 ]; then
    echo "docs-run: $mistakes mistakes in $documents documents"
    exit 1
fi
echo "docs-run: $documents documents, $commands blocks of commands run"
