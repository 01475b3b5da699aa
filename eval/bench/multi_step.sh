#!/usr/bin/env bash
# Agents of several hops over each retriever, with offline roles, and one table of their scores:
#
#     eval/bench/multi_step.sh INDEX OUT BENCHMARK --data FILE [--first N] [--limit N]
#
# INDEX has vectors and a knowledge graph. Runs go to OUT and are resumed. RETRIEVERS and LOOPS choose others.
set -euo pipefail
index=${1:?give an index} out=${2:?give a folder for the runs} benchmark=${3:?give a benchmark}
shift 3
runs=()
for loop in ${LOOPS:-ras ircot}; do
  for retriever in ${RETRIEVERS:-bm25 hybrid ppr gfm ppr+dense gfm+dense kg-mix}; do
    run="$out/$loop-$retriever"
    ras-agent eval "$benchmark" --index "$index" --loop "$loop" --retriever "$retriever" \
      --metric em --metric f1 --metric recall@2 --metric recall@5 --metric all_recall \
      --name "$loop, $retriever" --no-traces --concurrency 1 --quiet --out "$run" "$@"
    runs+=("$run")
  done
done
ras-agent report "${runs[@]}" --out "$out/report.html" --markdown "$out/report.md"
cat "$out/report.md"
