"""Named settings of the loop."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

from ras_agent.budget import Limits
from ras_agent.errors import UnknownName

__all__ = ["PRESETS", "Preset", "preset_named"]


@dataclass(frozen=True, slots=True)
class Preset:
    """What a preset fixes, whatever limits are given: early stops and the graph's bound, and whether to abstain."""

    early_stops: bool = True
    bounded: bool = True
    may_abstain: bool = True

    def limits(self, limits: Limits) -> Limits:
        """`limits` as this preset has them."""
        if not self.early_stops:
            limits = replace(limits, stop_on_repeat=False, stop_on_no_new_facts=False)
        return limits if self.bounded else replace(limits, max_facts=sys.maxsize)


PRESETS = {
    "default": Preset(),
    # RAS as published: only the planner or the fifth hop ends the loop, the whole graph is kept, an answer is given
    "paper": Preset(early_stops=False, bounded=False, may_abstain=False),
}


def preset_named(name: str | None) -> Preset:
    """The preset `name`; None is the default. Raises UnknownName."""
    found = PRESETS.get(name or "default")
    if found is None:
        raise UnknownName("preset", str(name), tuple(PRESETS))
    return found
