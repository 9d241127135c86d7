#!/usr/bin/env bash
# The GPU table of docs/performance.md, in one run on one GPU: a threaded HTTP client against `vllm serve`, then the vllm
# backend on prompts of the same shapes. Random weights of the real shapes, frames cold.
#   MODELS=folder with 8b/ and 2b/   BASELINE=the HTTP client's script (prints "http …: N forwards/s")   OUT=folder
#   bench/h200.sh [part …]           parts: text frames-2b frames-8b unshared single; none is all
set -u
parts=${*:-text frames-2b frames-8b unshared single}
words=$(dirname "$BASELINE")/words.txt
ours() { timeout 200 python3 bench/vllm_engine.py "$@" --words "$words" --json "$OUT/vllm.jsonl" 2>&1 | tail -n 12; }
theirs() { # the client's second text run, with 128 threads, is longer and is left out by the time limit
    timeout "$1" python3 "$BASELINE" "$2" "$3" 2>&1 | grep -a -E 'http|server' | tee -a "$OUT/baseline.txt"
    pkill -9 -f vllm.entrypoints; pkill -9 -f EngineCore; sleep 3
}
for part in $parts; do
    echo "== $part"
    case $part in
        text) theirs "${TEXT_S:-140}" 8b text; ours "$MODELS/8b" text --count 3000 --rounds 2 ;;
        frames-2b) theirs 150 2b mm; ours "$MODELS/2b" frames --count 120 --rounds 2 ;;
        frames-8b) theirs 170 8b mm; ours "$MODELS/8b" frames --count 60 --rounds 2 ;;
        unshared) ours "$MODELS/8b" unshared --count 6000 ;;
        single) ours "$MODELS/8b" single --count 2000 ;;
    esac
done
