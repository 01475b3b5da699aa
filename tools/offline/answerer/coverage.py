"""How much of the question is said by a sentence, by its passage, and by the passages that name it or that it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Doubles
from ras_agent.records import Passage
from ras_agent.text.canonical import canonical_key
from ras_agent.text.words import stems
from ras_agent.tools.offline.answerer.question_words import QuestionWords, Rarity
from ras_agent.tools.offline.answerer.reading import Read, plain_title

__all__ = ["Coverage", "cover"]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of the question's worth, in 0..1, of S sentences and P passages.

    sentence (S,), titled (S,): with the passage's title; passage (P,); linked (S,): together with the best passage
    linked by name; chained (S,): together with the best of all passages; before, after (S,): of the neighbours;
    names (S,), others (S,): of the words in names and of the other ones, title included; bare_others (S,): without it;
    focus, ending (S,): of the worth near the word that asks, and near the end;
    title (P,): how much of a title the question holds; named_by (P,): of the best passage that names it;
    order (S,): the sentences, the most promising first.
    """

    sentence: Doubles
    titled: Doubles
    passage: Doubles
    linked: Doubles
    chained: Doubles
    before: Doubles
    after: Doubles
    names: Doubles
    others: Doubles
    bare_others: Doubles
    focus: Doubles
    ending: Doubles
    title: Doubles
    named_by: Doubles
    order: npt.NDArray[np.int64]


def cover(words: QuestionWords, rarity: Rarity, passages: Sequence[Passage], sentences: Sequence[Read]) -> Coverage:
    """Coverage by `sentences` of `passages`; there is at least one sentence, and one word in the question."""
    titles = [stems(plain_title(passage.title)) for passage in passages]
    hits = np.array([words.present(sentence.stems) for sentence in sentences])  # (S, Q)
    of_title = np.array([words.present(title) for title in titles])  # (P, Q)
    at = np.array([sentence.passage for sentence in sentences])  # (S,)
    in_passage = of_title.copy()
    np.logical_or.at(in_passage, at, hits)
    with_title = hits | of_title[at]
    sentence, titled, passage = hits @ words.worth, with_title @ words.worth, in_passage @ words.worth
    names_it = _names(passages)  # (P, P): row names column
    both = (with_title[:, None, :] | in_passage[None, :, :]) @ words.worth  # (S, P)
    both[np.arange(len(at)), at] = titled
    linked = np.where((names_it | names_it.T)[at], both, titled[:, None]).max(axis=1)
    beside = at[1:] == at[:-1]
    before, after = np.zeros(len(at)), np.zeros(len(at))
    before[1:], after[:-1] = sentence[:-1] * beside, sentence[1:] * beside
    return Coverage(
        sentence=sentence,
        titled=titled,
        passage=passage,
        linked=linked,
        chained=both.max(axis=1),
        before=before,
        after=after,
        names=_share(with_title, words.worth * words.named),
        others=_share(with_title, words.worth * ~words.named),
        bare_others=_share(hits, words.worth * ~words.named),
        focus=with_title @ words.focus,
        ending=hits @ words.ending,
        title=np.array([_asked(title, words, rarity) for title in titles]),
        named_by=np.where(names_it, passage[:, None], 0.0).max(axis=0),
        order=np.argsort(-(titled + 0.3 * linked), kind="stable"),
    )


def _names(passages: Sequence[Passage]) -> npt.NDArray[np.bool_]:
    """(P, P): whether the text of the row's passage holds the title of the column's."""
    texts = [f" {canonical_key(passage.text)} " for passage in passages]
    titles = [canonical_key(plain_title(passage.title)) for passage in passages]
    found = np.array([[bool(title) and f" {title} " in text for title in titles] for text in texts])
    np.fill_diagonal(found, False)
    return found


def _share(hits: npt.NDArray[np.bool_], worth: Doubles) -> Doubles:
    total = worth.sum()
    shares: Doubles = hits @ worth / total if total > 0 else np.zeros(len(hits))
    return shares


def _asked(title: Sequence[str], words: QuestionWords, rarity: Rarity) -> float:
    total = rarity.total(title)
    return rarity.total(stem for stem in title if stem in words.place) / total if total else 0.0
