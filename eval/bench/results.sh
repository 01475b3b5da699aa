#!/usr/bin/env bash
# Measures what lab/results.md shows, and writes it anew:
#
#     eval/bench/results.sh DATA [OUT] [part ...]
#
# DATA holds hotpotqa/{questions,corpus}.jsonl, musique/{questions.jsonl,corpus_openie.jsonl} and text_to_triples/*.jsonl.
# OUT is where the studies are kept; begun there by the same version, they are resumed. part: tune (HotpotQA's first 150
# questions, what rules may be chosen on), report (the others: to be run once, at the end), musique, extractors, and on
# the tuning half retrieval, sweep, abundance; tune and musique unless told. Parts that OUT holds already are shown again.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
data=$(realpath "${1:?give the folder of the data}")
commit=$(git rev-parse --short HEAD)
out=$(realpath -m "${2:-build/results-$commit}")
shift $(($# > 2 ? 2 : $#))
wanted=" ${*:-tune musique} "
mkdir -p "$out" docs
cd "$data"

run() { # NAME TITLE ARGUMENTS...: one study, with its title, command and date beside it
  local name=$1 title=$2
  shift 2
  ras-agent study "$@" --out "$out/$name" >/dev/null
  printf '%s' "$title" >"$out/$name/title"
  printf 'ras-agent study %s --out studies/%s' "$*" "$name" >"$out/$name/command"
  printf '%s (%s)' "$(date -u +%Y-%m-%d)" "$commit" >"$out/$name/measured"
}
hotpotqa="hotpotqa --data hotpotqa/questions.jsonl --corpus hotpotqa/corpus.jsonl"
musique="musique --data musique/questions.jsonl --corpus musique/corpus_openie.jsonl"
tune="--first 1 --limit 150" report="--first 151 --limit 150"
# shellcheck disable=SC2086  # the options above are several words each
{
  if [[ $wanted == *" tune "* ]]; then
    run 10-hotpotqa-tune-oracles "HotpotQA, tuning half: oracle roles" oracles $hotpotqa $tune
    run 11-hotpotqa-tune-ablations "HotpotQA, tuning half: ablations" ablations $hotpotqa $tune
  fi
  if [[ $wanted == *" report "* ]]; then
    run 20-hotpotqa-report-oracles "HotpotQA, reporting half: oracle roles" oracles $hotpotqa $report
    run 21-hotpotqa-report-ablations "HotpotQA, reporting half: ablations" ablations $hotpotqa $report
  fi
  if [[ $wanted == *" musique "* ]]; then
    run 30-musique-oracles "MuSiQue: oracle roles" oracles $musique
    run 31-musique-ablations "MuSiQue: ablations" ablations $musique
  fi
  if [[ $wanted == *" extractors "* ]]; then
    run 40-extractors "Extractors against gold triples" extractors --gold text_to_triples/genwiki_test.jsonl \
      --gold text_to_triples/carb.jsonl --gold musique/corpus_openie.jsonl --extractor offline --concurrency 1
  fi
  if [[ $wanted == *" retrieval "* ]]; then
    run 50-hotpotqa-tune-retrieval "HotpotQA, tuning half: retrieval alone" retrieval $hotpotqa $tune
  fi
  if [[ $wanted == *" sweep "* ]]; then
    run 51-hotpotqa-tune-sweep "HotpotQA, tuning half: hops and k" sweep $hotpotqa $tune
  fi
  if [[ $wanted == *" abundance "* ]]; then
    run 52-hotpotqa-tune-abundance "HotpotQA, tuning half: graph abundance" abundance $hotpotqa $tune
  fi
}

{
  cat <<'EOF'
# Results

Written by `eval/bench/results.sh`, which runs the commands below in a folder of the data and puts their tables here. Scores are
percent with 95 % bootstrap intervals over questions; differences are paired, p from a paired permutation test.
Every role is the offline one (no model, no network) unless an oracle plays it. HotpotQA: 300 questions of the development
set over 4,858 passages, the first 150 for tuning, the others for reporting; MuSiQue: 60 questions over 1,890 passages.

An oracle planner asks the gold sub-questions, an oracle retriever finds the gold passages, an oracle answerer gives the gold
answer if and only if it stands in the triples (or in the retrieved passages). `all_recall`: questions with all gold
passages among those retrieved at any hop. `answer_in_facts`, `answer_in_passages`: questions whose answer stands there.

In ablations and abundance the answerer reads triples alone, as in RAS, or raw text alone without text-to-triples; what the
passages add to the triples, as in the default loop, is a run of its own.
EOF
  for study in "$out"/*/; do
    [[ -f $study/measured ]] || continue
    printf '\n## %s\n\n```bash\n%s\n```\n\nMeasured %s.\n\n' \
      "$(cat "$study/title")" "$(cat "$study/command")" "$(cat "$study/measured")"
    sed 's/^## /### /' "$study/tables.md"
  done
} >"$root/lab/results.md"
echo "lab/results.md written; the studies are in $out"
