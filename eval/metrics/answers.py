"""Compares short and long answers with gold answers, as SQuAD, HotpotQA, Self-RAG and ALCE do."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from ras_agent.contracts.errors import needs_extra
from ras_agent.eval.metrics.registry import Outcome, answer_metric, metric
from ras_agent.eval.question import Question
from ras_agent.text.sentences import sentence_spans

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED = frozenset({"yes", "no", "noanswer"})


def normalise_answer(text: str) -> str:
    """Return the text in lower case, without ASCII punctuation and articles: SQuAD's and HotpotQA's normalisation."""
    plain = text.lower().translate(_PUNCTUATION)
    words = _ARTICLES.sub(" ", plain).split()
    return " ".join(words)


def holds(text: str, answers: Iterable[str]) -> bool:
    """Tell whether the normalised text contains one of the normalised answers as whole words."""
    padded = f" {normalise_answer(text)} "
    normal = filter(None, map(normalise_answer, answers))
    return any(f" {answer} " in padded for answer in normal)


@answer_metric("em", decides=10)
def exact_match(prediction: str, golds: Iterable[str]) -> float:
    """Return 1.0 if the normalised prediction equals a normalised gold answer, else 0.0."""
    predicted = normalise_answer(prediction)
    return float(predicted in map(normalise_answer, golds))


@answer_metric("f1", decides=60)
def token_f1(prediction: str, golds: Iterable[str]) -> float:
    """Return the best token F1 over the gold answers, in 0..1.

    As in HotpotQA and 2WikiMultihopQA, if the prediction or the gold answer is yes, no or noanswer, only an
    exact match scores.
    """
    predicted = normalise_answer(prediction)
    scores = (_closed_f1(predicted, normalise_answer(gold)) for gold in golds)
    return max(scores, default=0.0)


@answer_metric("squad_f1")
def squad_f1(prediction: str, golds: Iterable[str]) -> float:
    """Return the best token F1 over the gold answers, in 0..1, without a rule for yes and no.

    This is SQuAD's, MuSiQue's and ALCE's F1, and RAS's (eq. 10 to 12). It is 1.0 if neither the prediction nor a gold
    answer has tokens.
    """
    predicted = normalise_answer(prediction)
    scores = (_open_f1(predicted, normalise_answer(gold)) for gold in golds)
    return max(scores, default=0.0)


@answer_metric("golden_match", decides=20)
def golden_match(prediction: str, golds: Iterable[str]) -> float:
    """Return 1.0 if the normalised prediction contains a normalised gold answer (RAS, equation 9), else 0.0.

    As published, the gold answer may begin inside a word: "Ely" is found in "likely". A gold answer that
    normalises to an empty text ("A", "!!!") is searched for unnormalised, because every prediction contains the
    empty text. A blank gold answer never matches.
    """
    predicted = normalise_answer(prediction)
    for gold in golds:
        normal = normalise_answer(gold)
        written = gold.strip()
        if normal and normal in predicted:
            return 1.0
        if written and not normal and written in prediction:
            return 1.0
    return 0.0


def answer_coverage(prediction: str, gold_sets: Iterable[Iterable[str]]) -> float:
    """Return STR-EM of ALCE's ASQA: the share of a question's interpretations whose answer the prediction
    contains.

    `gold_sets` has a set of equivalent short answers for each interpretation; without any the share is 0.0.
    """
    matches = [golden_match(prediction, golds) for golds in gold_sets]
    if matches:
        return sum(matches) / len(matches)
    return 0.0


@metric("answer_coverage")
def _answer_coverage(question: Question, outcome: Outcome) -> float | None:
    readings = question.metadata.get("short_answers")
    if not readings:
        return None
    if outcome.abstained:
        return 0.0
    return answer_coverage(outcome.answer, readings)


@answer_metric("rouge_lsum")
def rouge_lsum(prediction: str, references: Iterable[str]) -> float:
    """Return ROUGE-Lsum's F-measure against the best of the references, in 0..1, as ALCE reports it for long
    answers.

    The rouge-score package computes it, with stemming, over lower-case texts with one sentence per line.
    Sentences are split by this package's rules; ALCE uses NLTK's, which can split a text differently. Raises
    MissingExtra without the rouge-score package.
    """
    return best_rouge("rougeLsum", _lines(prediction), map(_lines, references))


def best_rouge(kind: str, prediction: str, references: Iterable[str]) -> float:
    """Return the best F-measure over the references, in 0..1, by the rouge-score package, with stemming.

    Args:
        kind: "rouge1", "rougeL", "rougeLsum" ...
        prediction: The text to score.
        references: The texts to compare it with.

    Raises:
        MissingExtra: If the package is not installed.
    """
    scorer = rouge_scorer(kind)
    scores = (scorer.score(gold, prediction)[kind].fmeasure for gold in references)
    return float(max(scores, default=0.0))


def _lines(text: str) -> str:
    # split before lowering the case: the rules use capitals to recognise abbreviations
    sentences = []
    for start, end in sentence_spans(text):
        sentences.append(text[start:end])
    return "\n".join(sentences).lower()


@cache
def rouge_scorer(kind: str) -> Any:
    """Return the rouge-score package's scorer of `kind` ("rouge1", "rougeLsum" ...), with stemming.

    Raises:
        MissingExtra: the package is not installed.
    """
    with needs_extra("ROUGE", "eval"):
        from rouge_score.rouge_scorer import RougeScorer
    return RougeScorer([kind], use_stemmer=True)


def _closed_f1(predicted: str, gold: str) -> float:
    is_closed = predicted in _CLOSED or gold in _CLOSED
    if is_closed and predicted != gold:
        return 0.0
    return token_overlap(predicted.split(), gold.split())


def _open_f1(predicted: str, gold: str) -> float:
    if predicted == gold:
        return 1.0
    return token_overlap(predicted.split(), gold.split())


def token_overlap(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """Return the F1 of two lists of words; a word counts as often as it occurs. 0.0 if they share no word."""
    common = common_words(predicted, gold)
    if not common:
        return 0.0
    precision = common / len(predicted)
    recall = common / len(gold)
    return f1_of(precision, recall)


def common_words(words: Iterable[str], others: Iterable[str]) -> int:
    """Return how many words two texts have in common, where a word counts as often as it occurs in both."""
    common = Counter(words) & Counter(others)
    return common.total()


def f1_of(precision: float, recall: float) -> float:
    """Return the harmonic mean of precision and recall; 0.0 if both are 0."""
    both = precision + recall
    if both:
        return 2 * precision * recall / both
    return 0.0
