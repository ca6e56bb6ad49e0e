# Completion of fpac in bash. It offers what `fpac --help`, `fpac COMMAND --help` and `fpac list` say.

# The words that `fpac --help` lists: subcommands.
_fpac_commands() { "$1" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'; }

# The options of a subcommand; and whether one of them takes a value.
_fpac_options() { "$1" "$2" --help 2>/dev/null | sed -n 's/^  \(-[-a-z]*\) .*/\1/p'; }
_fpac_takes_value() { "$1" "$2" --help 2>/dev/null | grep -q -e "^  $3 [A-Z]"; }

# The heads of the specs among words: FPAC WORD...
_fpac_heads() {
    local fpac=$1 word
    shift
    for word; do
        case $word in *.lua) "$fpac" list "${word/#\~\//$HOME/}" 2>/dev/null | sed 's/ .*//' ;; esac
    done
}

# Where code is written its target has to be named; where it is run, c and cuda are the best here.
_fpac_targets() {
    if [ "$2" != gen ]; then printf 'c\ncuda\n'; fi
    "$1" list 2>/dev/null | sed -n 's/^\(c:[^ ]*\|cuda:[^ ]*\) .*/\1/p'
}

# The words that may follow an option: FPAC COMMAND OPTION WORD...; status 1: a file, or anything.
_fpac_values() {
    case $3 in
    --head) _fpac_heads "$1" "${@:4}" ;;
    --target) _fpac_targets "$1" "$2" ;;
    --form) printf 'auto\nparallel\nchunked\nrecurrent\n' ;;
    --dtype) printf 'f32\nbf16\nf16\n' ;;
    --dump) printf 'head\nsimplified\nplan\nsource\n' ;;
    --normalize) printf 'none\nsum\nmax\none_plus_sum\n' ;;
    --family) printf 'tspow\nlinear\ngated\npower\nspow\ntaylor\ninhomogeneous\nproduct\nelu\nfourier\n' ;;
    --kind) printf 'time\nshare\ndecode\n' ;;
    *) return 1 ;;
    esac
}

# What a value is completed to. Of several targets, c:avx2,c:avx512, the last.
_fpac_complete_value() { # FPAC COMMAND OPTION PREFIX VALUE WORD...
    local values prefix=$4 value=$5
    if values=$(_fpac_values "$1" "$2" "$3" "${@:6}"); then
        case $3,$value in --target,*,*) prefix=$prefix${value%,*}, value=${value##*,} ;; esac
        mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "$values" -- "$value")
    else
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$value")
    fi
}

_fpac_complete_operand() { # COMMAND WORD
    local suffix=lua
    if [ "$1" = plot ]; then suffix=tsv; fi
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -d -- "$2"; compgen -f -X "!*.$suffix" -- "$2")
}

_fpac() {
    # Bash takes words apart at : and = too, which targets and options have in them; here blanks do.
    local words word previous fpac broken reply
    read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
    case ${COMP_LINE:0:COMP_POINT} in *[[:blank:]]) words+=("") ;; esac
    fpac=${words[0]/#\~\//$HOME/} word=${words[-1]} previous=${words[-2]:-}
    COMPREPLY=()
    if [ ${#words[@]} -le 2 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_fpac_commands "$fpac") --help --version" -- "$word")
        return
    fi
    case $word in
    --*=*) _fpac_complete_value "$fpac" "${words[1]}" "${word%%=*}" "${word%%=*}=" "${word#*=}" "${words[@]:2}" ;;
    *)
        if [[ $previous == -* ]] && _fpac_takes_value "$fpac" "${words[1]}" "$previous"; then
            _fpac_complete_value "$fpac" "${words[1]}" "$previous" "" "$word" "${words[@]:2}"
        elif [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_fpac_options "$fpac" "${words[1]}")" -- "$word")
        else
            _fpac_complete_operand "${words[1]}" "$word"
        fi
        ;;
    esac
    # Of a word that bash has taken apart, only what stands behind its last : or = is replaced.
    broken=${word%"${word##*[:=]}"}
    for reply in "${!COMPREPLY[@]}"; do COMPREPLY[reply]=${COMPREPLY[reply]#"$broken"}; done
}
complete -F _fpac fpac
