#!/usr/bin/env bash
# The manual page of fpac on stdout: tools/manual.sh FPAC VERSION PAGE.in
#
# In the page, a line @COMMANDS@ becomes the help text of every subcommand, so that the manual tells what --help
# tells; @VERSION@ is the version. No date: the same program gives the same bytes.
set -eu

fpac=$1 version=$2 page=$3

# Text as roff shows it unchanged.
escape() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\\([.']\\)/\\\\\&\\1/"; }

# `fpac NAME --help`: usage, purpose, "options:", a line an option, notes. Notes keep their lines: some are tables.
section() {
    "$fpac" "$1" --help | escape | awk -v name="$1" '
        NR == 1 { sub(/^usage: /, ""); printf ".SS %s\n.B %s\n.PP\n", name, $0; part = "purpose"; next }
        NR == 2 { next }
        /^options:$/ { part = "options"; next }
        part == "options" && /^$/ { part = "notes"; print ".PP\n.nf"; next }
        part == "options" {
            sub(/^ +/, "")
            text = match($0, /  +/) ? substr($0, RSTART + RLENGTH) : ""
            option = text == "" ? $0 : substr($0, 1, RSTART - 1)
            printf ".TP\n.B %s\n%s\n", option, text
            next
        }
        /^$/ { if (part == "notes") print ""; next }
        { print }
        END { if (part == "notes") print ".fi" }'
}

# "  explain   what a head is": the names of all subcommands.
commands() { "$fpac" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'; }

while IFS= read -r line; do
    case $line in
    @COMMANDS@) for name in $(commands); do section "$name"; done ;;
    *) printf '%s\n' "${line//@VERSION@/$version}" ;;
    esac
done <"$page"
