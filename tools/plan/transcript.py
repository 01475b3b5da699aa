"""A planner's dialogue over the hops of a run, to which each call only adds.

What was said is in the plans that it led to (`Plan.dialogue`), so a planner holds nothing between its calls: the
dialogue of a run that goes on after a pause, or in another process, is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ras_agent.budget import current_ledger
from ras_agent.marks import NOTE_FENCE, as_data, fenced
from ras_agent.prompts import Turn, task_block
from ras_agent.records import DialoguePart, Plan, Step
from ras_agent.review import notes
from ras_agent.text.tokens import cut_to_tokens
from ras_agent.tools.chat.window import estimate_turns

_SHORTEST, _SHORTEST_LAST = 32, 512
"""The tokens that are left of what a search found, where a window has no room for it; and of what the last found"""

Turns = tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Transcript:
    """Holds the turns of a dialogue: those that earlier plans have recorded, then those that are new since.

    form: the name of its dialect, so that no planner goes on with what was said in another.
    """

    form: str
    recorded: Turns
    new: Turns

    @classmethod
    def so_far(
        cls,
        form: str,
        steps: Sequence[Step],
        opening: Callable[[], Turns],
        search: Callable[[Step], Turn],
        found: Callable[[Step, Turn], Turns],
    ) -> Transcript:
        """Return the dialogue up to the next turn of the model.

        opening: the prompt before the first plan. search: the turn that stands for a search which the model has not
        made itself. found: what a step's search found, as turns that answer the model's own.
        """
        recorded: list[Turn] = []
        new: list[Turn] = []
        for place, step in enumerate(steps):
            if step.dialogue is not None and step.dialogue.form == form:
                recorded += map(Turn.of_message, step.dialogue.messages)
                new = []
                continue
            new += found(steps[place - 1], (recorded + new)[-1]) if place else opening()
            new.append(search(step))
        new += found(steps[-1], (recorded + new)[-1]) if steps else opening()
        return cls(form, tuple(recorded), tuple(new))

    @property
    def turns(self) -> Turns:
        return self.recorded + self.new

    def adding(self, *turns: Turn) -> Transcript:
        """Return the dialogue with further turns."""
        return replace(self, new=(*self.new, *turns))

    def recorded_in(self, plan: Plan, model: str) -> Plan:
        """Return a plan that records what is new in the dialogue that led to it, with the model of that name."""
        messages = tuple(turn.to_message() for turn in self.new)
        return replace(plan, dialogue=DialoguePart(self.form, model, messages))

    def fitting(
        self, room: int, window: int, around: Callable[[Turn], tuple[str, str]] = lambda turn: ("", "")
    ) -> Transcript:
        """Return the dialogue with at most `room` tokens, as far as what was found can be shortened.

        The last is shortened first: then a later prompt still begins with this one. The oldest is next. The ledger
        notes it, with the model's `window`. around: the text in front of what was found in a turn, and behind it, which
        stays.
        """
        excess = estimate_turns(self.turns) - room
        if excess <= 0:
            return self
        turns = list(self.turns)
        said = [n for n, turn in enumerate(turns) if turn.role == "assistant"]
        places = [n for n in range(said[0] if said else len(turns), len(turns)) if turns[n].role in ("user", "tool")]
        count = 0
        for place in (*reversed(places[-1:]), *places[:-1]):
            if excess <= 0:
                break
            least = _SHORTEST_LAST if place == places[-1] else _SHORTEST
            shorter = _shortened(turns[place], excess, least, around(turns[place]))
            excess -= estimate_turns([turns[place]]) - estimate_turns([shorter])
            count += shorter != turns[place]
            turns[place] = shorter
        if count:
            what = "1 result was" if count == 1 else f"{count} results were"
            current_ledger().note(f"{what} cut to fit into the model's window of {window:,} tokens")
        return replace(self, recorded=tuple(turns[: len(self.recorded)]), new=tuple(turns[len(self.recorded) :]))


def _shortened(turn: Turn, excess: int, least: int, around: tuple[str, str]) -> Turn:
    before, behind = around
    text = turn.text.removeprefix(before).removesuffix(behind)
    kept = max(estimate_turns([replace(turn, text=text)]) - excess, least)
    return replace(turn, text=f"{before}{cut_to_tokens(text, kept)}{behind}")


def new_notes(turns: Iterable[Turn]) -> str:
    """Return a person's notes on this run, as a block, if none of the turns shows them yet."""
    said = "\n".join(turn.text for turn in turns)
    return "" if all(fenced(NOTE_FENCE, as_data(note)) in said for note in notes()) else task_block("")
