"""Parses composition strings, which choose a method for each module of a path finder.

ppr>shortest>random          instance 0: personalised PageRank, all shortest paths, a random choice
ppr+st>beam:st-ft>rerank     PageRank pruned by a sentence encoder, beam search guided by a fine-tuned one, a
reranker

extraction[+scorer] > shortest | complete | beam:scorer > random | scorer

Modules, and the 21 instances of Table 4, are those of LEGO-GraphRAG.
"""

from __future__ import annotations

from dataclasses import dataclass

from ras_agent.config.registry import is_registered, names
from ras_agent.contracts.errors import RasError

_TABLE_4 = ("bm25", "st", "rerank", "st-ft", "llm", "llm-ft")
"""BM25, sentence encoder, cross-encoder, fine-tuned sentence encoder, chat model, fine-tuned chat model.

There are more scorers: "kg", which is ours, uses the vectors that a knowledge graph already has, and plug-ins of the
kind `scorer` can add others.
"""

_EXTRACTIONS = ("ppr", "rwr", "ego")
_FORM = "'extraction[+scorer] > shortest | complete | beam:scorer > random | scorer', as in 'ppr+st>beam:st>rerank'"


class CompositionError(RasError, ValueError):
    """Reports an invalid composition string or instance number; the message names the part and the choices."""


@dataclass(frozen=True, slots=True)
class Composition:
    """Sets the method for each module of a path finder; `str` returns the string that parses to it."""

    extraction: str = "ppr"
    """"ppr", "rwr" or "ego"."""
    pruning: str = ""
    """The scorer that prunes the subgraph; "" for no pruning."""
    filtering: str = "shortest"
    """"shortest", "complete" or "beam"."""
    guide: str = ""
    """The scorer that guides the beam; "" for other filterings."""
    refinement: str = "random"
    """"random" or a scorer."""

    def __str__(self) -> str:
        pruned = f"{self.extraction}+{self.pruning}".removesuffix("+")
        filtered = f"{self.filtering}:{self.guide}".removesuffix(":")
        return f"{pruned}>{filtered}>{self.refinement}"

    @property
    def scorers(self) -> tuple[str, ...]:
        """Return the names of the scorers that it needs, each once."""
        parts = (self.pruning, self.guide, self.refinement)
        distinct = dict.fromkeys(parts)
        return tuple(name for name in distinct if is_registered("scorer", name))


def parse_composition(text: str | int) -> Composition:
    """Return the composition for a string, or for the number of an instance of Table 4, 0 to 20. Raises
    CompositionError.
    """
    string = str(text).strip()
    if string.isascii() and string.removeprefix("-").isdecimal():
        if not 0 <= int(string) < len(INSTANCES):
            raise CompositionError(
                f"there is no instance {string}: choose one of Table 4's, 0 to {len(INSTANCES) - 1}"
            )
        return INSTANCES[int(string)]
    modules = string.lower().split(">")
    if len(modules) != 3:
        raise CompositionError(
            f"{text!r} has {len(modules)} modules, expected three with '>' between: {_FORM}"
        )
    scorers = names("scorer")
    extraction, plus, pruning = map(str.strip, modules[0].partition("+"))
    filtering, colon, guide = map(str.strip, modules[1].partition(":"))
    refinement = modules[2].strip()

    def check(
        module: str, name: str, known: tuple[str, ...], shown: tuple[str, ...] = ()
    ) -> None:
        if name not in known:
            raise CompositionError(
                f"{text!r}: unknown {module} {name!r}; known: {', '.join(shown or known)}"
            )

    check("subgraph extraction", extraction, _EXTRACTIONS)
    if plus:
        check("scorer behind '+'", pruning, scorers)
    check(
        "path filtering",
        filtering,
        ("shortest", "complete", "beam"),
        ("shortest", "complete", "beam:<scorer>"),
    )
    if filtering == "beam":
        check("scorer behind 'beam:'", guide, scorers)
    elif colon:
        raise CompositionError(
            f"{text!r}: only 'beam' takes a scorer: write {filtering!r} without ':'"
        )
    check("path refinement", refinement, ("random", *scorers))
    return Composition(extraction, pruning, filtering, guide, refinement)


INSTANCES: tuple[Composition, ...] = (
    Composition(),
    Composition(extraction="rwr"),
    *(Composition(pruning=scorer) for scorer in _TABLE_4),
    Composition(filtering="complete"),
    *(Composition(filtering="beam", guide=scorer) for scorer in _TABLE_4),
    *(Composition(refinement=scorer) for scorer in _TABLE_4),
)
"""The instances of Table 4, by number."""
