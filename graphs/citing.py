"""Citations that exist: an answer's evidence held against what was retrieved and read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ras_agent.graphs.plain import place_in, whole
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
        place = place_in(passage.text, citation.start, citation.end)
        if place is None:
            invented(f"characters {citation.start} to {citation.end} of passage {passage.id!r} do not exist")
            citation = replace(citation, quote="")
        start, end = place or (0, 0)
        title, quote = whole(str(citation.title)), whole(str(citation.quote))
        citation = replace(citation, start=start, end=end, title=title, quote=quote)
        unknown = [name for name in citation.triple_ids if name not in triple_ids]
        if unknown:
            invented(f"facts {', '.join(unknown)} are not in the graph")
            citation = replace(citation, triple_ids=tuple(n for n in citation.triple_ids if n in triple_ids))
        kept.append(citation)
    return replace(answer, citations=tuple(kept), failures=(*answer.failures, *failures))
