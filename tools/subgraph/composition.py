"""Composition strings, which choose a method for each module, and the 21 instances of LEGO-GraphRAG's Table 4.

ppr>shortest>random          instance 0: personalised PageRank, all shortest paths, a random choice
ppr+st>beam:st-ft>rerank     PageRank pruned by a sentence encoder, beam search led by a fine-tuned one, a reranker

extraction[+scorer] > shortest | complete | beam:scorer > random | scorer
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from ras_agent.errors import RasError

_TABLE_4 = ("bm25", "st", "rerank", "st-ft", "llm", "llm-ft")
SCORERS = (*_TABLE_4, "kg")
"""BM25, sentence encoder, cross-encoder, fine-tuned sentence encoder, chat model, fine-tuned chat model. "kg", which is
ours, uses the vectors that a knowledge graph already has."""

_EXTRACTIONS = ("ppr", "rwr", "ego")
_FORM = "'extraction[+scorer] > shortest | complete | beam:scorer > random | scorer', as in 'ppr+st>beam:st>rerank'"


class CompositionError(RasError, ValueError):
    """Raised for a composition string or instance number that is not valid; it names the part and the choices."""


@dataclass(frozen=True, slots=True)
class Composition:
    """Method of each module of a path finder; `str` gives the string that parses to it.

    extraction: "ppr", "rwr" or "ego". pruning: a scorer or "". filtering: "shortest", "complete" or "beam", whose
    scorer is `guide`, else "". refinement: "random" or a scorer.
    """

    extraction: str = "ppr"
    pruning: str = ""
    filtering: str = "shortest"
    guide: str = ""
    refinement: str = "random"

    def __str__(self) -> str:
        if self.pruning:
            pruned = f"{self.extraction}+{self.pruning}"
        else:
            pruned = self.extraction
        if self.guide:
            filtered = f"{self.filtering}:{self.guide}"
        else:
            filtered = self.filtering
        return f"{pruned}>{filtered}>{self.refinement}"

    @property
    def scorers(self) -> tuple[str, ...]:
        """List the scorers it needs, each once."""
        parts = (
            self.pruning,
            self.guide,
            self.refinement,
        )
        return tuple(dict.fromkeys(name for name in parts if name in SCORERS))


def parse_composition(text: str | int) -> Composition:
    """Read a composition from its string or from the number of an instance, 0 to 20. Raises CompositionError."""
    string = str(text).strip()
    if string.isascii() and string.removeprefix("-").isdecimal():
        if not 0 <= int(string) < len(INSTANCES):
            raise CompositionError(f"there is no instance {string}: Table 4 has 0 to {len(INSTANCES) - 1}")
        return INSTANCES[int(string)]
    modules = [part.strip().lower() for part in string.split(">")]
    if len(modules) != 3:
        raise CompositionError(f"{text!r} has {len(modules)} modules, expected three with '>' between: {_FORM}")
    extraction, plus, pruning = (part.strip() for part in modules[0].partition("+"))
    filtering, colon, guide = (part.strip() for part in modules[1].partition(":"))
    if extraction not in _EXTRACTIONS:
        _unknown(text, "subgraph extraction", extraction, _EXTRACTIONS)
    if plus and pruning not in SCORERS:
        _unknown(text, "scorer behind '+'", pruning, SCORERS)
    if filtering not in ("shortest", "complete", "beam"):
        _unknown(
            text,
            "path filtering",
            filtering,
            ("shortest", "complete", "beam:<scorer>"),
        )
    if filtering == "beam" and guide not in SCORERS:
        _unknown(text, "scorer behind 'beam:'", guide, SCORERS)
    if filtering != "beam" and colon:
        raise CompositionError(f"{text!r}: {filtering} paths are found without a scorer, write {filtering!r} alone")
    if modules[2] != "random" and modules[2] not in SCORERS:
        _unknown(
            text,
            "path refinement",
            modules[2],
            ("random", *SCORERS),
        )
    return Composition(
        extraction,
        pruning,
        filtering,
        guide,
        modules[2],
    )


def _unknown(text: str | int, what: str, name: str, choices: tuple[str, ...]) -> NoReturn:
    raise CompositionError(f"{text!r}: unknown {what} {name!r}; known: {', '.join(choices)}")


INSTANCES: tuple[Composition, ...] = (
    Composition(),
    Composition(extraction="rwr"),
    *(Composition(pruning=scorer) for scorer in _TABLE_4),
    Composition(filtering="complete"),
    *(Composition(filtering="beam", guide=scorer) for scorer in _TABLE_4),
    *(Composition(refinement=scorer) for scorer in _TABLE_4),
)
"""The instances of Table 4 by number."""
