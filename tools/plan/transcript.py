"""Keeps the dialogue of a planner over the hops of a run; each call only adds turns to it.

The turns are stored in the plans that they led to (`Plan.dialogue`), so a planner keeps no state between its calls:
a run that resumes after a pause, or in another process, has the same dialogue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ras_agent.contracts.marks import NOTE_FENCE, as_data, fenced
from ras_agent.contracts.records import DialoguePart, Plan, Step
from ras_agent.prompts import Turn, task_block
from ras_agent.running.budget import current_ledger
from ras_agent.running.review import notes
from ras_agent.text.tokens import cut_to_tokens
from ras_agent.tools.chat.window import estimate_turns

_SHORTEST = 32
"""The number of tokens that are always kept of a search's result when the dialogue is shortened to fit the window."""
_SHORTEST_LAST = 512
"""The number of tokens that are always kept of the last search's result."""

Turns = tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Transcript:
    """Holds the turns of a dialogue."""

    form: str
    """The name of the dialogue's dialect, so that no planner continues a dialogue in another dialect."""
    recorded: Turns
    """The turns that are stored in earlier plans."""
    new: Turns
    """The turns after them."""

    @classmethod
    def so_far(
        cls,
        form: str,
        steps: Sequence[Step],
        opening: Callable[[], Turns],
        search: Callable[[Step], Turn],
        found: Callable[[Step, Turn], Turns],
    ) -> Transcript:
        """Return the dialogue up to the model's next turn.

        Args:
            form: the name of the dialect; steps recorded in another dialect are rewritten by `search`.
            steps: the searches made so far.
            opening: returns the prompt before the first plan.
            search: returns the assistant's turn for a search that the model did not plan itself.
            found: returns the turns that show a step's result, given the assistant's turn that they answer.
        """
        recorded: list[Turn] = []
        new: list[Turn] = []
        last: Step | None = None

        def result() -> Turns:
            if last is None:
                return opening()
            said = (recorded + new)[-1]
            return found(last, said)

        for step in steps:
            if step.dialogue is not None and step.dialogue.form == form:
                recorded += map(Turn.of_message, step.dialogue.messages)
                new = []
            else:
                new += result()
                new.append(search(step))
            last = step
        new += result()
        return cls(form, tuple(recorded), tuple(new))

    @property
    def turns(self) -> Turns:
        """Return all turns."""
        return self.recorded + self.new

    def adding(self, *turns: Turn) -> Transcript:
        """Return the dialogue with more turns at its end."""
        new = (*self.new, *turns)
        return replace(self, new=new)

    def recorded_in(self, plan: Plan, model: str) -> Plan:
        """Return the plan with the dialogue's new turns stored in it.

        Args:
            model: the name of the model that made the plan.
        """
        messages = tuple(map(Turn.to_message, self.new))
        dialogue = DialoguePart(self.form, model, messages)
        return replace(plan, dialogue=dialogue)

    def fitting(
        self,
        room: int,
        window: int,
        around: Callable[[Turn], tuple[str, str]] = lambda turn: ("", ""),
    ) -> Transcript:
        """Return the dialogue with at most `room` tokens, as far as shortening search results allows.

        The last result is shortened first, so that later prompts still begin with the same turns; then the oldest
        ones. The run's ledger notes the cut.

        Args:
            window: the size of the model's window in tokens, for that note.
            around: returns the texts before and after the result in a turn, which are kept.
        """
        excess = estimate_turns(self.turns) - room
        if excess <= 0:
            return self
        turns = list(self.turns)
        results = _places_of_results(turns)
        count = 0
        for place in (*results[-1:], *results[:-1]):
            if excess <= 0:
                break
            turn = turns[place]
            least = _SHORTEST
            if place == results[-1]:
                least = _SHORTEST_LAST
            shorter = _shortened(turn, excess, least, around(turn))
            if shorter == turn:
                continue
            excess -= estimate_turns([turn]) - estimate_turns([shorter])
            turns[place] = shorter
            count += 1
        if count:
            cut = f"{count} results were"
            if count == 1:
                cut = "1 result was"
            current_ledger().note(
                f"{cut} cut to fit into the model's window of {window:,} tokens"
            )
        border = len(self.recorded)
        return replace(
            self,
            recorded=tuple(turns[:border]),
            new=tuple(turns[border:]),
        )


def _places_of_results(turns: Sequence[Turn]) -> list[int]:
    """Return the indices of the turns that answer the model with a result."""
    places = []
    answers = False
    for place, turn in enumerate(turns):
        if turn.role == "assistant":
            answers = True
        elif answers and turn.role != "system":
            places.append(place)
    return places


def _shortened(turn: Turn, excess: int, least: int, around: tuple[str, str]) -> Turn:
    before, behind = around
    text = turn.text.removeprefix(before).removesuffix(behind)
    bare = replace(turn, text=text)
    room = estimate_turns([bare]) - excess
    kept = cut_to_tokens(text, max(room, least))
    return replace(turn, text=f"{before}{kept}{behind}")


def new_notes(turns: Iterable[Turn]) -> str:
    """Return the user's notes on this run as a block; "" if the turns show all of them already."""
    said = "\n".join(turn.text for turn in turns)
    blocks = (fenced(NOTE_FENCE, as_data(note)) for note in notes())
    if all(block in said for block in blocks):
        return ""
    return task_block("")
