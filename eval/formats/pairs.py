"""Rows of an input and what is expected for it, as LangSmith, Inspect and DeepEval keep them.

{"inputs": {"question": "..."}, "outputs": {"answer": "..."}}     LangSmith's examples
{"input": "...", "target": "..."}                                  Inspect's samples
{"input": "...", "expected_output": "...", "context": ["..."]}     DeepEval's goldens
"""

from __future__ import annotations

from ras_agent.eval.formats.registry import Format, Look, registered
from ras_agent.eval.question import Question, context_passage
from ras_agent.eval.question_file import QuestionRecord

_ASKED = ("question", "input", "query")
_EXPECTED = ("answers", "answer", "output", "expected_output", "target")


def _question(
    record: QuestionRecord, question: str, answers: tuple[str, ...], context: tuple[str, ...] = ()
) -> Question:
    metadata = record.inside(record.data.get("metadata") or {}, "metadata").data
    identity = record.text("id") if "id" in record else str(record.number)
    contexts = tuple(context_passage("", text) for text in context)
    gold = tuple(dict.fromkeys(passage.id for passage in contexts))
    return Question(identity, question, answers, gold, contexts=contexts, metadata=metadata)


def langsmith_question(record: QuestionRecord) -> Question:
    """Return the question of an example with `inputs` and `outputs`, of which the outputs may be missing."""
    inputs = record.inside(record.data["inputs"], "inputs")
    outputs = record.inside(record.data.get("outputs") or {}, "outputs")
    expected = outputs.texts(*_EXPECTED) if any(key in outputs for key in _EXPECTED) else ()
    return _question(record, inputs.text(*_ASKED), expected)


def inspect_question(record: QuestionRecord) -> Question:
    """Return the question of a sample with `input` and `target`."""
    return _question(record, record.text("input"), record.texts("target"))


def deepeval_question(record: QuestionRecord) -> Question:
    """Return the question of a golden with `input` and `expected_output`; its `context` is the gold passages."""
    context = record.texts("context") if record.data.get("context") else ()
    return _question(record, record.text("input"), record.texts("expected_output"), context)


LANGSMITH = registered(
    Format(
        name="langsmith",
        title="LangSmith's examples",
        question=Look.of("inputs", "outputs"),
        read_question=langsmith_question,
    )
)
INSPECT_SAMPLES = registered(
    Format(
        name="inspect-samples",
        title="Inspect's samples",
        question=Look.of("input", "target"),
        read_question=inspect_question,
    )
)
DEEPEVAL = registered(
    Format(
        name="deepeval",
        title="DeepEval's goldens",
        question=Look.of("input", "expected_output"),
        read_question=deepeval_question,
    )
)
