#!/usr/bin/env bash
# cc, or gcc, for the programs of `make test`: an emitted kernel that one of them has had compiled, with the same options, is not
# compiled again for the next. tools/run-tests.sh puts it first on the PATH, as build/tests/bin/cc and gcc. What is no kernel of
# one file (... -o NAME.so NAME.c -lm), what is refused and what the compiler says something of goes to the compiler. Texts are one that
# differ in the comment that they begin with alone: in the file that their head stands in.
#
# What is compiled without optimisation (tests/c_hurry.h) is so for tests whose claims are about other things than what a compiler makes of it: clang, where
# it is, takes half of gcc's time for it. What it refuses or says something of goes to gcc, too. gcc's are -Og and -O2, and of each function its warnings (test_emit.c).
here=$(dirname "$0")
compiler=$(PATH=${PATH//"$here:"/} command -v "${0##*/}") || exit 127
code=${*: -2:1} object=${*: -3:1}
[[ $code == *.c && $object == *.so && -f $code ]] || exec "$compiler" "$@"

IFS= read -r first <"$code" || exec "$compiler" "$@"
beginning=
if [[ $first == '/*'* && $first != *'*/'* ]]; then beginning='1,/\*\//d'; fi
brief=
if [[ " $* " == *' -O0 '* && $* != *-fsanitize=* ]]; then brief=$(command -v clang) || brief=; fi
key=$({ stat -L -c '%s %y' "$compiler" $brief && printf '%s\n' "$compiler" "$@" && sed "$beginning" "$code"; } | sha256sum)
kept=$here/../compiled/${key%% *}.cc
if [ -f "$kept" ] && cp "$kept" "$object" 2>/dev/null; then
    touch "$kept" # run-tests.sh deletes what nobody has used for days
    exit 0
fi
# What is compiled without optimisation (tests/c_hurry.h) is linked in half the time, where there is that linker.
linker=()
if [[ " $* " == *' -O'[0g]' '* ]] && command -v ld.gold >/dev/null; then linker=(-fuse-ld=gold); fi
said=
status=1
if [ -n "$brief" ]; then
    said=$("$brief" "${linker[@]}" "$@" 2>&1)
    status=$?
fi
if [ $status -ne 0 ] || [ -n "$said" ]; then
    said=$("$compiler" "${linker[@]}" "$@" 2>&1)
    status=$?
fi
if [ -n "$said" ]; then
    printf '%s\n' "$said" >&2
elif [ $status -eq 0 ] && mkdir -p "${kept%/*}" && cp "$object" "$kept.$$"; then
    mv "$kept.$$" "$kept"
fi
exit $status
