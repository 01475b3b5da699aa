"""IRCoT's reasoner without a model: the retrieved sentence that says most of what is still missing."""

from __future__ import annotations

from collections.abc import Sequence

from ras_agent.records import Passage
from ras_agent.sentences import sentence_spans
from ras_agent.words import stems

__all__ = ["OfflineReasoner"]


class OfflineReasoner:
    """Reasons by quoting: its sentences are sentences of the passages."""

    name = "offline"

    def next_sentence(self, question: str, passages: Sequence[Passage], thoughts: Sequence[str]) -> str:
        missing = set(stems(question)) - {word for thought in thoughts for word in stems(thought)}
        best, most = "", 0
        for passage in passages:
            for start, end in sentence_spans(passage.text):
                sentence = passage.text[start:end]
                gain = len(missing & set(stems(f"{passage.title} {sentence}")))
                if gain > most and sentence not in thoughts:
                    best, most = sentence, gain
        return best or "So the answer is in what has been read."
