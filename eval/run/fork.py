"""Asks the questions of a run again: replays the whole run, or forks it at a hop, from which other roles
decide.

Before the fork, planner and extractor are those of the run, and reply only from its cached replies. Retrieval
and offline roles run again, because their results are the same each time. From the fork on the new roles
decide. If one of their calls equals a call of the run, it gets that call's reply, so that the two runs differ
only by the new roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import RunError
from ras_agent.contracts.records import JSON
from ras_agent.eval.run.agent import (
    AnswerQuestion,
    EvalAgent,
    agent_inputs,
    graph_answerer,
)
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.task import Task, load_task
from ras_agent.graphs.resolve import assemble_agent, resolve_parts
from ras_agent.running.budget import current_ledger
from ras_agent.tools.chat.cache import ReplyCache


@dataclass(frozen=True, slots=True)
class Fork:
    """Describes a run to ask again."""

    folder: RunFolder
    from_hop: int | None = None
    """The first hop that the new roles decide; None to replay the whole run."""

    @property
    def settings(self) -> Settings:
        """Return the settings of the run, as far as its manifest has them.

        Raises:
            RunError: If the run has no settings of an agent, or is itself a fork, because a fork's manifest
                does not have the roles before its hop.
        """
        manifest = self.folder.manifest()
        variant = manifest.get("variant") or {}
        if variant.get("from_hop") is not None:
            first = variant.get("replay_of")
            raise RunError(
                f"{self.folder.path} is a fork of the run {first!r} and does not record the roles before hop "
                f"{variant['from_hop']}; ask {first!r} again"
            )
        roles: Mapping[str, Any] = manifest.get("roles") or {}
        if manifest.get("graph") in (None, "none") or not roles:
            raise RunError(
                f"{self.folder.path} was not made by an agent of `ras-agent eval`, so it cannot be asked again"
            )
        known = {
            **manifest.get("limits", {}),
            **manifest.get("settings", {}),
            **roles,
            "loop": manifest["graph"],
        }
        known["index"] = manifest.get("index")
        return Settings.model_validate(
            {
                name: value
                for name, value in known.items()
                if name in Settings.model_fields and value is not None
            }
        )

    def task(
        self,
        settings: Settings,
        *,
        corpus: Path | None = None,
        embedder: str | None = None,
    ) -> Task:
        """Return a task of those questions that have a result in the run.

        Args:
            settings: The settings; an index in them replaces the run's corpus.
            corpus: A file of passages that replaces the run's corpus.
            embedder: The embedder of these passages.
        """
        manifest = self.folder.manifest()
        own = manifest.get("settings", {})
        named = manifest.get("corpus")
        if settings.index is None and corpus is None and named:
            corpus = Path(named)
        task = load_task(
            manifest["benchmark"], Path(manifest["data"]), settings,
            corpus=corpus, embedder=embedder or own.get("embedder"), instruction=own.get("instruction", "answer"),
            context_use=own.get("context_use"), metrics=manifest.get("metrics", ()), strict=False,
        )  # fmt: skip
        ended = {result.id for result in self.folder.results()}
        questions = []
        for question in task.questions:
            if question.id in ended:
                questions.append(question)
        if not questions:
            raise RunError(
                f"{self.folder.path} has no results of questions in {task.data}; name the data that the run was asked"
            )
        return replace(task, questions=questions)

    def agent(self, name: str, settings: Settings) -> EvalAgent:
        """Return the agent that asks again. `settings` describe the new roles."""
        variant: JSON = {
            "replay_of": str(self.folder.manifest().get("name", "")),
            "from_hop": self.from_hop,
        }
        return EvalAgent(name, settings, self._answerer, variant=variant)

    def _answerer(self, task: Task, settings: Settings) -> AnswerQuestion:
        # the new run's cache, which begins with the replies of the earlier run
        if settings.cache is not None:
            copy_replies(self.folder.replies_path, settings.cache)
        parts_of = partial(resolve_parts, index=task.index, task=task.instruction_text)
        whole = settings.model_copy(update={"replay": True})
        if self.from_hop is None:
            parts = parts_of(settings.loop, settings=whole)
        else:
            before = self.settings.model_copy(
                update={
                    "cache": settings.cache,
                    "replay": True,
                    "prompts": settings.prompts,
                }
            )
            earlier = parts_of(settings.loop, settings=before)
            later = parts_of(settings.loop, settings=settings)
            parts = replace(
                later,
                planner=_FromHop(earlier.planner, later.planner, self.from_hop),
                extractor=later.extractor
                and _FromHop(earlier.extractor, later.extractor, self.from_hop),
            )
        return graph_answerer(
            assemble_agent(parts), partial(agent_inputs, task, settings.loop)
        )


class _FromHop:
    """Plays one role before a hop and another from that hop on. Outside a run, attributes are those of the
    later role.
    """

    def __init__(self, before: Any, after: Any, hop: int) -> None:
        self._before = before
        self._after = after
        self._hop = hop

    def __getattr__(self, name: str) -> Any:
        in_run = 0 < current_ledger().hop < self._hop
        return getattr(self._before if in_run else self._after, name)


def copy_replies(source: Path, target: object) -> None:
    """Copy the replies in the cache file `source`, if it exists, into the cache `target`."""
    if not source.is_file() or (
        isinstance(target, Path) and target.exists() and target.samefile(source)
    ):
        return
    cache = ReplyCache(target)  # type: ignore[arg-type]
    for recording in ReplyCache(source).recordings():
        cache.record(recording)
