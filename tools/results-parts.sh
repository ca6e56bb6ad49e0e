# What the parts of tools/results.sh run, which reads this file: a function run_PART prints PART.txt; other files go to
# $made. It has $build, $fpac, $python, $target, $work, and functions of its own.
# shellcheck shell=bash disable=SC2154

run_cpu() {
    local status=0
    # shellcheck disable=SC2086 # BENCH: words, as make bench takes them
    "$build/bench_c" --tsv "$made/cpu.tsv" ${BENCH:-} || status=1
    OPENBLAS_CORETYPE=Haswell "$build/bench_c" --tsv "$made/cpu.tsv" c:avx2 heads || status=1
    tools/compile-times.sh "$fpac" "$("$fpac" list | awk '/, the best/ { print $1; exit }')" || status=1
    "$fpac" plot "$made/cpu.tsv" --title "$(device cpu)" -o "$made/cpu-time.svg" || status=1
    return $status
}

# The README's picture: lines of the table under shorter names; of several cases of one package the fastest at each
# length, as fpac's auto chooses it.
shorten() { # gpu.tsv
    awk -F '\t' -v OFS='\t' '
    /^#/ || /^skipped/ || $4 <= 1 { next }
    $3 ~ /^tspow2_d64_bf16 bf16 / { name = "power 2, d = 64" }
    $3 ~ /^linear_d64_bf16 bf16 / { name = "linear, d = 64" }
    $3 ~ /^taylor2_d16 bf16 / { name = "taylor 2, d = 16" }
    $1 == "torch" && $3 ~ /^softmax .* d64$/ { name = "softmax, d = 64" }
    $1 == "fla" && $3 ~ /linear_attn d64$/ { name = "linear, d = 64" }
    $1 == "fla" && $3 ~ /_based / { name = "based, d = 16" }
    $1 == "retention" && $3 ~ /^power p2 d64 (chunk|attention)/ { name = "power 2, d = 64" }
    name == "" { next }
    {
        key = $1 OFS $2 OFS name OFS $4 OFS $5 OFS $6
        if (!(key in ns)) order[++count] = key
        if (!(key in ns) || $7 < ns[key]) { ns[key] = $7 + 0; ms[key] = $8 }
        name = ""
    }
    END { for (i = 1; i <= count; i++) print order[i], ns[order[i]], ms[order[i]] }' "$1"
}

run_table() {
    local status=0
    tools/gpu-table.sh "$build" --target "$target" --only power,linear,taylor,dense,decode --out "$work/table" || status=1
    for kind in time share decode; do
        if [ -e "$work/table/$kind.svg" ]; then mv "$work/table/$kind.svg" "$made/"; fi
    done
    if [ -e "$work/table/peers.err" ]; then tail -n 20 "$work/table/peers.err"; fi
    mv "$work/table/measured.tsv" "$made/gpu.tsv"
    shorten "$made/gpu.tsv" >"$made/speed.tsv"
    "$fpac" plot "$made/speed.tsv" --title "$(device "$(kind_of table)" | cut -d , -f 1), bf16, 16 heads, 64 Ki tokens in all" \
        -o "$made/speed.svg" || status=1
    return $status
}

# The heads of a spec, compiled and verified side by side: what follows finds them in the cache. What is refused is told
# by who comes next.
open_heads() { # spec, target, [options]
    local spec=$1 of=$2
    shift 2
    "$fpac" list "$spec" | awk '{ print $1 }' |
        xargs -P "$(nproc | awk '{ print int(($1 + 1) / 2) }')" -I '{}' \
            "$fpac" verify "$spec" --head '{}' --target "$of" "$@" >"$work/opened" 2>&1 || true
}

run_open() { tools/gpu-table.sh "$build" --only open --no-peers --out "$work/open" && cat "$work/open/opens.txt"; }

# Each head at three lengths; 16 heads, 64 Ki tokens.
run_shapes() {
    local status=0 head length targets of form
    targets="$target $(portable_target)"
    for of in $targets; do
        open_heads bench/shapes.lua "$of"
        for length in 65536 4096 1024; do
            # portable kernels at one length
            if [ "$of" != "$target" ] && [ $length -ne 4096 ]; then continue; fi
            form=auto
            if [ $length -eq 4096 ]; then form=chunked; fi
            echo
            echo "$of, $length tokens, --form $form"
            for head in $("$fpac" list bench/shapes.lua | awk '{ print $1 }'); do
                if "$fpac" bench bench/shapes.lua --head "$head" --target "$of" --heads 16 --length $length \
                    --batch $((65536 / length)) --form $form --tsv "$made/shapes.tsv" >"$work/line" 2>"$work/errors"; then
                    tail -n 1 "$work/line"
                else
                    echo "failed: $head: $(tail -n 1 "$work/errors")"
                    status=1
                fi
            done
        done
    done
    return $status
}

# The heads of a spec at two lengths; 16 heads, 64 Ki tokens. What is refused is told, and does not end the part. Gradients
# are a line a head, for people.
bench_spec() { # part, spec, [options]
    local spec=$2 status=0 length lines=(--tsv "$made/$1.tsv") gradients=()
    shift 2
    case "$*" in *--backward*) lines=() gradients=(--backward) ;; esac
    open_heads "$spec" "$target" "${gradients[@]}"
    for length in 4096 65536; do
        echo "fpac bench $spec --length $length --batch $((65536 / length)) --heads 16${*:+ $*}"
        "$fpac" bench "$spec" --target "$target" --length $length --batch $((65536 / length)) --heads 16 \
            "${lines[@]}" "$@" || status=1
    done
    return $status
}

run_family() { bench_spec family bench/family.lua; }
run_backward() { bench_spec backward bench/gradients.lua --backward; }
run_random() { bench_spec random bench/random.lua --repeats 5; }

run_sequences() {
    local status=0 head
    for head in tspow2_d64_bf16 linear_d64_bf16; do
        "$build/bench_sequences" specs/storage.lua $head || status=1
    done
    command -v "$python" >/dev/null && "$python" bench/peers/packed.py 2>"$work/errors"
    return $status
}

run_serve() {
    "$build/examples/serve" specs/storage.lua tspow2_d64_bf16 cuda 1024 "$made/serve.svg"
}

run_drafts() {
    local status=0 batch
    for batch in 1 16 128; do
        "$build/bench_draft" specs/tspow.lua tspow2_d64_b8 $batch 16 || status=1
    done
    "$build/bench_draft" specs/storage.lua tspow2_d64_bf16_state 128 16 || status=1
    return $status
}

# The GPU as fpac explain --gpu names it: a word of the device's name.
gpu_row() { gpu_name | tr '[:upper:]' '[:lower:]' | grep -oE '\b[abhl][0-9]+s?\b' | head -n 1; }

# Predictions and what launches choose, beside measurements; kernels are compiled side by side first.
run_model() {
    local status=0 portable
    portable=$(portable_target)
    "$python" bench/measure_model.py --build "$build" --target "$target" --portable "${portable:-$target}" --seconds 600 "$made" || status=1
    "$python" bench/predict_cuda.py --build "$build" --gpu "$(gpu_row)" "$made/predict-gpu.tsv" >"$made/predict-gpu.txt" || status=1
    "$python" bench/regret.py "$made/candidates.tsv" >"$made/candidates.txt" || status=1
    tail -n 4 "$made/predict-gpu.txt"
    tail -n 2 "$made/candidates.txt"
    return $status
}

# The same heads for one long sequence and for several: a step of one sequence is round trips to memory, of sixteen bytes.
run_design() {
    local status=0 size sizes="65536 1 16 bf16,4096 16 16 bf16"
    if [ "$(kind_of design)" = cpu ]; then sizes="4096 1 2 f32"; fi
    local IFS=,
    for size in $sizes; do
        design_of ${size// /,} || status=1
    done
    return $status
}

design_of() { # length batch heads dtype
    local options=(--d 64 --dv 64 --state 1MiB --target "$target" --length "$1" --batch "$2" --heads "$3" --dtype "$4" --measure 20)
    local IFS=' '
    echo "\$ fpac design ${options[*]}"
    "$fpac" design "${options[@]}" 2>&1
    echo
}

# Heads that the target does not serve are told by fpac bench, and are no failure. They are compiled side by side first.
# MODELS_SECONDS: for all packages together; bench/peers/shares.py says how they share them.
run_models() {
    local spec length lengths="65536 4096" tokens=65536 heads=16
    if [ "$(kind_of models)" = cpu ]; then lengths=256 tokens=256 heads=1; fi
    for spec in specs/models/*.lua; do
        "$fpac" bench "$spec" --dtype bf16 --target "$target" --length 64 --repeats 1 >"$work/${spec##*/}.open" 2>&1 &
    done
    wait
    for spec in specs/models/*.lua; do
        for length in $lengths; do
            "$fpac" bench "$spec" --dtype bf16 --target "$target" --heads $heads --length "$length" --batch $((tokens / length)) \
                --tsv "$made/models.tsv" >"$work/line" 2>"$work/errors" || sed 's/^fpac: //' "$work/errors"
        done
    done
    # packages print more than lines; a line is in the file as soon as it is there
    "$python" bench/peers/models.py --lengths "${lengths// /,}" --tokens $tokens --heads $heads --seconds "${MODELS_SECONDS:-240}" \
        2>"$work/errors" | grep -a --line-buffered -E $'^(#|skipped\t|([^\t]*\t){7}[^\t]*$)' >>"$made/models.tsv" ||
        tail -n 3 "$work/errors"
    "$python" bench/models_table.py "$made/models.tsv"
}

run_python() {
    echo "\$ FPAC_LIBRARY=$(python_library) $python bench/python_overhead.py --target $target --limit 10"
    FPAC_LIBRARY=$(python_library) "$python" bench/python_overhead.py --target "$target" --limit 10
}

run_portable() {
    tools/gpu-bench.sh "$build" --target "$(portable_target)" --tsv "$made/portable.tsv" --no-open
}

run_suite() {
    local status=0 portable tests=$build/tests
    tools/gpu-test.sh "$build" "$tests"/test_cuda "$tests"/test_cuda_{calls,operands,mutation,recent,window,ptx} \
        "$tests"/test_{shipped,parity} || status=1
    portable=$(portable_target)
    if [ -n "$portable" ]; then
        echo "portable kernels ($portable):"
        FPA_TEST_TARGET=$portable FPA_REQUIRE_CUDA=1 FPAC=$fpac tools/run-tests.sh "$build" \
            "$tests"/test_{shipped,parity,cuda_calls} || status=1
    fi
    return $status
}

sanitize() { # tool, then arguments of gpu-sanitize.sh
    local status=0
    tools/gpu-sanitize.sh "$build" --tool "$@" --jobs "$(nproc | awk '{ print $1 < 16 ? $1 : 16 }')" >"$work/sanitized" 2>&1 || status=1
    awk -v what="$*" '
    /^----/ { complaint = 1 }
    complaint { lines[++count] = $0; next }
    {
        calls++
        if (/: +0 /) clean++; else lines[++count] = $0
    }
    END {
        printf "%s: %d calls of heads, %d without an error or a hazard\n", what, calls, clean
        for (i = 1; i <= count; i++) print "  " lines[i]
    }' "$work/sanitized"
    return $status
}

run_sanitizer() {
    local status=0 tool portable
    portable=$(portable_target)
    echo "Heads applied to 900 tokens (chunked), 300 (parallel) and 3 (recurrent), 2 sequences, 2 heads; what other calls are: tools/gpu-sanitize.sh."
    for tool in memcheck racecheck; do
        sanitize $tool --dtype bf16 || status=1
        sanitize $tool --calls sequences,pool,piece,draft specs/storage.lua specs/gated.lua specs/window.lua || status=1
        sanitize $tool --calls layer specs/models/layer.lua || status=1
        sanitize $tool --calls chunked,gradients --seconds 120 --heads r1_05,r1_09,r1_13,r2_04,r2_08,r2_11,r3_01,r3_02,r3_03,r3_08,r3_12,r3_13 bench/random.lua || status=1
        sanitize $tool bench/shapes.lua || status=1
        if [ -n "$portable" ]; then sanitize $tool --target "$portable" || status=1; fi
    done
    return $status
}

run_compare() { "$python" bench/compare.py "$old" "$build" --tsv "$made/compare.tsv"; }
