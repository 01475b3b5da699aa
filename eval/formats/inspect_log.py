"""Writes Inspect's log of an evaluation (inspect-ai 0.3) as JSON, for `inspect view` and `read_eval_log`.

Each question is a sample with its scores. Its retrieved passages are in the sample's metadata, its trace in the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from ras_agent.contracts.records import JSON
from ras_agent.eval.formats.exported import Exported, write_json
from ras_agent.eval.formats.registry import Format, registered
from ras_agent.eval.run.prices import model_tokens
from ras_agent.eval.run.result import Result, score_columns
from ras_agent.eval.run.summarise import summed_usage

_AGENT = "ras-agent"


def log_of(run: Exported) -> JSON:
    """Return a run as a log whose samples are its questions."""
    manifest = run.manifest
    models = {}
    for role, name in (manifest.get("roles") or {}).items():
        if role != "retriever":
            models[role] = name
    model = models.get("answerer") or next(iter(models.values()), _AGENT)
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "created": manifest.get("started")
            or datetime.now(UTC).isoformat(timespec="seconds"),
            "task": f"{_AGENT}/{manifest.get('benchmark', 'run')}",
            "dataset": {
                "name": manifest.get("benchmark"),
                "location": manifest.get("data"),
                "samples": len(run.results),
                "sample_ids": [result.id for result in run.results],
            },
            "model": model if "/" in model else f"{_AGENT}/{model}",
            "config": {},
            "metadata": {
                name: manifest[name]
                for name in ("name", "graph", "roles", "limits")
                if name in manifest
            },
        },
        "results": {
            "total_samples": len(run.results),
            "completed_samples": sum(result.error is None for result in run.results),
            "scores": _mean_scores(run.results),
        },
        "stats": _stats(run),
        "samples": [_sample(result) for result in run.results],
    }


def scorer_name(metric: str) -> str:
    """Return a metric's name as the name of an Inspect scorer, which cannot contain "@"."""
    return metric.replace("@", "_at_")


def _mean_scores(results: Sequence[Result]) -> list[JSON]:
    scores = []
    for metric, values in score_columns(results).items():
        name = scorer_name(metric)
        mean = {"name": "mean", "value": fmean(values)}
        scores.append({"name": name, "scorer": name, "metrics": {"mean": mean}})
    return scores


def _stats(run: Exported) -> JSON:
    """Return how many tokens each model used in the whole run."""
    usage = _usage_by_model(summed_usage(run.results))
    started = str(run.manifest.get("started") or "")
    return {"started_at": started, "completed_at": "", "model_usage": usage}


def _sample(result: Result) -> JSON:
    said = {"role": "assistant", "content": result.response}
    sample: dict[str, Any] = {
        "id": result.id,
        "epoch": 1,
        "input": result.question,
        "target": list(result.answers),
        "messages": [{"role": "user", "content": result.question}, said],
        "output": {
            "model": _AGENT,
            "choices": [{"message": said, "stop_reason": "stop"}],
        },
        "scores": _scores(result),
        "metadata": {
            "type": result.type,
            "supporting": list(result.supporting),
            "retrieved": list(result.retrieved),
            "hops": result.hops,
            "stop_reason": result.stop_reason,
            "abstained": result.abstained,
        },
        "store": {f"{_AGENT}:trace": result.trace} if result.trace else {},
        "model_usage": _usage_by_model(result.usage),
        "total_time": result.seconds,
    }
    if result.error:
        message = f"{result.error['type']}: {result.error['message']}"
        sample["error"] = {
            "message": message,
            "traceback": message,
            "traceback_ansi": message,
        }
    return sample


def _scores(result: Result) -> JSON:
    scores = {}
    for metric, value in result.scores.items():
        scores[scorer_name(metric)] = {"value": value, "answer": result.response}
    return scores


def _usage_by_model(usage: Mapping[str, Any]) -> JSON:
    models = {}
    for model, used in model_tokens(usage).items():
        models[model] = {
            "input_tokens": used.input,
            "output_tokens": used.output,
            "total_tokens": used.input + used.output,
            "input_tokens_cache_read": used.cached,
        }
    return models


def _write(run: Exported, path: Path) -> Sequence[Path]:
    return write_json(path, log_of(run))


INSPECT = registered(
    Format(name="inspect", title="Inspect's logs", write_results=_write)
)
