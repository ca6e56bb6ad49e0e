#!/usr/bin/env bash
# Measure the CUDA kernels beside their peers, in one run, and print the table:
#
#   tools/gpu-table.sh BUILD [--only PART[,PART...]] [--out DIR] [--no-peers] [--seconds N] [--target TARGET]
#
# Parts: power linear taylor dense decode open (all of them). --out keeps the measurements, DIR/measured.tsv,
# and draws DIR/time.svg, share.svg and decode.svg. Target: cuda, what the GPU is. Peers are what is installed of the packages that
# bench/peers measures; ratio: their time over fpac's. 16 heads, 64 Ki tokens (1 Mi token-heads), bf16.
# Peers get what fpac leaves of N seconds (240): those that are not done by then are told as skipped.
set -eu

usage() {
    sed -n 's/^# \{0,1\}//; 2,10p' "$0" >&2
    exit 2
}

all_parts="power linear taylor dense decode open"
[ $# -ge 1 ] || usage
build=$1
shift
parts=$all_parts out="" peers=yes failed=0 limit=240 target=cuda # limit: seconds
while [ $# -gt 0 ]; do
    case $1 in
    --only) [ $# -ge 2 ] || usage; parts=${2//,/ }; shift ;;
    --out) [ $# -ge 2 ] || usage; out=$2; shift ;;
    --no-peers) peers=no ;;
    --seconds) [ $# -ge 2 ] || usage; limit=$2; shift ;;
    --target) [ $# -ge 2 ] || usage; target=$2; shift ;;
    *) usage ;;
    esac
    shift
done
for part in $parts; do
    case " $all_parts " in
    *" $part "*) ;;
    *) echo "gpu-table: $part is no part: $all_parts are" >&2; exit 2 ;;
    esac
done

fpac=$build/fpac
python=${PYTHON:-python3}
tokens=65536
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tsv=$work/measured.tsv
rows=$work/rows
opens=$work/opens
touch "$rows" "$opens"
echo "# $(date -u +%Y-%m-%d) tools/gpu-table.sh, parts: $parts" >"$tsv"
if [ -n "$out" ]; then mkdir -p "$out"; fi

wants() { case " $parts " in *" $1 "*) true ;; *) false ;; esac; }
left() { echo $((SECONDS < limit ? limit - SECONDS : 0)); }

# ---- fpac ----

# Caches of this run's own, NVRTC's, too: whoever measures next compiles again.
export FPA_CACHE_DIR=$work/cache CUDA_CACHE_PATH=$work/nvrtc
mkdir -m 700 "$FPA_CACHE_DIR"

bench() { # spec head length batch form [options]
    local spec=$1 head=$2 length=$3 batch=$4 form=$5
    shift 5
    if ! "$fpac" bench "specs/$spec.lua" --head "$head" --dtype bf16 --target "$target" --heads 16 \
        --length "$length" --batch "$batch" --form "$form" --tsv "$tsv" "$@" >"$work/text"; then
        echo "skipped	fpac	$head $form, length $length, batch $batch	failed" >>"$tsv"
        failed=1
        return
    fi
    if [ ! -e "$work/said" ]; then grep copy "$work/text" || true; fi
    touch "$work/said"
}

# A row of the table: work; length; batch; fpac's case; what is told of fpac beside ns; peers' cases (regular
# expressions with a comma between two).
row() { local IFS=';'; echo "$*" >>"$rows"; }

# Prefill: spec head length form unit peers; as many sequences as make 64 Ki tokens.
prefill() {
    local batch=$((tokens / $3))
    bench "$1" "$2" "$3" "$batch" "$4"
    row "$2, $4" "$3" "$batch" "$2 bf16 $4" "$5" "${6:-}"
}

measure_power() {
    local peers='retention power p2 d64 (chunk|attention),torch softmax cudnn d64,torch softmax flash d64'
    prefill storage tspow2_d64_bf16 65536 chunked ns "$peers"
    prefill storage tspow2_d64_bf16 16384 chunked ns "$peers"
    prefill storage tspow2_d64_bf16 4096 chunked ns "$peers"
    prefill storage tspow2_d64_bf16 4096 parallel ns "$peers" # what auto chooses
    prefill storage tspow2_d64_bf16 1024 parallel ns "$peers"
    prefill storage tspow2_d128_bf16 65536 chunked product 'torch softmax cudnn d128,torch softmax flash d128'
}

measure_linear() {
    local length peers='fla chunk_linear_attn d64,fla fused_chunk_linear_attn d64'
    for length in 1024 4096 16384 65536; do
        prefill storage linear_d64_bf16 $length chunked ns "$peers"
    done
}

measure_taylor() {
    local length
    for length in 4096 65536; do
        prefill taylor taylor2_d16 $length chunked ns 'fla fused_chunk_based,fla parallel_based'
    done
}

measure_dense() {
    prefill mixed dense_16x32_d64 65536 chunked product
    prefill mixed dense_16x32_d64 4096 chunked product
}

measure_decode() {
    local head batch
    for head in tspow2_d64_bf16 tspow2_d64_bf16_state; do
        for batch in 128 16 1; do bench storage $head 1 $batch recurrent; done
        row "$head, decode, batch 128" 1 128 "$head bf16 recurrent" copy \
            'retention power p2 d64 step, cache 256$,retention power p2 d64 step, update$'
    done
    for head in tspow2_d64_bf16 tspow2_d64_bf16_state; do
        bench storage $head 1 1 recurrent --graph
        bench storage $head 1 1 recurrent --graph --layers 25
        row "$head, decode, graph, batch 1" 1 1 "$head bf16 recurrent graph" us \
            'retention power p2 d64 step, cache 256, graph,retention power p2 d64 step, update, graph'
        row "$head, 1 of 25 in a graph" 1 1 "$head bf16 recurrent graph of 25" us
    done
}

# Into empty caches; heads of d = 64.
measure_open() {
    rm -rf "$FPA_CACHE_DIR" "$CUDA_CACHE_PATH"
    mkdir -m 700 "$FPA_CACHE_DIR"
    "$build/bench_cuda_open" specs/{linear,power,spow,tspow,storage}.lua >"$opens" || failed=1
}

# ---- peers ----

# Lines of measurements only, whatever else a package prints.
keep_lines() { grep -a -E $'^(#|skipped\t|([^\t]*\t){7}[^\t]*$)' || true; }

peer() { # script [case]
    local seconds status=0
    seconds=$(left)
    if [ "$seconds" -lt 5 ]; then
        echo "skipped	$1	all	no time left" >>"$tsv"
        return
    fi
    # the script begins no case in the last seconds; the signal is for what hangs
    timeout -k 5 "$seconds" "$python" "bench/peers/$1.py" --seconds $((seconds * 3 / 4)) ${2:+--only "$2"} \
        2>>"$work/errors" | keep_lines >>"$tsv" || true
    status=${PIPESTATUS[0]}
    if [ "$status" -ne 0 ]; then
        echo "skipped	$1	all	ended with $status after at most $seconds s" >>"$tsv"
    fi
}

measure_peers() {
    if ! command -v "$python" >"$work/text"; then
        echo "skipped	all	all	there is no $python" >>"$tsv"
        return
    fi
    if wants power; then peer sdpa; fi
    if wants linear && wants taylor; then
        peer linear
    elif wants linear; then
        peer linear linear_attn
    elif wants taylor; then
        peer linear based
    fi
    if wants power && wants decode; then
        peer power
    elif wants power; then
        peer power chunk
        peer power attention
    elif wants decode; then
        peer power step
    fi
    if wants power; then # minutes of nvcc for each of a hundred candidates
        echo "skipped	vidrial	all	compiles for longer than this run; by hand: bench/peers/fused_power.py" >>"$tsv"
    fi
}

# ---- the table ----

print_table() {
    awk -F '\t' -v rows="$rows" '
    function unit_text(unit, value) {
        if (value == "") return "-"
        if (unit == "ns") return sprintf("%.3f ns", value)
        if (unit == "us") return sprintf("%.1f us", value)
        return sprintf("%.1f %% of %s", value, unit)
    }
    function value_text(unit, value, key) {
        return (value == "" || unit == "ns" ? "" : sprintf("%.3f ns, ", ns[key])) unit_text(unit, value)
    }
    function found(unit, key) { # what is told of fpac
        if (!(key in ns)) return ""
        if (unit == "ns") return ns[key]
        if (unit == "us") return 1e3 * ms[key]
        return 100 * (unit == "product" ? product[key] : copy[key])
    }
    function show(work, length_, peer, fpac, ratio) {
        printf "%-46s %7s | %-50s | %30s | %6s\n", work, length_, peer, fpac, ratio
    }
    # the fastest line of that shape whose case matches
    function fastest(pattern, shape,   i, best) {
        best = ""
        for (i = 1; i <= lines; i++)
            if (shape_of[i] == shape && name[i] ~ ("^" pattern) && (best == "" || time[i] < time[best])) best = i
        return best
    }
    /^#/ || /^skipped/ || NF < 8 { next }
    {
        key = $3 ";" $4 ";" $5
        if ($1 == "fpac") { ns[key] = $7; ms[key] = $8; product[key] = $9; copy[key] = $10; next }
        name[++lines] = $1 " " $3; shape_of[lines] = $4 ";" $5; time[lines] = $8; per[lines] = $7
    }
    END {
        show("work", "length", "peer", "fpac", "ratio")
        while ((getline line < rows) > 0) {
            split(line, of, ";")
            key = of[4] ";" of[2] ";" of[3]
            value = found(of[5], key)
            shown = 0
            count = of[6] == "" ? 0 : split_patterns(of[6], patterns)
            for (i = 1; i <= count; i++) {
                at = fastest(patterns[i], of[2] ";" of[3])
                if (at == "") continue
                ratio = key in ms ? sprintf("%.2f", time[at] / ms[key]) : "-"
                text = sprintf("%s: %.3f ns", name[at], per[at])
                if (!shown++)
                    show(of[1], of[2], text, value_text(of[5], value, key), ratio)
                else
                    show("", "", text, "", ratio)
            }
            if (!shown)
                show(of[1], of[2], "-", value_text(of[5], value, key), "-")
        }
    }
    # "a,b, c": a comma with a space behind it belongs to a case
    function split_patterns(text, patterns,   i, count) {
        gsub(/, /, "\001", text)
        count = split(text, patterns, ",")
        for (i = 1; i <= count; i++) gsub(/\001/, ", ", patterns[i])
        return count
    }' "$tsv"
}

print_opens() {
    awk '/ d +64 / && match($0, /first +[0-9.]+ s/) {
        split(substr($0, RSTART), of, " +"); first = of[2] > first ? of[2] : first; heads++
        match($0, /cache +[0-9.]+ ms/); split(substr($0, RSTART), of, " +"); cached = of[2] > cached ? of[2] : cached
    }
    END {
        if (!heads) exit
        printf "fpa_open of %d heads of d = 64, at most: %.2f s the first time, %.1f ms from the cache\n", heads, first, cached
    }' "$opens"
    sed -n 's/^\([^ ]*\)  *\(spec [0-9].* ms; .*\)$/fpa_open of \1: \2/p' "$opens" # where its time goes
}

print_skipped() {
    awk -F '\t' '/^skipped/ { printf "skipped: %s: %s: %s\n", $2, $3, $4 }' "$tsv"
}

draw() { # kind
    "$fpac" plot "$tsv" --kind "$1" -o "$out/$1.svg" || echo "gpu-table: no $1.svg" >&2
}

for part in $parts; do "measure_$part"; done
[ $peers = no ] || measure_peers
measured() { grep -qv -e '^#' -e '^skipped' "$tsv"; }
if measured; then print_table; fi
print_opens
print_skipped
echo "$SECONDS s in all"
if [ -n "$out" ]; then
    if measured; then for kind in time share decode; do draw $kind; done; fi
    cp "$tsv" "$out/measured.tsv"
    if [ -s "$opens" ]; then cp "$opens" "$out/opens.txt"; fi
    if [ -s "$work/errors" ]; then cp "$work/errors" "$out/peers.err"; fi
fi
exit $failed
