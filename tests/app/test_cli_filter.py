"""--filter on the command line: which passages `ask` may answer from."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.tools.index.ingest import ingest
from tests.messages import says


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """An index of one depot for each team and year."""
    records = [
        {
            "id": f"{team}-{year}",
            "text": f"The depot is in {town}.",
            "title": "Depot",
            "team": team,
            "year": year,
        }
        for team, year, town in (
            ("x", 2019, "Ostrell"),
            ("y", 2019, "Quenne"),
            ("y", 2020, "Dorve"),
        )
    ]
    (tmp_path / "depots.jsonl").write_text(
        "".join(json.dumps(record) + "\n" for record in records)
    )
    ingest([tmp_path / "depots.jsonl"], tmp_path / "i")
    return tmp_path / "i"


def found(result: Any) -> list[str]:
    assert result.exit_code in (0, 3), result.output
    return sorted(json.loads(result.stdout)["passages"])


def test_ask_finds_only_what_the_filter_admits(
    cli: Callable[..., Any], index: Path
) -> None:
    ask = ("ask", "Where is the depot?", "--index", index, "--json")
    assert found(cli(*ask)) == ["x-2019", "y-2019", "y-2020"]
    assert found(cli(*ask, "--filter", "team=y")) == ["y-2019", "y-2020"]
    assert found(cli(*ask, "--filter", "team=y", "--filter", "year=2020")) == ["y-2020"]
    assert found(
        cli(*ask, "--filter", "year=2020", "--filter", "team=x", "--filter", "team=y")
    ) == ["y-2020"]
    assert found(cli(*ask, "--filter", "team=z")) == []


def test_ask_answers_for_a_date(cli: Callable[..., Any], tmp_path: Path) -> None:
    texts = [{"text": "The depot is in Ostrell.", "id": "old", "date": "2016"}]
    texts += [{"text": "The depot is in Quenne.", "id": "new", "date": "2024-03"}]
    lines = "".join(json.dumps(record) + "\n" for record in texts)
    (tmp_path / "dated.jsonl").write_text(lines)
    ingest([tmp_path / "dated.jsonl"], tmp_path / "d")
    ask = ("ask", "Where is the depot?", "--index", tmp_path / "d", "--json")
    assert found(cli(*ask)) == ["new", "old"]
    assert found(cli(*ask, "--as-of", "2020-01-01")) == ["old"]
    refused = cli(*ask, "--as-of", "soon")
    assert "as_of must be a date such as '2016'" in refused.stderr


def test_a_filter_of_the_settings_file_is_replaced_by_one_on_the_command_line(
    cli: Callable[..., Any], index: Path
) -> None:
    Path("ras-agent.toml").write_text('filter = {team = "x"}')
    ask = ("ask", "Where is the depot?", "--index", index, "--json")
    assert found(cli(*ask)) == ["x-2019"]
    assert found(cli(*ask, "--filter", "year=2020")) == ["y-2020"]


def test_a_filter_that_cannot_be_read_is_wrong_usage(
    cli: Callable[..., Any], index: Path
) -> None:
    result = cli("ask", "Where?", "--index", index, "--filter", "team")
    assert result.exit_code == 2
    assert says("filter", "key=value", "such as team=x", "got 'team'").search(
        result.stderr
    )
