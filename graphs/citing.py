"""Citations that exist: an answer's evidence held against what was retrieved and read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ras_agent.records import Answer, Citation, Failure, Passage

__all__ = ["checked"]


def checked(answer: Answer, passages: Mapping[str, Passage], triple_ids: Collection[str], hop: int = 0) -> Answer:
    """`answer` without the passages, spans and facts that it cites and that there are not; each leaves a Failure."""
    kept: list[Citation] = []
    failures: list[Failure] = []

    def invented(what: str) -> None:
        failures.append(Failure("answerer", f"dropped an invented citation: {what}", hop, answer.text[:200]))

    for citation in answer.citations:
        passage = passages.get(citation.passage_id)
        if passage is None:
            invented(f"passage {citation.passage_id!r} was not retrieved")
            continue
        if not 0 <= citation.start <= citation.end <= len(passage.text):
            invented(f"characters {citation.start} to {citation.end} of passage {passage.id!r} do not exist")
            citation = replace(citation, start=0, end=0, quote="")
        unknown = [name for name in citation.triple_ids if name not in triple_ids]
        if unknown:
            invented(f"facts {', '.join(unknown)} are not in the graph")
            citation = replace(citation, triple_ids=tuple(n for n in citation.triple_ids if n in triple_ids))
        kept.append(citation)
    return replace(answer, citations=tuple(kept), failures=(*answer.failures, *failures)) if failures else answer
