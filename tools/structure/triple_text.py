"""Converts texts and facts to the tokens of a text-to-triples model, the same for training, use and vLLM.

A model with an encoder (Flan-T5) reads the plain text, as the public `pat-jj/text2triple-flan-t5` does; a causal
model (Llama, Qwen) reads the prompt `text2triple`, in its chat template if it has one. Both write facts separated
by commas:

    (S> Alan Turing | P> was born in | O> London), (S> ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.marks import NONE, fact_text
from ras_agent.contracts.records import Passage
from ras_agent.prompts import as_line, load
from ras_agent.text.sentences import sentence_spans

SOURCE_TOKENS = 512
TARGET_TOKENS = 256
"""SOURCE_TOKENS and TARGET_TOKENS are the maximum number of tokens of a text and of its facts (RAS, appendix D.1)."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Holds a part of a passage that fits into the model."""

    passage: Passage
    text: str
    """The part, preceded by the passage's title."""
    tokens: list[int]
    """Its input tokens."""


def titled_text(title: str, text: str) -> str:
    """Return "title: text", with marks made inert; only the text if it contains the title already."""
    text = as_line(text)
    title = as_line(title)
    if title.casefold() in text.casefold():
        return text
    return f"{title}: {text}"


def target_text(triples: Sequence[tuple[str, str, str]]) -> str:
    """Return facts as a model writes them, separated by commas; without facts, the mark that says so."""
    facts = [fact_text(*triple) for triple in triples]
    return ", ".join(facts) or str(NONE)


class TripleText:
    """Converts texts and facts to a model's input and target tokens."""

    def __init__(
        self,
        tokenizer: Any,
        *,
        seq2seq: bool,
        prompts_dir: str | Path | None = None,
        source_tokens: int = SOURCE_TOKENS,
    ) -> None:
        """Take the model's tokenizer. Raises SettingsError if the prompt already fills `source_tokens`.

        Args:
            tokenizer: a tokenizer of transformers.
            seq2seq: whether the model has an encoder.
            prompts_dir: a folder with files that override the packaged prompt (text2triple).
            source_tokens: the maximum number of input tokens, including the prompt.
        """
        self.tokenizer = tokenizer
        self.seq2seq = seq2seq
        self._most = source_tokens
        self.prompt = load("text2triple", prompts_dir)
        around = len(self.source("x")) - len(self._plain("x"))
        if source_tokens <= around:
            raise SettingsError(
                f"source_tokens has to be above {around}, the tokens of the prompt; got {source_tokens}"
            )
        self._room = source_tokens - around

    def source(self, text: str) -> list[int]:
        """Return the input tokens for a text."""
        if self.seq2seq:
            return list(self.tokenizer(text)["input_ids"])
        turns = self.prompt.fill(text=text)
        if self.tokenizer.chat_template:
            messages = [turn.to_message() for turn in turns]
            prompt = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
            # the template includes the tokens that begin a text
            return self._plain(prompt)
        texts = [turn.text for turn in turns]
        tokens = self._plain("\n\n".join([*texts, "Triples:"]))
        if self.tokenizer.bos_token_id is not None:
            tokens.insert(0, self.tokenizer.bos_token_id)
        return tokens

    def fitting(self, text: str) -> tuple[str, list[int]]:
        """Return the beginning of a text that fits into the model, and its input tokens."""
        tokens = self._plain(text)
        length = self._room
        source = self.source(text)
        while len(source) > self._most and length:
            text = self.tokenizer.decode(
                tokens[:length], skip_special_tokens=True
            ).strip()
            source = self.source(text)
            length -= 1
        return text, source

    def target(self, triples: Sequence[tuple[str, str, str]]) -> list[int]:
        """Return the tokens that the model has to write for `triples`, including the end token."""
        text = target_text(triples)
        if not self.seq2seq and not self.tokenizer.chat_template:
            text = f" {text}"  # after a prompt that ends in a word, the reply begins with a space
        return [*self._plain(text), self.tokenizer.eos_token_id]

    def pieces(self, passage: Passage) -> Iterator[Piece]:
        """Yield a passage in parts that fit into the model, cut between sentences, or inside one that is too long."""
        waiting = ""
        for sentence in self._sentences(passage):
            longer = f"{waiting} {sentence}".strip()
            if waiting and self._length(passage.title, longer) > self._room:
                yield self._piece(passage, waiting)
                longer = sentence
            waiting = longer
        if waiting:
            yield self._piece(passage, waiting)

    def _sentences(self, passage: Passage) -> Iterator[str]:
        for start, end in sentence_spans(passage.text):
            words = passage.text[start:end].split()
            while words:
                part = " ".join(words)
                count = len(words)
                while count > 1 and self._length(passage.title, part) > self._room:
                    count = (count + 1) // 2
                    part = " ".join(words[:count])
                yield part
                del words[:count]

    def _piece(self, passage: Passage, text: str) -> Piece:
        titled = titled_text(passage.title, text)
        return Piece(passage, *self.fitting(titled))

    def _length(self, title: str, text: str) -> int:
        whole = titled_text(title, text)
        return len(self._plain(whole))

    def _plain(self, text: str) -> list[int]:
        encoding = self.tokenizer(text, add_special_tokens=False)
        return list(encoding["input_ids"])
