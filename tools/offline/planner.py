"""Plans searches by the passages found so far: the planner of the offline mode, and IRCoT's reasoner."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import permutations

from ras_agent.contracts.marks import ANSWER_IS
from ras_agent.contracts.records import Hit, Passage, Plan, Step, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.times import without_as_of
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import is_name, names_in
from ras_agent.text.overlap import holds
from ras_agent.text.words import stem_set, stems
from ras_agent.tools.offline.answerer.answer import LEAST_CONFIDENCE, OfflineAnswerer
from ras_agent.tools.offline.chain import Chain, follow, passages_of
from ras_agent.tools.offline.english import EnglishOnly
from ras_agent.tools.offline.layouts import steps_as_reviewed
from ras_agent.tools.offline.question import QuestionAnalysis, analyse
from ras_agent.tools.offline.reader import Reader
from ras_agent.tools.offline.reading import ReadPassage, nearness, rarity, tokens_of

_MOST_BRIDGES = 3
_ENOUGH = 0.95  # share of the question's weight that explains it
_NAME_WEIGHT = 1.5  # weight of a word inside a name, relative to one outside
_WORD = re.compile(r"\w+(?:[.,]\d+)*(?:['’-]\w+)*")  # "state-owned" is one word
# weights in a bridge's score, tuned on the tuning half and two training sets; results hardly change near these values
_COVERED = 2.0
_FIRST_RANK = 2.0
_CLASS = 1.0
_ALREADY_READ = -1.0


class OfflinePlanner:
    """Takes the question apart with the reader and, if that leads to no answer, searches for names in the passages.

    The things that the question describes are asked for, the innermost first, and replaced by their answers. Then
    the whole question is asked. If its answer is sure, the search ends. If it compares things ("Who is older, A or
    B?"), each is looked up. Otherwise the planner follows bridges: names in the passages, each searched for
    together with the question's words that its passage does not contain, until two linked passages explain the
    question, `most_bridges` have been followed, or no name is left.
    """

    name = "offline"

    def __init__(
        self,
        reader: Reader,
        *,
        most_bridges: int = _MOST_BRIDGES,
        language: str = "",
        enough: float = LEAST_CONFIDENCE,
    ) -> None:
        """Take the reader and the limits of the search.

        Args:
            most_bridges: the maximum number of bridges.
            language: the language of the texts, if it is known; if it is not English, the question is searched for
                once, unchanged.
            enough: the confidence of an answer at which the search ends.
        """
        self._reader = reader
        self._most_bridges = most_bridges
        self._english = EnglishOnly("planner", language)
        self._answerer = OfflineAnswerer(reader, least_confidence=enough)
        self._enough = enough

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the next sub-query, or "sufficient"; the reason states the facts found or the missing part."""
        question = without_as_of(question)
        if refusal := self._english.refusal(question):
            return (
                Plan("sufficient", reason=refusal)
                if steps
                else Plan("subq", question, refusal)
            )
        steps = steps_as_reviewed(graph, steps)
        passages = passages_of(steps)
        chain = follow(question, self._reader, steps, passages)
        if chain.open:
            return Plan("subq", chain.open, _so_far(chain))
        searches = {canonical_key(step.subquery) for step in steps}
        evidence = gather(question, steps)
        if chain.answered is None:
            if canonical_key(question) not in searches:
                reason = _so_far(chain) or "first the question as it is asked"
                return Plan("subq", question, reason)
            if evidence.asked.compared:
                return _compare(evidence, searches)
        reply = self._answerer.reply(question, list(passages.values()), steps)
        if reply and reply.confidence and reply.confidence >= self._enough:
            reason = _so_far(chain, f"so the answer is {reply.text}")
            return Plan("sufficient", reason=reason)
        if chain.answered:
            reason = _so_far(
                chain, "the last search answers the rest, though not surely"
            )
            return Plan("sufficient", reason=reason)
        if evidence.explained():
            return Plan(
                "sufficient",
                reason="two passages, of which one names the other, tell of all that is asked",
            )
        if len(steps) > self._most_bridges:
            most = f"most_bridges is {self._most_bridges}"
            reason = f"no more names may be looked up ({most}); what was read has to do"
            return Plan("sufficient", reason=reason)
        earlier = searches - {canonical_key(question)}
        for bridge in bridges(evidence, graph):
            if not any(holds(search, bridge.name) for search in earlier):
                fact = bridge.fact
                said = f"{fact.subject} {fact.predicate} {fact.object}"
                return Plan(
                    "subq", bridge.subquery, f"{bridge.name} may lead on: {said}"
                )
        return Plan("sufficient", reason="no name is left that may lead on")


def _so_far(chain: Chain, *end: str) -> str:
    """Return the answers of the chain's links as text: "the inventor of the telephone is Alexander Graham Bell"."""
    said = [f"{link.description} is {link.found.text}" for link in chain.links]
    return "; ".join([*said, *end])


def _compare(evidence: Evidence, searches: Set[str]) -> Plan:
    unread = []
    for name in evidence.asked.compared:
        if not evidence.has_read(name) and canonical_key(name) not in searches:
            unread.append(name)
    if unread:
        first, *further = unread
        names = " and ".join(unread)
        reason = f"nothing has been read yet about {names}, which the question compares"
        return Plan("subq", first, reason, further=tuple(further))
    return Plan(
        "sufficient", reason="both that the question compares have been looked up"
    )


class OfflineReasoner:
    """Quotes, as the next thought, the sentence with most of the question's words that also names something new.

    The last sentence of the chain contains "answer is".
    """

    name = "offline"

    def __init__(self, language: str = "") -> None:
        """Take the language of the texts, if it is known; "" otherwise."""
        self._english = EnglishOnly("planner", language)

    def next_sentence(
        self, question: str, passages: Sequence[Passage], thoughts: Sequence[str]
    ) -> str:
        """Return the sentence to search with next, or the one that ends the chain if no sentence leads on."""
        question = without_as_of(question)
        if refusal := self._english.refusal(question):
            return f"{ANSWER_IS}: nowhere that I can read, since {refusal}."
        evidence = gather(
            question,
            [Step(1, question, tuple(Hit(passage, 0.0) for passage in passages))],
        )
        if evidence.explained():
            return f"{ANSWER_IS}: in two passages that have been read, one of which names the other."
        for name in evidence.asked.compared:
            thought = f"What about {name}?"
            if not evidence.has_read(name) and thought not in thoughts:
                return thought
        if evidence.asked.compared:
            return f"{ANSWER_IS}: in the passages about what is compared."
        said = " ".join(thoughts)
        leads = [lead for lead in _leads(evidence) if lead[1] not in said]
        if not leads:
            return f"{ANSWER_IS}: in what has been read, or nowhere."
        _, sentence, missing = max(leads, key=lambda lead: lead[0])
        return f"{sentence} That leaves: {' '.join(missing)}." if missing else sentence


def _leads(evidence: Evidence) -> Iterator[tuple[float, str, list[str]]]:
    """Yield sentences that name something not yet looked up: (share of the question, sentence, words left open).

    A sentence that contains "answer is" is left out, since quoting it would end the chain.
    """
    for passage in evidence.passages.values():
        for sentence in passage.sentences:
            held = evidence.coverage(passage.title_stems | sentence.stems)
            are_read = map(evidence.has_read, names_in(sentence.text))
            if not held or all(are_read) or ANSWER_IS.is_in(sentence.text):
                continue
            nearer = 0.5 / (1 + evidence.ranks[passage.id])
            yield held + nearer, sentence.text, evidence.missing(passage.stems)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Holds the question, the weights of its stems, and the passages read, by id, in order of retrieval."""

    asked: QuestionAnalysis
    weights: dict[str, float]
    """The weight of each question stem. Stems that are rare among the passages or part of a name weigh more; they sum
    to 1.
    """
    plain: frozenset[str]
    """The stems outside names, which state relations and classes ("director", "conference")."""
    passages: dict[str, ReadPassage]
    ranks: dict[str, int]
    """For each passage id its rank in the hop that found it, 0 for the first."""

    def coverage(self, words: Set[str]) -> float:
        """Return the total weight, in 0..1, of the question's stems that are among `words`."""
        held = 0.0
        for word, weight in self.weights.items():
            if word in words:
                held += weight
        return held

    def missing(self, words: Set[str]) -> list[str]:
        """Return the question's content words whose stem is not among `words`, as written, one for each stem.

        A compound such as "co-founder" stays whole and counts by its first content word.
        """
        kept: dict[str, str] = {}
        for word in _WORD.findall(self.asked.question):
            for root in stems(word)[:1]:
                if root not in words:
                    kept.setdefault(root, word)
        return list(kept.values())

    def explained(self) -> bool:
        """Return whether two passages, of which one names the other's subject, together cover the question."""
        for one, other in permutations(self.passages.values(), 2):
            if not one.tells_of(other):
                continue
            if self.coverage(one.stems | other.stems) >= _ENOUGH:
                return True
        return False

    def has_read(self, name: str) -> bool:
        """Return whether a passage about `name` has been retrieved."""
        key = canonical_key(name)
        keys = [passage.keys for passage in self.passages.values()]
        return any(key in of_passage for of_passage in keys)


def gather(question: str, steps: Sequence[Step]) -> Evidence:
    """Return the question with its weights, and the steps' passages."""
    asked = analyse(question)
    passages = passages_of(steps)
    ranks: dict[str, int] = {}
    for step in steps:
        for rank, hit in enumerate(step.hits):
            ranks.setdefault(hit.passage.id, rank)
    names = (*asked.compared, *names_in(asked.question))
    named = stem_set(" ".join(names))
    raw = rarity(stems(question), list(passages.values()))
    for word in named & raw.keys():
        raw[word] *= _NAME_WEIGHT
    total = sum(raw.values()) or 1.0
    weights = {word: weight / total for word, weight in raw.items()}
    return Evidence(asked, weights, frozenset(weights) - named, passages, ranks)


@dataclass(frozen=True, slots=True)
class Bridge:
    """Holds a name worth looking up, the fact that suggests it, and the question's words that its passage lacks."""

    name: str
    fact: Triple
    score: float
    missing: tuple[str, ...]

    @property
    def subquery(self) -> str:
        """Return the sub-query for it: the name and the missing words."""
        words = (self.name, *self.missing)
        return " ".join(words)


def bridges(evidence: Evidence, graph: QuestionGraph) -> list[Bridge]:
    """Return the names worth looking up next, the most promising first, each once; equal ones in the order of reading.

    A name comes from a fact. Its score depends on:

    - the share of the question's words in its sentence and in the other end of the fact;
    - the rank of its passage;
    - how near it is to words of the question, and how many of these the fact's predicate contains;
    - whether it contains a common noun of the question ("Southeastern Conference" for "a conference").
    """
    best: dict[str, Bridge] = {}
    for fact in graph.facts:
        for source in fact.sources:
            passage = evidence.passages.get(source.passage_id)
            if passage is None:
                continue
            sentence = passage.text[source.start : source.end]
            for name in filter(is_name, (fact.object, fact.subject)):
                score = _score(evidence, fact, name, sentence)
                score += _FIRST_RANK / (1 + evidence.ranks[passage.id])
                key = canonical_key(name)
                if key not in best or score > best[key].score:
                    missing = evidence.missing(passage.stems | stem_set(name))
                    best[key] = Bridge(name, fact, score, tuple(missing))
    return sorted(best.values(), key=lambda bridge: -bridge.score)


def _score(evidence: Evidence, fact: Triple, name: str, sentence: str) -> float:
    own = stem_set(name)
    other = fact.subject if name == fact.object else fact.object
    tokens = tokens_of(sentence)
    size = len(tokens_of(name))
    start = sentence.find(name)
    first = sum(token.end <= start for token in tokens)
    places = [(first, first + size - 1)] if start >= 0 else []
    asked = evidence.plain - own
    covered = evidence.coverage(stem_set(sentence) - own)
    covered += evidence.coverage(stem_set(other) - own)
    near = nearness([token.stem for token in tokens], asked, places)
    relation = len(asked & stem_set(fact.predicate)) / max(1, len(evidence.plain))
    is_class = not own.isdisjoint(evidence.plain)
    known = _ALREADY_READ * evidence.has_read(name)
    return _COVERED * covered + near + relation + _CLASS * is_class + known
