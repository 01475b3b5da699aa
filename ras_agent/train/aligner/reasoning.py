"""Writes reasoning that links a question to its answer: a gold path in words, supporting sentences, or a
model's text.

The reasoning contains the answer, so it is used only for training.
"""

from __future__ import annotations

from collections.abc import Sequence

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.records import Passage, Triple
from ras_agent.prompts import Prompt, as_line, fact_block, load
from ras_agent.prompts.fit import first_that_fit
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.tokens import estimate_tokens
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat, ChatSettings, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, converse_all, fitted
from ras_agent.tools.chat.thoughts import without_thinking
from ras_agent.tools.chat.window import estimate_turns
from ras_agent.tools.graph_tokens.features import Fact
from ras_agent.tools.subgraph.graph import Graph, Subgraph
from ras_agent.train.aligner.samples import AlignerSample
from ras_agent.train.data import names_any, paths_to_answers

_MOST_TOKENS = 300


def path_in_words(path: Sequence[Sequence[str]]) -> str:
    """Return the triples of a gold path as sentences.

    >>> path_in_words([("Ada", "mother", "Anna"), ("Anna", "born in", "Kent")])
    'Ada mother Anna. Anna born in Kent.'
    """
    return " ".join(f"{' '.join(triple)}." for triple in path)


def reasoning_in_graph(
    facts: Sequence[Fact], starts: Sequence[str], answers: Sequence[str]
) -> str:
    """Return the facts of a shortest path from a start to each answer as sentences, followed by the answers.

    If no path leads to an answer, the facts that name an answer are used, or all facts if none does.

    >>> reasoning_in_graph([("Ada", "mother", "Anna"), ("Anna", "born in", "Kent")], ["Ada"], ["Kent"])
    'Ada mother Anna. Anna born in Kent. The answer is Kent.'
    """
    chosen = _facts_of_paths(facts, starts, answers)
    if not chosen:
        chosen = [fact for fact in facts if names_any(" ".join(fact), answers)]
    chain = dict.fromkeys(chosen or facts)
    return f"{path_in_words(list(chain))} The answer is {', '.join(answers)}.".strip()


def _facts_of_paths(
    facts: Sequence[Fact], starts: Sequence[str], answers: Sequence[str]
) -> list[Fact]:
    """Return the facts of the first shortest path to each answer; [] if no path leads to an answer."""
    graph = Graph.from_triples(facts)
    chosen = []
    for path in paths_to_answers(Subgraph.full(graph), starts, answers):
        for fact in path.triples(graph):
            chosen.append((fact.subject, fact.predicate, fact.object))
    return chosen


def supporting_sentences(gold: Sequence[Passage], answers: Sequence[str]) -> str:
    """Return the sentences of each gold passage that name an answer or another gold passage.

    If a passage has no such sentence, its first sentence is taken.
    """
    texts = []
    for passage in gold:
        names = list(answers)
        for other in gold:
            if other.title != passage.title:
                names.append(other.title)
        sentences = [
            passage.text[start:end] for start, end in sentence_spans(passage.text)
        ]
        naming = [sentence for sentence in sentences if names_any(sentence, names)]
        for sentence in naming or sentences[:1]:
            texts.append(f"{passage.title}: {sentence}")
    return " ".join(texts)


def chat_reasoning(
    model: object,
    samples: Sequence[AlignerSample],
    settings: ChatSettings | None = None,
    at_once: int = 8,
) -> list[str]:
    """Ask a chat model how the facts of each sample's graph lead from the question to its answer (section 3.2.1).

    Args:
        model: As `as_chat` takes it.
        samples: The questions with their graphs and answers.
        settings: How the model is called.
        at_once: The number of calls at the same time.

    Raises:
        ModelCallError: If a call failed.
        ParseError: If a reply is empty.
    """
    chat = as_chat(model, settings)
    prompt = load("reasoning-chain")
    dialogues = [_dialogue(chat, prompt, sample) for sample in samples]
    return converse_all(chat, dialogues, at_once)


def _dialogue(chat: Chat, prompt: Prompt, sample: AlignerSample) -> Dialogue[str]:
    def filled(facts: Sequence[Fact]) -> Request:
        block = fact_block(Triple(*fact) for fact in facts)
        question = as_line(sample.question)
        answer = as_line("; ".join(sample.answers))
        return Request(prompt.fill(facts=block, question=question, answer=answer))

    def render(room: int) -> Request:
        costs = (estimate_tokens(str(Triple(*fact))) + 1 for fact in sample.facts)
        room -= estimate_turns(filled(()).turns)
        return filled(sample.facts[: first_that_fit(costs, room)])

    _, reply = yield from fitted(chat, _MOST_TOKENS, render)
    text = " ".join(without_thinking(reply.text).split())
    if not text:
        raise ParseError(
            f"{chat.name} wrote no reasoning for the question {sample.id}: run the command again"
        )
    return text
