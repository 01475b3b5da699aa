"""Reads PubHealth (Kotonya and Toni, 2020), used as by Zhang et al. (2023): claims about health that are true
or false.
"""

from __future__ import annotations

from ras_agent.eval.benchmarks.registry import Benchmark, HubDataset, registered
from ras_agent.eval.question import Question, given_passages
from ras_agent.eval.question_file import QuestionRecord

_VERDICTS = {
    "true": "true",
    "supports": "true",
    "support": "true",
    "false": "false",
    "refutes": "false",
}
_HUB_LABELS = {"0": "false", "1": "mixture", "2": "true", "3": "unproven"}


def _read(record: QuestionRecord) -> Question | None:
    """Return a claim with its verdict; None for a mixed, unproven or unlabelled claim, and for a truncated row."""
    labels = []
    verdicts = set()
    key = record.first_key("label", "output", "answer", "answers")
    for text in record.texts(key, default=()):
        label = text.strip().lower()
        word = _HUB_LABELS.get(label, label)
        labels.append(label)
        if word in _VERDICTS:
            verdicts.add(_VERDICTS[word])
    if not verdicts and ("claim" in record or not record.data):
        return None
    if len(verdicts) != 1:
        raise record.error(
            f"expected a label true or false, found {', '.join(labels) or 'none'}"
        )
    verdict = verdicts.pop()
    return Question(
        id=record.identity_under("claim_id", "id"),
        question=record.text("claim", "question"),
        answers=(verdict,),
        type=verdict,
        # without main_text and explanation, in which the fact checkers state their verdict
        contexts=given_passages(record, "ctxs"),
        metadata={"label": verdict},
    )


PUBHEALTH = registered(
    Benchmark(
        name="pubhealth",
        title="PubHealth",
        source="get PUBHEALTH.zip from github.com/neemakot/Health-Fact-Checking (test.tsv), or the 987 claims that RAS "
        "reports on, health_claims_processed.jsonl, from Self-RAG's evaluation data (github.com/AkariAsai/self-rag)",
        read=_read,
        metrics=("accuracy", "citation_support"),
        answer_form="true_false",
        answer_tokens=50,
        instructions={
            "answer": "Decide whether the statement is true or false. Reply with that one word and nothing else.",
            "answer_baseline": "Read the statement and decide whether it holds. Reply true if it does and false if it "
            "does not, in lower case, one word, without a full stop.",
        },
        files={"test": "health_claims_processed.jsonl", "official_test": "test.tsv"},
        counts={"health_claims_processed.jsonl": 987},
        hub=HubDataset("ImperialCollegeLondon/health_fact", split="test"),
    )
)
