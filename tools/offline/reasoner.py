"""IRCoT's reasoner without a model: it quotes the sentence that says most of the question and names something new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ras_agent.marks import ANSWER_IS
from ras_agent.records import Hit, Passage, Step
from ras_agent.tools.offline.english import EnglishOnly
from ras_agent.tools.offline.evidence import ENOUGH, QuestionEvidence, gather


class OfflineReasoner:
    """Reasons by quoting. Its sentences come from the passages, each once; the last one holds "answer is"."""

    name = "offline"

    def __init__(self, language: str = "") -> None:
        """language: of the texts, if it is known."""
        self._english = EnglishOnly("planner", language)

    def next_sentence(self, question: str, passages: Sequence[Passage], thoughts: Sequence[str]) -> str:
        """Return the sentence to search with next, or the one that ends the chain when no sentence leads on."""
        if refusal := self._english.refusal(question):
            return f"{ANSWER_IS}: nowhere that I can read, since {refusal}."
        evidence = gather(question, [Step(1, question, tuple(Hit(passage, 0.0) for passage in passages))])
        if evidence.explained() >= ENOUGH:
            return f"{ANSWER_IS}: in two passages that have been read, one of which names the other."
        for name in evidence.asked.compared:
            thought = f"What about {name}?"
            if not evidence.has_read(name) and thought not in thoughts:
                return thought
        if evidence.asked.compared:
            return f"{ANSWER_IS}: in the passages about what is compared."
        leads = (lead for lead in _leads(evidence) if not any(lead.sentence in thought for thought in thoughts))
        best = max(leads, key=lambda lead: lead.score, default=None)
        if best is None:
            return f"{ANSWER_IS}: in what has been read, or nowhere."
        return best.thought


@dataclass(frozen=True, slots=True)
class _Lead:
    """Holds a sentence that names something new, and the words of the question that its passage leaves open."""

    sentence: str
    missing: tuple[str, ...]
    score: float

    @property
    def thought(self) -> str:
        return f"{self.sentence} That leaves: {' '.join(self.missing)}." if self.missing else self.sentence


def _leads(evidence: QuestionEvidence) -> Iterator[_Lead]:
    """Yield the sentences that name something not yet looked up; the more of the question they hold, the better."""
    for read in evidence.passages.values():
        for sentence in read.sentences:
            if ANSWER_IS.is_in(sentence.text):  # quoted, it would end the chain
                continue
            held = evidence.coverage(read.title_stems | sentence.stems)
            if held and any(not evidence.has_read(sentence.text[start:end]) for start, end in sentence.names):
                held += 0.5 / (1 + evidence.ranks[read.id])
                yield _Lead(sentence.text, tuple(evidence.missing(read.stems)), held)
