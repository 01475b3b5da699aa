"""A nested question as a chain of simpler ones: the innermost description that stands for an unnamed entity.

    Which river flows through the city where the inventor of the telephone was born?

holds "the inventor of the telephone"; once that is known to be Alexander Graham Bell, the question reads "... the city
where Alexander Graham Bell was born?" and holds "the city where Alexander Graham Bell was born"; and so on until no
description is left. Only closed-class words, capitals and word endings are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ras_agent.records import Answer, Passage
from ras_agent.text.names import DEMONYM, name_spans
from ras_agent.text.words import FUNCTION_WORDS, stems, word_set
from ras_agent.tools.offline.expected_answer import head_type
from ras_agent.tools.offline.question import analyse
from ras_agent.tools.offline.question_phrases import (
    DETERMINERS,
    PREPOSITIONS,
    RELATIVES,
    QuestionToken,
    clause_end,
    object_end,
    participle,
    question_tokens,
)

__all__ = ["MOST_LINKS", "Description", "innermost", "names_link", "speaking_of"]

# more than any question that people ask; a found name that holds a description itself must not go on for ever
MOST_LINKS = 5

_NAMELESS = word_set("name names type kind sort member members part number list end one ones lot each")


# "Bell was born", "the World Wide Web was invented"
_PASSIVE = re.compile(r"(?P<who>.+?) (?P<be>is|was|are|were) (?P<done>.+)")
# who does or is something: "librettist", "playwright"; for nouns that no list holds
_PERSON = re.compile(r"(?:ist|wright|smith|woman|man|ian|ess|owner|maker|finder|ventor|ditor|thor|ctor|tor)$")


@dataclass(frozen=True, slots=True)
class Description:
    """Characters `start` to `end` of a question that describe one entity without naming it. `noun`: what it is."""

    start: int
    end: int
    text: str
    noun: str

    @property
    def as_question(self) -> str:
        """What to ask to find the entity, in the words of the description.

        >>> innermost("Where was the inventor of the telephone born?").as_question
        'Who is the inventor of the telephone?'
        >>> innermost("Which river flows through the city where Bell was born?").as_question
        'In which city was Bell born?'
        """
        head, _, rest = self.text.partition(f" {self.noun} ")
        if rest and head.lower() in DETERMINERS:
            link, _, clause = rest.partition(" ")
            if link == "where" and (place := _PASSIVE.fullmatch(clause)):
                return f"In which {self.noun} {place['be']} {place['who']} {place['done']}?"
            if link in {"who", "that", "which"}:
                return f"Which {self.noun} {clause}?"
            if participle(link):
                return f"Which {self.noun} was {rest}?"
        agent = re.fullmatch(rf"[Tt]he (?P<what>.+) {re.escape(self.noun)}", self.text)
        if agent and name_spans(agent["what"]) == [(0, len(agent["what"]))]:
            return f"Who is the {self.noun} of {agent['what']}?"
        asks = "Who" if _PERSON.search(self.noun) or analyse(f"Which {self.noun}?").answer_type == "person" else "What"
        text = self.text.removeprefix("The ")
        return f"{asks} is {text}?" if text == self.text else f"{asks} is the {text}?"

    def named_by(self, evidence: str) -> bool:
        """Whether `evidence` speaks of what the description hangs on: the names in it, else its words but the noun.

        >>> innermost("Where was the inventor of the telephone born?").named_by("Telephones were invented by Bell.")
        True
        """
        names = [self.text[start:end] for start, end in name_spans(self.text)]
        needed = stems(" ".join(names)) or stems(self.text.replace(self.noun, "", 1))
        return set(needed) <= set(stems(evidence))

    def replaced(self, question: str, name: str) -> str:
        """`question`, in which the description stands, with `name` in its place."""
        return question[: self.start] + name + question[self.end :]


def names_link(answer: Answer, link: Description, passages: Mapping[str, Passage], trust: float) -> bool:
    """Whether `answer` may stand for `link`: not abstaining, sure enough, and read where the link's words stand.

    passages: by id, all that the answer may cite. trust: least confidence, in 0..1; an answer without one is sure.
    """
    if answer.abstained or (answer.confidence is not None and answer.confidence < trust):
        return False
    cited = [passages[citation.passage_id] for citation in answer.citations]
    return link.named_by(" ".join(f"{passage.title} {passage.text}" for passage in cited))


def speaking_of(name: str, passages: Sequence[Passage]) -> list[Passage]:
    """The passages that hold every word of `name`, in order; all of them where none does, or for no name."""
    needed = set(stems(name))
    found = [passage for passage in passages if needed <= set(stems(f"{passage.title} {passage.text}"))]
    return found or list(passages)


def innermost(question: str) -> Description | None:
    """The first description that holds a name or a plain noun but no other description; None if there is none.

    What the question itself asks for ("Which river ...", "the length of ...") is not described but sought, and is
    never returned when nothing precedes it but question words.
    """
    tokens = question_tokens(question)
    found = [
        description
        for head in range(len(tokens))
        for description in (_described(question, tokens, head),)
        if description is not None
    ]
    inner = [one for one in found if not any(one.start < two.start < one.end for two in found)]
    return inner[0] if inner else None


def _described(question: str, tokens: list[QuestionToken], head: int) -> Description | None:
    """The description whose head noun is token `head`."""
    noun = tokens[head]
    if noun.name or not noun.word.isalpha() or noun.word in FUNCTION_WORDS | _NAMELESS or head + 1 >= len(tokens):
        return None
    if (named := _acts_on(question, tokens, head)) is not None:
        return named
    start, owner = _phrase_start(question, tokens, head)
    if start is None:
        return None
    if owner:
        return _made(question, tokens, start, head)
    link = tokens[head + 1].word
    if tokens[head + 1].name:
        return None
    if link == "of":
        if _says_of_what_sort(tokens, head + 2) and not _does_something(noun.word):
            return None
        last = object_end(tokens, head + 2)
    elif link in RELATIVES:
        last = clause_end(tokens, head + 2, place=link == "where")
    elif link in PREPOSITIONS and head + 2 < len(tokens) and tokens[head + 2].word == "which":
        last = clause_end(tokens, head + 3, place=True)
    elif participle(link) and head + 2 < len(tokens) and tokens[head + 2].word in PREPOSITIONS:
        last = object_end(tokens, head + 3)
    else:
        return None
    return None if last is None else _made(question, tokens, start, last)


def _phrase_start(question: str, tokens: list[QuestionToken], head: int) -> tuple[int | None, bool]:
    """The token that the noun phrase begins with, and whether an owner does: "the first novel", "Beethoven's opera"."""
    for i in range(head - 1, max(head - 5, -1), -1):
        token = tokens[i]
        if token.word in DETERMINERS and not token.name:
            # "what is the length of ..." seeks the length
            before = tokens[:i]
            if len(before) >= 2 and before[-1].word in _BE and before[-2].word in _ASKING:
                return None, False
            return i, False
        if question[token.end : token.end + 2] in {"'s", "’s", "' ", "’ "}:
            return i, True
        # "the body of water in which": a noun that says of what sort stands between
        if token.word == "of" and i > 0 and not tokens[i - 1].name and not tokens[i + 1].name:
            continue
        if token.name or token.word in FUNCTION_WORDS or not token.word.isalpha():
            return None, False
    return None, False


def _acts_on(question: str, tokens: list[QuestionToken], head: int) -> Description | None:
    """The description "the SS.11 manufacturer", "the Psycho director": a name between the article and who acts."""
    noun, after = tokens[head].word, tokens[head + 1]
    if not _does_something(noun) or after.name or after.word in RELATIVES | {"of", ","} or participle(after.word):
        return None
    if head < 2 or not tokens[head - 1].name or tokens[head - 2].word != "the" or tokens[head - 2].name:
        return None
    if DEMONYM.fullmatch(question[tokens[head - 1].start : tokens[head - 1].end]):
        return None
    before = [token.word for token in tokens[: head - 2]]
    if len(before) >= 2 and before[-1] in _BE and before[-2] in _ASKING:
        return None
    return _made(question, tokens, head - 2, head)


_BE = word_set("is was are were")
_ASKING = word_set("what which who")


def _says_of_what_sort(tokens: list[QuestionToken], start: int) -> bool:
    """Whether the noun from `start` is bare: "of water", "of ethics" tell a sort, and no one thing."""
    return start < len(tokens) and not tokens[start].name and tokens[start].word not in DETERMINERS


def _does_something(noun: str) -> bool:
    """Whether the noun is someone or something that acts: "director", "librettist", "manufacturer"."""
    acts = noun.endswith(("er", "or", "ist", "ian", "ress"))
    return _PERSON.search(noun) is not None or (acts and head_type((noun,)) in {"person", "organisation"})


def _made(question: str, tokens: list[QuestionToken], first: int, last: int) -> Description | None:
    start, end = tokens[first].start, tokens[last].end
    head = next((t.word for t in reversed(tokens[first : last + 1]) if not t.name), "")
    for i in range(first, last + 1):
        token = tokens[i]
        if not token.name and token.word not in FUNCTION_WORDS and not token.word.endswith("'s"):
            head = token.word
            following = tokens[i + 1] if i + 1 <= last else None
            if following is None or following.name or following.word in FUNCTION_WORDS or participle(following.word):
                break
    return Description(start, end, question[start:end], head)
