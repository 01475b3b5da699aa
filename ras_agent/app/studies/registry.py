"""Studies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from ras_agent.app.evaluation import Material
from ras_agent.app.studies.ablations import ablations_design
from ras_agent.app.studies.abundance import FULL, abundance_design
from ras_agent.app.studies.choices import Choices
from ras_agent.app.studies.design import Design
from ras_agent.app.studies.extractors import extractors_design
from ras_agent.app.studies.oracles import oracles_design
from ras_agent.app.studies.retrieval import retrieval_design
from ras_agent.app.studies.roles import roles_design
from ras_agent.app.studies.sweep import sweep_design
from ras_agent.errors import SettingsError, UnknownName
from ras_agent.eval.study_folder import StudyFolder
from ras_agent.records import JSON
from ras_agent.settings import Settings

__all__ = ["STUDIES", "designed"]

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
    """The study's runs. material: may be None for "extractors" alone. Raises UnknownName, SettingsError."""
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
    """The traces of the study's full loop, by question."""
    return {one.id: one.trace for one in StudyFolder(out).runs()[FULL].results() if one.trace is not None}
