"""Studies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from ras_agent.errors import SettingsError, UnknownName
from ras_agent.eval.run.material import Material
from ras_agent.eval.study.ablations import ablations_design
from ras_agent.eval.study.abundance import FULL, abundance_design
from ras_agent.eval.study.crossings import roles_design, sweep_design
from ras_agent.eval.study.design import Choices, Design
from ras_agent.eval.study.extractors import extractors_design
from ras_agent.eval.study.oracles import oracles_design
from ras_agent.eval.study.retrieval import retrieval_design
from ras_agent.eval.study.run import StudyFolder
from ras_agent.records import JSON
from ras_agent.settings import Settings

_OF_QUESTIONS: Mapping[str, Callable[[Material, Settings, Choices], Design]] = {
    "ablations": ablations_design,
    "oracles": oracles_design,
    "retrieval": retrieval_design,
    "roles": roles_design,
    "sweep": sweep_design,
}
STUDIES = ("ablations", "abundance", "extractors", "oracles", "retrieval", "roles", "sweep")


def designed(
    study: str,
    material: Material | None,
    settings: Settings,
    choices: Choices,
    *,
    out: Path,
    concurrency: int = 32,
    seed: int = 0,
) -> Design:
    """Return the study's runs. material: may be None for "extractors" alone. Raises UnknownName, SettingsError."""
    if study == "extractors":
        return extractors_design(material, settings, choices, concurrency)
    if study not in STUDIES:
        raise UnknownName("study", study, STUDIES)
    if material is None:
        raise SettingsError(f"the study {study!r} asks questions: give a benchmark and its --data")
    if study == "abundance":
        return abundance_design(material, settings, choices, cache(lambda: _traces(out)), seed)
    return _OF_QUESTIONS[study](material, settings, choices)


def _traces(out: Path) -> Mapping[str, JSON]:
    """Return the traces of the study's full loop, by question."""
    return {one.id: one.trace for one in StudyFolder(out).runs()[FULL].results() if one.trace is not None}
