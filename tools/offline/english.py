"""The offline roles know English only; here they learn whether they were given something else, and say so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ras_agent.records import Failure, Passage
from ras_agent.text.languages import ENGLISH, NO_LANGUAGE, foreign_language


@dataclass(frozen=True, slots=True)
class EnglishOnly:
    """Tells what an offline role cannot read. language: of the texts, as far as their owner has said; "" if not."""

    role: str
    language: str = ""

    def refusal(self, question: str) -> str:
        """Return why a question is not for this role, and what to do; "" for English."""
        if self.language not in ("", ENGLISH, NO_LANGUAGE):
            return self._said(f"the texts are in {self.language.capitalize()}")
        foreign = foreign_language(question)
        return self._said(f"the question seems to be in {foreign.capitalize()}") if foreign else ""

    def readable(self, passages: Sequence[Passage]) -> tuple[list[Passage], tuple[Failure, ...]]:
        """Return the passages that do not seem to be in another language, and a failure for those that do."""
        foreign = [foreign_language(passage.text) for passage in passages]
        failures = []
        for language, count in Counter(filter(None, foreign)).items():
            what = "1 passage seems" if count == 1 else f"{count} passages seem"
            failures.append(Failure(self.role, self._said(f"{what} to be in {language.capitalize()}")))
        return [passage for passage, name in zip(passages, foreign, strict=True) if not name], tuple(failures)

    def _said(self, what: str) -> str:
        return f"the offline {self.role} knows English only, and {what}; give it a model, --llm or --{self.role}"
