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
from ras_agent.eval.run.result import Result
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
    for metric, values in _by_metric(results).items():
        name = scorer_name(metric)
        mean = {"name": "mean", "value": fmean(values)}
        scores.append({"name": name, "scorer": name, "metrics": {"mean": mean}})
    return scores


def _stats(run: Exported) -> JSON:
    """Return how many tokens each model used in the whole run."""
    used = summed_usage(run.results)["by_model"]
    usage = {}
    for model, counts in used.items():
        usage[model] = _usage(counts)
    started = str(run.manifest.get("started") or "")
    return {"started_at": started, "completed_at": "", "model_usage": usage}


def _by_metric(results: Sequence[Result]) -> dict[str, list[float]]:
    scores: dict[str, list[float]] = {}
    for result in results:
        for name, score in result.scores.items():
            scores.setdefault(name, []).append(score)
    return scores


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
        "model_usage": {
            name: _usage(used)
            for name, used in (result.usage.get("by_model") or {}).items()
        },
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


def _usage(used: Mapping[str, int]) -> JSON:
    read = used.get("input_tokens", 0)
    written = used.get("output_tokens", 0)
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "input_tokens_cache_read": used.get("cached_tokens", 0),
    }


def _write(run: Exported, path: Path) -> Sequence[Path]:
    return write_json(path, log_of(run))


INSPECT = registered(
    Format(name="inspect", title="Inspect's logs", write_results=_write)
)
