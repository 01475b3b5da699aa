"""The generation phase of LEGO-GraphRAG: a model answers from the paths that were found."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from ras_agent.errors import RasError, SettingsError
from ras_agent.eval.metrics.answer_sets import (
    set_score,
    split_answers,
    substring_set_score,
)
from ras_agent.eval.metrics.answers import golden_match
from ras_agent.eval.question import Question
from ras_agent.prompts import Prompt, as_data, as_line, load
from ras_agent.protocols import Answerer
from ras_agent.question_graph import QuestionGraph
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat, ChatSettings, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, converse, fitted
from ras_agent.tools.chat.thoughts import without_thinking
from ras_agent.tools.chat.window import estimate_turns
from ras_agent.tools.retrieve.graph_retriever import path_passage
from ras_agent.tools.roles import resolve_answerer
from ras_agent.tools.subgraph.pipeline import FoundPaths

_MOST_TOKENS = 256  # of an answer, as published; the temperature there is 0.01
_LABEL = re.compile(r"^\W*(?:final )?answers?\W*:[\s*_]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Generated:
    """Holds the answers to one question, best first, how long they took by the clock, and what went wrong."""

    answers: tuple[str, ...]
    seconds: float = 0.0
    failure: str = ""


@dataclass(frozen=True, slots=True)
class GenerationScore:
    """Scores the answers to all questions; all but seconds in 0..1.

    hr_at_1: share of questions whose first answer is right; hr: with a right one among all. precision and recall are
    means over questions, f1 their harmonic mean, as for the modules. substring_hr_at_1, substring_f1: as the published
    code scores, where an answer is right that has a gold answer in it; F1 is the mean of the questions' F1. seconds:
    per question, by the clock.
    """

    hr_at_1: float
    hr: float
    precision: float
    recall: float
    f1: float
    substring_hr_at_1: float
    substring_f1: float
    seconds: float
    failures: int


def generation_score(
    questions: Sequence[Question], generated: Sequence[Generated]
) -> GenerationScore:
    """Score answers, which are right if their canonical keys are those of gold answers, and by the published rule."""
    keys = [list(dict.fromkeys(map(canonical_key, one.answers))) for one in generated]
    gold = [set(map(canonical_key, question.answers)) for question in questions]
    scores = [
        set_score(found, wanted) for found, wanted in zip(keys, gold, strict=True)
    ]
    precision, recall = (
        fmean(one.precision for one in scores),
        fmean(one.recall for one in scores),
    )
    pairs = [
        (one.answers, question.answers)
        for one, question in zip(generated, questions, strict=True)
    ]
    return GenerationScore(
        hr_at_1=fmean(
            bool(found) and found[0] in wanted
            for found, wanted in zip(keys, gold, strict=True)
        ),
        hr=fmean(one.recall > 0 for one in scores),
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        substring_hr_at_1=fmean(
            bool(answers) and golden_match(answers[0], wanted)
            for answers, wanted in pairs
        ),
        substring_f1=fmean(
            substring_set_score(answers, wanted).f1 for answers, wanted in pairs
        ),
        seconds=fmean(one.seconds for one in generated),
        failures=sum(bool(one.failure) for one in generated),
    )


class PathReader:
    """Answers from reasoning paths with a chat model, after so many worked examples as `shots` says.

    Or it hands the paths' facts to an answerer without a model, such as "offline", which takes no examples.
    """

    def __init__(
        self, model: object, shots: int = 0, settings: ChatSettings | None = None
    ) -> None:
        """Take the model. Raises SettingsError for more shots than the prompt has worked examples."""
        self.shots = shots
        self._answerer: Answerer | None = None
        if model == "offline":
            self._answerer = resolve_answerer("offline")
            if shots:
                raise SettingsError(
                    "the offline answerer has no prompt: give --shots 0"
                )
            return
        self._prompt = _with_shots(shots)
        self._chat: Chat = as_chat(model, settings or ChatSettings(temperature=0.0))

    def answers(self, question: str, found: FoundPaths) -> tuple[str, ...]:
        """Return the answers to `question` that the paths give, best first. Raises RasError if the model fails."""
        if self._answerer is None:
            return converse(self._chat, self._dialogue(question, found))
        passages = [path_passage(found.graph, one) for one in found.paths]
        passages = list({passage.id: passage for passage in passages}.values())
        answer = self._answerer.answer(
            question, QuestionGraph().merge(found.triples), passages, ()
        )
        return () if answer.abstained else tuple(split_answers(answer.text))

    def _dialogue(self, question: str, found: FoundPaths) -> Dialogue[tuple[str, ...]]:
        lines = [one.path.text(found.graph, as_line) for one in found.paths]

        def render(room: int) -> Request:
            kept = lines
            while True:
                turns = self._prompt.fill(
                    paths="\n".join(kept), question=as_data(question)
                )
                if not kept or estimate_turns(turns) <= room:
                    return Request(turns)
                kept = kept[: len(kept) * 7 // 8]  # the paths that fit least come last

        _, reply = yield from fitted(self._chat, _MOST_TOKENS, render)
        return read_answers(reply.text)


def read_answers(reply: str) -> tuple[str, ...]:
    """Return the answers that a reply lists, one a line, without thoughts and a label in front.

    >>> read_answers("<think>Verdi?</think>Answers:\\n- Le Roncole\\n- Milan")
    ('Le Roncole', 'Milan')
    """
    lines = (
        _LABEL.sub("", line).strip() for line in without_thinking(reply).splitlines()
    )
    return tuple(split_answers("\n".join(filter(None, lines))))


def generated(
    reader: PathReader,
    question: Question,
    found: FoundPaths,
    clock: Callable[[], float] = time.perf_counter,
) -> Generated:
    """Answer one question; what the model raises is the failure of this one alone."""
    began = clock()
    try:
        answers = reader.answers(question.question, found)
    except RasError as error:
        return Generated((), clock() - began, str(error))
    return Generated(answers, clock() - began)


def _with_shots(shots: int) -> Prompt:
    few = load("reasoning-paths", few_shot=True)
    opening, examples, last = few.turns[0], few.turns[1:-1], few.turns[-1]
    if not 0 <= shots <= len(examples) // 2:
        raise SettingsError(
            f"there are {len(examples) // 2} worked examples, got --shots {shots}"
        )
    return Prompt(few.name, (opening, *examples[: 2 * shots], last))
