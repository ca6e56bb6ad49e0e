#!/usr/bin/env bash
# What the documents say holds: tools/docs-check.sh FPAC [FILE.md...]; without files, every document of the tree.
#
#   links      [text](path#anchor): the file exists, relative to the document; the heading, too
#   commands   `fpac COMMAND --option ...`, also in blocks: `FPAC COMMAND --help` knows both
#   targets    `make TARGET`: the Makefile has it
#   paths      `folder/file` in backticks and in commands, below a folder of the tree: there is one; * is a pattern
#   tutorials  run, with what they print: tools/docs-run.sh
#
# Words in capitals (NAME, DATE, DIR), <..>, {..} and $.. are places that a reader fills in. Blocks of ```text are
# output, which is not read. Between the lines
# <!-- docs-check: planned --> and <!-- docs-check: end --> paths may be missing. One line a mistake; status 1.
set -eu

[ $# -ge 1 ] || { sed -n 's/^# \{0,1\}//; 2,12p' "$0" >&2; exit 2; }
fpac=$(realpath "$1")
shift
files=("$@")
top=$(cd "$(dirname "$0")/.." && pwd)
for i in "${!files[@]}"; do files[i]=$(realpath "${files[i]}"); done
cd "$top"
if [ ${#files[@]} -eq 0 ]; then
    mapfile -t files < <(find . -name '*.md' -not -path './build/*' -not -path './.git/*' | sed 's|^\./||' | sort)
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$fpac" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' >"$work/commands"
while read -r command; do
    { "$fpac" "$command" --help | grep -oE '^  -[-a-z]+' | tr -d ' '; echo -h; } >"$work/options.$command"
done <"$work/commands"
grep -oE '^[a-z][a-z-]*( [a-z-]+)*:' Makefile | tr -d : | tr ' ' '\n' | sort -u >"$work/targets"
# Folders of the tree: what a path may begin with.
find . -mindepth 1 -maxdepth 1 -type d -not -name '.*' -not -name build | sed 's|^\./||' >"$work/folders"

# What is asked for each word is a table of this shell: a process a word would take longer than all else.
declare -A is_command is_option is_target is_folder is_anchor has_anchors
while read -r word; do is_command[$word]=1; done <"$work/commands"
for command in "${!is_command[@]}"; do
    while read -r word; do is_option[$command $word]=1; done <"$work/options.$command"
done
while read -r word; do is_target[$word]=1; done <"$work/targets"
while read -r word; do is_folder[$word]=1; done <"$work/folders"

# The anchors of a document, as GitHub makes them; a repeated heading gets -1, -2 ...
anchors() {
    awk '/^```/ { block = !block } !block && /^#+ / {
        text = tolower($0); sub(/^#+ +/, "", text); sub(/ +$/, "", text)
        gsub(/[^a-z0-9 _-]/, "", text); gsub(/ /, "-", text)
        print seen[text]++ ? text "-" seen[text] - 1 : text }' "$1"
}

# Whether a document has such a heading.
has_anchor() { # FILE ANCHOR
    local anchor
    if [ -z "${has_anchors[$1]:-}" ]; then
        has_anchors[$1]=1
        while read -r anchor; do is_anchor[$1#$anchor]=1; done < <(anchors "$1")
    fi
    [ -n "${is_anchor[$1#$2]:-}" ]
}

# One line an item: LINE<tab>link|code|planned<tab>TEXT. code: a span in backticks or a line of a block.
items() {
    awk -v OFS='\t' '
        /<!-- docs-check: planned -->/ { planned = 1 }
        /<!-- docs-check: end -->/ { planned = 0 }
        function code(text) { print NR, planned ? "planned" : "code", text }
        /^ *```/ { block = !block; output = block && /```text/; next }
        output { next }
        block || /^    [^ ]/ && (blank || indented) {
            text = $0; sub(/^ +/, "", text); code(text); indented = 1; blank = 0; next }
        { indented = 0; blank = /^ *$/ }
        {
            rest = $0
            while (match(rest, /`[^`]+`/)) {
                code(substr(rest, RSTART + 1, RLENGTH - 2))
                rest = substr(rest, 1, RSTART - 1) " " substr(rest, RSTART + RLENGTH)
            }
            while (match(rest, /\]\([^)]+\)/)) {
                print NR, "link", substr(rest, RSTART + 2, RLENGTH - 3)
                rest = substr(rest, RSTART + RLENGTH)
            }
        }' "$1"
}

mistakes=0 checked=0
mistake() { # what, at $document:$line
    echo "${document#"$top"/}:$line: $1"
    mistakes=$((mistakes + 1))
}

check_link() {
    local path=${1%%#*} anchor='' file
    case $1 in http://* | https://* | mailto:*) return ;; *'#'*) anchor=${1#*#} ;; esac
    checked=$((checked + 1))
    file=$document
    if [ -n "$path" ]; then
        case $document in */*) file=${document%/*}/$path ;; *) file=./$path ;; esac
    fi
    if [ ! -e "$file" ]; then
        mistake "links to $1, which does not exist"
    elif [ -n "$anchor" ] && ! has_anchor "$file" "$anchor"; then
        mistake "links to $1, but $file has no such heading"
    fi
}

filled_in() { [[ $1 =~ [A-Z]{2,} || $1 == *['<>{}$']* ]]; }

# A word of a span or a command, when it begins with a folder of the tree.
check_path() {
    local path=${1#./}
    path=${path%%:*} path=${path%%#*} path=${path%[.,;)]}
    [[ $path == [^/]*/* && -n ${is_folder[${path%%/*}]:-} ]] || return 0
    filled_in "${path//README/}" || [ "$path" = specs/mine.lua ] && return 0
    checked=$((checked + 1))
    compgen -G "$path" >/dev/null || mistake "names $path, which does not exist"
}

check_paths() {
    local word
    for word in $1; do
        word=${word#[\(\[\"]}
        word=${word%%[\]\"]*}
        check_path "$word"
    done
}

# fpac COMMAND words: command and options.
check_fpac() {
    local command=$1 word
    shift
    case $command in --help | --version | '') return ;; esac
    filled_in "$command" && return
    checked=$((checked + 1))
    if [ -z "${is_command[$command]:-}" ]; then
        mistake "fpac $command: there is no such command"
        return
    fi
    for word in "$@"; do
        word=${word#[} word=${word%%=*} word=${word%%]*} word=${word%[,;:]}
        [[ $word == -* && -z ${is_option[$command $word]:-} ]] &&
            mistake "fpac $command $word: there is no such option"
    done
    return 0
}

check_make() {
    local word
    for word in "$@"; do
        word=${word%[,;:]}
        [[ $word == *=* || $word == -* ]] && continue
        [[ $word =~ ^[a-z][a-z0-9-]*$ ]] || continue
        checked=$((checked + 1))
        [ -n "${is_target[$word]:-}" ] || mistake "make $word: there is no such target"
    done
}

# A span or a line: each command in it, up to a comment.
check_code() {
    local text=${1%% \#*} part words
    text=${text//&&/;}
    while IFS= read -r part; do
        read -ra words <<<"$part" || true
        while [ ${#words[@]} -gt 0 ] && [[ ${words[0]} == '$' || ${words[0]} =~ ^[A-Z_]+= ]]; do
            words=("${words[@]:1}")
        done
        [ ${#words[@]} -gt 0 ] || continue
        case ${words[0]} in
        fpac | */fpac) check_fpac "${words[1]:-}" "${words[@]:2}" ;;
        make) check_make "${words[@]:1}" ;;
        esac
    done <<<"${text//[;|]/$'\n'}"
}

set -f # words of documents are no patterns of ours
for document in "${files[@]}"; do
    while IFS=$'\t' read -r line kind text; do
        case $kind in
        link) check_link "$text" ;;
        code) check_code "$text"; check_paths "$text" ;;
        planned) check_code "$text" ;;
        esac
    done < <(items "$document")
done
if [ $mistakes -gt 0 ]; then
    echo "docs-check: $mistakes mistakes in ${#files[@]} documents"
    exit 1
fi
echo "docs-check: ${#files[@]} documents, $checked links, commands and names hold"
set +f
tools/docs-run.sh "$fpac" "${files[@]}"
