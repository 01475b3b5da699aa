"""Constrained decoding: whatever a model's weights are, its facts can be read and their ends are spans of the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the extra 'llm'")
import torch

from ras_agent.errors import SettingsError
from ras_agent.records import Passage
from ras_agent.testing.extractors import PASSAGES
from ras_agent.tools.structure.new_model import _llama, _t5
from ras_agent.tools.structure.parse_triples import parse_triples
from ras_agent.tools.structure.triple_model import (
    Decoding,
    TransformersWriter,
    TripleModel,
    load_text_model,
)

TEXTS = (
    *PASSAGES,
    Passage("signs", 'The U.S. budget was $ 4.25 (50 %) in 1947–1950; AC|DC\'s "Back in Black" sold 50%.', "Money"),
    Passage("brackets", "Apollo (film) is not Apollo [god] or {x}. *Bold* \\ text | here > there.", ""),
)


def sentence_pieces(texts: list[str]) -> Any:
    """A tokenizer as T5 has: blanks belong to the words behind them, and some characters have no token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


def random_model(kind: str, tokenizer: Any, seed: int) -> Any:
    torch.manual_seed(seed)
    model = (_t5 if kind == "t5" else _llama)(tokenizer, 32, 1, 4, 0.0)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.6)
    return model


@pytest.fixture(params=["t5", "llama", "t5, sentence pieces"])
def models(request: pytest.FixtureRequest, memorising_model: Callable[[str], Path]) -> Callable[[int], Any]:
    kind = request.param.partition(",")[0]
    if "pieces" in request.param:
        facts = "(S> x | P> was born in | O> y), (S> x | P> is | O> y) [NONE]"
        tokenizer = sentence_pieces([*(f"{one.title}: {one.text}" for one in TEXTS[:3]), facts] * 3)
    else:
        tokenizer = load_text_model(str(memorising_model(kind)))[1]
    return lambda seed: TransformersWriter(random_model(kind, tokenizer, seed), tokenizer)


def replies(writer: Any, decoding: Decoding) -> Iterator[tuple[str, str]]:
    """The texts that the model reads, as its tokenizer gives them back, and what it writes about each."""
    pieces = [piece for passage in TEXTS for piece in writer.text.pieces(passage)]
    for piece, written in zip(pieces, writer.write(pieces, decoding), strict=True):
        assert not written.cut_off, written
        yield " ".join(piece.text.split()), written.text


@pytest.mark.parametrize("beams", [1, 3])
def test_random_weights_write_facts_alone_whose_ends_are_spans_of_the_text(
    models: Callable[[int], Any], beams: int
) -> None:
    facts = 0
    decoding = Decoding(copy=True, beams=beams, target_tokens=90)
    for shown, reply in (one for seed in range(4) for one in replies(models(seed), decoding)):
        parsed = parse_triples(reply)
        assert parsed.leftovers == (), reply
        assert parsed.triples or reply == "[NONE]", reply
        assert len(parsed.triples) == reply.count("(S>"), reply
        for triple in parsed.triples:
            facts += 1
            for end in (triple.subject, triple.object):
                assert end in shown, (end, shown)
                assert any(map(str.isalnum, end)), end
            assert triple.predicate
    assert facts > 3


def test_without_it_the_same_weights_write_what_cannot_be_read(models: Callable[[int], Any]) -> None:
    writer = models(0)
    found = TripleModel(writer, name="random", decoding=Decoding(target_tokens=40)).extract(TEXTS)
    assert found.failures


def test_a_text_without_a_word_has_no_facts(models: Callable[[int], Any]) -> None:
    writer = models(0)
    pieces = list(writer.text.pieces(Passage("marks", "... !!! ((( |||")))
    assert [one.text for one in writer.write(pieces, Decoding(copy=True))] == ["[NONE]"]


def test_facts_that_the_model_has_learned_are_the_same_with_it(memorising_model: Callable[[str], Path]) -> None:
    model, tokenizer = load_text_model(str(memorising_model("t5")))
    writer = TransformersWriter(model, tokenizer)
    free = TripleModel(writer, name="any").extract(PASSAGES[:3])
    copied = TripleModel(writer, name="any", decoding=Decoding(copy=True)).extract(PASSAGES[:3])
    assert copied.triples == free.triples != ()


def test_a_reply_too_short_for_a_fact_is_an_error(models: Callable[[int], Any]) -> None:
    writer = models(0)
    pieces = list(writer.text.pieces(PASSAGES[0]))
    with pytest.raises(SettingsError, match="target_tokens has to be at least"):
        writer.write(pieces, Decoding(copy=True, target_tokens=8))
