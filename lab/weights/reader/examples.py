"""Reading examples: a question, a text, and the right reading of them.

Where a set names an answer but not its place, every whole-word occurrence in a supporting text counts (distant
supervision): the loss lets the reader choose among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ras_agent.contracts.records import Passage
from ras_agent.eval.question_file import read_records
from ras_agent.text.titles import with_title
from ras_agent.train.data import training_set

VERDICTS = ("true", "false", "not said")
_HOP = re.compile(r"#(\d)")
_TAGS = re.compile(r"</?[A-Z]\w*[^>]*> ?")
_UNTOKENISED = (
    (" ,", ","),
    (" .", "."),
    ("( ", "("),
    (" )", ")"),
    (" ’s", "’s"),
    (" 's", "'s"),
    (" ;", ";"),
    (" :", ":"),
)


@dataclass(frozen=True, slots=True)
class ReaderExample:
    """Question and text; `spans` are half-open character spans of the answer, () where the text does not answer.

    verdict: one of VERDICTS for a question to be answered with yes or no, which has no spans; else blank.
    """

    question: str
    text: str
    spans: tuple[tuple[int, int], ...]
    source: str
    verdict: str = ""

    @property
    def answer(self) -> str:
        """The text of the first span; blank without one."""
        return self.text[slice(*self.spans[0])] if self.spans else ""


def occurrences(answers: Iterable[str], text: str) -> tuple[tuple[int, int], ...]:
    """Return the places of any of `answers` in `text`, as whole words in any case; () for an empty answer."""
    places = set()
    for answer in answers:
        if answer.strip():
            pattern = rf"(?<!\w){re.escape(answer.strip())}(?!\w)"
            places |= {
                match.span() for match in re.finditer(pattern, text, re.IGNORECASE)
            }
    return tuple(sorted(places))


def text_with_title(passage: Passage) -> str:
    """Return a passage as the reader sees it."""
    return with_title(passage.title, passage.text)


def squad(data: Path) -> Iterator[ReaderExample]:
    """Yield SQuAD's training questions over their paragraphs, each once, with the places of their answers."""
    known = set()
    for name in ("squad1_44articles", "squad1_flan", "squad1_routerlens", "squad1_val"):
        for example in _marked(data / "reading" / f"{name}.jsonl", "squad"):
            key = (
                example.question.lower().replace(" ", ""),
                example.text[:40].lower().replace(" ", ""),
            )
            if key not in known:
                known.add(key)
                yield example


def qamr(data: Path) -> Iterator[ReaderExample]:
    """Yield QAMR's questions over single sentences."""
    return _marked(data / "reading" / "qamr.jsonl", "qamr")


def policyqa(data: Path) -> Iterator[ReaderExample]:
    """Yield PolicyQA's questions over parts of privacy policies: English of business, answers of whole clauses."""
    return _marked(data / "reading" / "policyqa.jsonl", "policyqa")


def evidence(data: Path) -> Iterator[ReaderExample]:
    """Yield HotpotQA's training questions over only their supporting sentences."""
    return _marked(data / "reading" / "hotpot_train_evidence.jsonl", "evidence")


def _marked(file: Path, source: str) -> Iterator[ReaderExample]:
    for record in read_records(file):
        text = record.text("t")
        spans = tuple(
            (start, end)
            for start, end in record.items("s")
            if 0 <= start < end <= len(text)
        )
        yield ReaderExample(record.text("q"), text, spans, source)


def nq(data: Path) -> Iterator[ReaderExample]:
    """Yield Natural Questions over the passage that holds the answer; its places are found by string match."""
    for question in training_set("nq", data).questions:
        text = text_with_title(question.contexts[0])
        if spans := occurrences(question.answers, text):
            yield ReaderExample(question.question, text, spans, "nq")


def nq_swap(data: Path) -> Iterator[ReaderExample]:
    """Yield NQ-Swap: texts in which another name stands in the place of the answer, and is the answer now."""
    for record in read_records(data / "reading" / "nq_swap_train.jsonl"):
        text = _TAGS.sub("", record.text("context"))
        for before, after in _UNTOKENISED:
            text = text.replace(before, after)
        if spans := occurrences([record.text("answer")], text):
            yield ReaderExample(record.text("question"), text, spans, "nq_swap")


def hotpot(data: Path) -> Iterator[ReaderExample]:
    """Yield two-hop questions over their two supporting passages, together and one at a time."""
    hotpotqa = training_set("hotpotqa", data)
    for question in hotpotqa.questions:
        texts = list(map(text_with_title, hotpotqa.gold(question)))
        yield from _two_hop(question.question, question.answers, texts, "hotpot")


def with_contexts(data: Path, file: str, source: str) -> Iterator[ReaderExample]:
    """Yield questions in HotpotQA's form over their supporting passages; 2Wiki's single steps as well."""
    for record in read_records(data / file):
        titles = dict.fromkeys(title for title, *_ in record.items("supporting_facts"))
        context = {
            title: " ".join(sentence.strip() for sentence in sentences)
            for title, sentences in record.items("context")
        }
        texts = [
            with_title(title, context[title]) for title in titles if title in context
        ]
        if "qa_pairs" in record:
            for step, (subject, _, value) in zip(
                record.objects("qa_pairs"), record.triples("evidences"), strict=False
            ):
                for text in texts:
                    if (spans := occurrences([value], text)) and occurrences(
                        [subject], text
                    ):
                        yield ReaderExample(
                            step.text("question"), text, spans, f"{source}_step"
                        )
        answer = record.text("answer")
        if answer in {"yes", "no"}:
            yield ReaderExample(
                record.text("question"),
                " ".join(texts),
                (),
                f"{source}_verdict",
                "true" if answer == "yes" else "false",
            )
        else:
            yield from _two_hop(record.text("question"), [answer], texts, source)


def hotpot_hard(data: Path) -> Iterator[ReaderExample]:
    """Yield HotpotQA's hard training questions over their supporting passages."""
    return with_contexts(data, "hotpotqa_train/hard100_contexts.jsonl", "hotpot_hard")


def two_wiki(data: Path) -> Iterator[ReaderExample]:
    """Yield 2WikiMultihopQA's training questions and their steps over their supporting passages."""
    return with_contexts(data, "2wikimultihopqa/train500_contexts.jsonl", "two_wiki")


def strategyqa(data: Path) -> Iterator[ReaderExample]:
    """Yield StrategyQA's questions over the facts that their annotators wrote down."""
    for record in read_records(data / "reading" / "strategyqa_decomposition.jsonl"):
        verdict = "true" if record.data["answer"] else "false"
        yield ReaderExample(
            record.text("question"),
            " ".join(record.texts("facts")),
            (),
            "strategyqa",
            verdict,
        )


def musique(data: Path) -> Iterator[ReaderExample]:
    """Yield multi-hop questions, and each of their single-hop steps over its supporting paragraph."""
    for question in training_set("musique", data).questions:
        texts = {passage.id: text_with_title(passage) for passage in question.contexts}
        steps = question.decomposition
        for step in steps:
            text_of_step = _HOP.sub(
                lambda hop: steps[int(hop[1]) - 1]["answer"],  # noqa: B023
                step["question"],
            )
            text = texts[step["supporting_id"]]
            if spans := occurrences([step["answer"]], text):
                yield ReaderExample(
                    text_of_step.replace(" >> ", " "), text, spans, "musique_step"
                )
        support = [texts[step["supporting_id"]] for step in steps]
        yield from _two_hop(question.question, question.answers, support, "musique")


LOADERS: dict[str, Callable[[Path], Iterator[ReaderExample]]] = {
    "squad": squad,
    "qamr": qamr,
    "policyqa": policyqa,
    "nq": nq,
    "nq_swap": nq_swap,
    "hotpot": hotpot,
    "hotpot_hard": hotpot_hard,
    "evidence": evidence,
    "two_wiki": two_wiki,
    "strategyqa": strategyqa,
    "musique": musique,
}


def _two_hop(
    question: str, answers: Sequence[str], texts: Sequence[str], source: str
) -> Iterator[ReaderExample]:
    if answers[0].lower() in {"yes", "no"}:
        return
    if len(texts) > 1:
        for context in (" ".join(texts), " ".join(reversed(texts))):
            if spans := occurrences(answers, context):
                yield ReaderExample(question, context, spans, source)
    for text in texts:
        if spans := occurrences(answers, text):
            yield ReaderExample(question, text, spans, source)


def reported_steps(data: Path) -> set[str]:
    """Return the questions, in lower case, that MuSiQue's reported questions are made of, where that file is there.

    MuSiQue was composed of the training questions of SQuAD and others: the scored ones must not have been learnt.
    """
    file = data / "musique" / "questions.jsonl"
    if not file.is_file():
        return set()
    steps = [
        step
        for record in read_records(file)
        for step in record.objects("decomposition")
    ]
    return {step.text("question").lower().strip() for step in steps}
