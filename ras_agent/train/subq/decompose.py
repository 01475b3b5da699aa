"""Decomposes a question without a gold decomposition: a chat model picks documents and writes a search for each.

This is RAS's appendix C.1 and C.2 with different prompts. Each reply is checked, and the model is asked once more if it
is unusable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.marks import FLAGS, NONE, SUBQ
from ras_agent.contracts.records import Passage
from ras_agent.eval.metrics import checkable, holds
from ras_agent.eval.question import Question
from ras_agent.prompts import as_data, as_line, load, passage_block
from ras_agent.text.canonical import canonical_key
from ras_agent.text.lines import lines_of
from ras_agent.text.names import name_spans
from ras_agent.text.words import FUNCTION_WORDS
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat
from ras_agent.tools.chat.dialogue import Dialogue, P, aconverse, parsed_twice
from ras_agent.tools.chat.thoughts import without_thinking
from ras_agent.train.subq.label import as_subquery

MOST_TOKENS = 256
"""The maximum number of tokens of a reply, for a model that does not write its thoughts."""

_NUMBERS = re.compile(
    r"(?:[^\W\d][^\n\d:：]*[:：])?(\W*\d{1,4}(?:(?:[\s,;\[\]()]|\band\b)+\d{1,4})*\W*)"
)
_LABEL = re.compile(
    r"(?:(?:search|next|sub-?)[ -]?)*(?:question|query|search)\s*\d*\s*[:：]\s*",
    re.IGNORECASE,
)


class Decomposer:
    """Asks a chat model for the documents that a question needs, and for a search that finds each of them."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._pick = load("subq-documents")
        self._search = load("subq-search")
        self._repair = load("repair")

    async def documents(
        self, question: Question, documents: Sequence[Passage]
    ) -> tuple[Passage, ...]:
        """Ask the model which documents the question needs, and return them in the order in which to search for them.

        It returns () if the model replies [NONE].

        Raises:
            ParseError: if neither of two replies is a list of document numbers or [NONE].
            RasError: if a call fails.
        """
        turns = self._pick.fill(
            documents=passage_block(documents), question=as_data(question.question)
        )

        def parse(text: str) -> tuple[Passage, ...]:
            return tuple(
                documents[number - 1] for number in read_numbers(text, len(documents))
            )

        form = f"the numbers of the documents, separated by commas, or {NONE}"
        return await aconverse(
            self._chat,
            self._dialogue(Request(turns, max_tokens=MOST_TOKENS), parse, form),
        )

    async def subquery(
        self,
        question: Question,
        document: Passage,
        searches: Sequence[str],
        documents: Sequence[Passage],
    ) -> str:
        """Return a search question that finds `document`.

        Args:
            question: The question.
            document: The document to find.
            searches: The searches before this one.
            documents: The documents that these have found.

        Raises:
            ParseError: If neither of two replies is such a search.
            RasError: If a call fails.
        """
        lines = "\n".join(f"{SUBQ} {as_line(text)}" for text in searches)
        turns = self._search.fill(
            searches=lines,
            document=passage_block([document]),
            question=as_data(question.question),
        )
        texts = [
            question.question,
            *(text for passage in documents for text in (passage.title, passage.text)),
        ]

        def parse(text: str) -> str:
            search = read_search(text)
            if problem := problem_of(search, question, searches, texts):
                raise ParseError(problem)
            return search

        form = "one search question on one line"
        return await aconverse(
            self._chat,
            self._dialogue(Request(turns, max_tokens=MOST_TOKENS), parse, form),
        )

    def _dialogue(
        self, request: Request, parse: Callable[[str], P], form: str
    ) -> Dialogue[P]:
        reply = yield request
        asked = (request, reply)
        return (yield from parsed_twice(asked, parse, self._repair, form))


def read_numbers(reply: str, count: int) -> tuple[int, ...]:
    """Return the numbers from 1 to `count` that a reply lists on one line, each once; () for the reply [NONE].

    >>> read_numbers("Helpful documents: [2], [1]", 2)
    (2, 1)

    Raises ParseError for a reply without numbers, or with a number out of this range.
    """
    text = without_thinking(reply)
    last = ""
    for line in lines_of(text):
        match = _NUMBERS.fullmatch(line.strip(" \t*_`"))
        if match:
            last = match[1]
    if not last and re.search(NONE.live, text, FLAGS):
        return ()
    numbers = tuple(dict.fromkeys(map(int, re.findall(r"\d+", last))))
    if not numbers or min(numbers) < 1 or max(numbers) > count:
        raise ParseError(f"it lists no numbers from 1 to {count}")
    return numbers


def read_search(reply: str) -> str:
    """Return the search question in a reply: its only line, or its only line that is a question.

    Raises ParseError if there is no such line.
    """
    lines = [
        line
        for line in map(str.strip, lines_of(without_thinking(reply)))
        if any(map(str.isalnum, line))
    ]
    if len(lines) != 1:
        lines = [
            line for line in lines if line.rstrip("*_`\"'”’ ").endswith(("?", "？"))
        ]
    if len(lines) != 1:
        raise ParseError("it is not one search question")
    bare = re.sub(SUBQ.live, "", lines[0], flags=FLAGS).strip("*_`- ")
    label = _LABEL.match(bare)
    return as_subquery(bare[label.end() :] if label else bare)


def problem_of(
    search: str, question: Question, searches: Iterable[str], texts: Sequence[str]
) -> str:
    """Return the reason why `search` cannot be a planner's next sub-query, or "" if it can.

    Args:
        search: The sub-query. It must not repeat a search, must not state the answer before a text contains it, and may
            only use names that occur in a text.
        question: The question, with its answers.
        searches: The planner's searches so far.
        texts: The texts that the planner has read so far.
    """
    if canonical_key(search) in map(canonical_key, searches):
        return "it repeats an earlier search"
    answers = [answer for answer in question.answers if checkable(answer)]
    if holds(search, answers) and not any(holds(text, answers) for text in texts):
        return "it states what is to be found"
    if names := unknown_names(search, texts):
        return f"nothing that is known by then names {', '.join(names)}"
    return ""


def unknown_names(search: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names in a search of which some word occurs in no text."""
    words = set(FUNCTION_WORDS)
    for text in texts:
        words.update(canonical_key(text).split())
    names = []
    for start, end in name_spans(search):
        name = search[start:end]
        if not words.issuperset(canonical_key(name).split()):
            names.append(name)
    return tuple(names)
