"""`ras-agent ask` and `ras-agent show`, with real indexes, offline roles and models behind real HTTP."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.running.trace import Trace
from tests.messages import says

Cli = Callable[..., Any]
QUESTION = "Where was the inventor of the telephone born?"
COMMAND = [sys.executable, "-P", "-c", "from ras_agent.app.cli import main; main()"]


class TestOffline:
    def test_a_run_shows_mode_hops_answer_and_summary(
        self, cli: Cli, bell_index: Path
    ) -> None:
        result = cli("ask", QUESTION, "--index", bell_index)
        lines = result.stdout.splitlines()
        assert (
            lines[0]
            == "offline mode: no LLM configured (ras-agent doctor shows how to add one)"
        )
        assert lines[1] == f"hop 1  [SUBQ] {QUESTION}"
        assert lines[2].startswith("       hits      ")
        assert lines[3].startswith("       facts +")
        assert any(line.startswith("answer ") for line in lines)
        assert " · 0 LLM calls · " in lines[-1]
        assert result.stderr == ""

    @pytest.mark.parametrize("graph", ["ras", "ircot", "single-shot"])
    def test_every_graph_runs(self, cli: Cli, bell_index: Path, graph: str) -> None:
        result = cli("ask", QUESTION, "--index", bell_index, "--loop", graph)
        assert result.exit_code in (0, 3)
        assert "\nanswer " in result.stdout

    @pytest.mark.parametrize(
        "flags", [["--graph", "single-shot"], ["--graph=single-shot"]]
    )
    def test_the_old_name_of_the_loop_is_taken_with_a_notice(
        self, cli: Cli, flags: list[str]
    ) -> None:
        with pytest.warns(FutureWarning, match="--graph is called --loop now"):
            result = cli("ask", QUESTION, "--sample", *flags, "--json")
        assert json.loads(result.stdout)["mode"] == "single-shot"

    def test_the_bundled_sample_needs_no_index(self, cli: Cli) -> None:
        result = cli(
            "ask",
            "Where was Alexander Graham Bell born?",
            "--sample",
            "--loop",
            "single-shot",
        )
        assert "hits      Alexander Graham Bell" in result.stdout

    @pytest.mark.parametrize("graph", ["ras", "ircot"])
    @pytest.mark.parametrize(
        "retriever",
        ["ppr", "ppr+dense", "paths", "paths+dense", "pcst", "pcst+dense", "gfm"],
    )
    def test_every_graph_retriever_runs_by_name(
        self, cli: Cli, sample_graph_index: Path, retriever: str, graph: str
    ) -> None:
        if retriever == "gfm":
            pytest.importorskip("torch")
        result = cli(
            "ask", "Which river flows through Edinburgh?", "--index", sample_graph_index, "--retriever", retriever,
            "--loop", graph, "--json",
        )  # fmt: skip
        trace = Trace.from_json(result.stdout)
        assert (trace.answer, trace.failures) == ("Water of Leith", ())
        reasons = {
            line for step in trace.steps for hit in step.hits for line in hit.why
        }
        # random walks have no chains of facts to show
        assert bool(reasons) == (not retriever.startswith("ppr"))

    @pytest.mark.parametrize("reasons", [0, 1])
    def test_a_hit_has_at_most_the_requested_reasons(
        self, cli: Cli, sample_graph_index: Path, reasons: int
    ) -> None:
        pytest.importorskip("torch")
        result = cli(
            "ask", "Which river flows through Edinburgh?", "--index", sample_graph_index, "--retriever", "gfm",
            "--json", "--reasons", reasons,
        )  # fmt: skip
        steps = Trace.from_json(result.stdout).steps
        assert max(len(hit.why) for step in steps for hit in step.hits) == reasons

    def test_limits_reach_the_run(self, cli: Cli, bell_index: Path) -> None:
        result = cli(
            "ask", QUESTION, "--index", bell_index, "--max-hops", 1, "--k", 1, "--json"
        )
        trace = Trace.from_json(result.stdout)
        assert [len(step.hits) for step in trace.steps] == [1]

    def test_quiet_prints_only_the_answer(self, cli: Cli, bell_index: Path) -> None:
        result = cli("ask", QUESTION, "--index", bell_index, "--quiet")
        assert len(result.stdout.splitlines()) == 1
        assert result.stderr == ""

    def test_json_is_the_trace_alone_and_the_drawing_goes_to_stderr(
        self, cli: Cli, bell_index: Path
    ) -> None:
        result = cli("ask", QUESTION, "--index", bell_index, "--json")
        trace = Trace.from_json(result.stdout)
        assert (trace.question, trace.mode) == (QUESTION, "ras")
        assert trace.roles == {
            "planner": "offline",
            "answerer": "offline",
            "extractor": "offline",
            "retriever": "bm25",
        }
        assert f"hop 1  [SUBQ] {QUESTION}" in result.stderr

    def test_without_an_answer_in_the_text_the_exit_code_says_so(
        self, cli: Cli, bell_index: Path
    ) -> None:
        result = cli("ask", "Zyx qwv?", "--index", bell_index, "--json")
        assert result.exit_code == (3 if json.loads(result.stdout)["abstained"] else 0)

    @pytest.mark.parametrize(
        ("scripted", "code", "outcome"),
        [
            ({"status": 400}, 4, "failed"),
            ({"reply": "Answer: [UNKNOWN]"}, 3, "abstained"),
        ],
    )
    def test_the_exit_code_distinguishes_a_failed_answerer_from_an_abstention(
        self,
        cli: Cli,
        bell_index: Path,
        scripted_llm: Any,
        scripted: dict[str, Any],
        code: int,
        outcome: str,
    ) -> None:
        scripted_llm.script(scripted)
        asked = (
            "ask",
            QUESTION,
            "--index",
            bell_index,
            "--loop",
            "single-shot",
            "--extractor",
            "offline",
            "--json",
        )
        result = cli(*asked, "--answerer", scripted_llm.spec)
        assert (result.exit_code, Trace.from_json(result.stdout).outcome) == (
            code,
            outcome,
        )


class TestSaving:
    def test_a_saved_run_is_shown_as_it_was_drawn_live(
        self, cli: Cli, bell_index: Path
    ) -> None:
        live = cli(
            "ask", QUESTION, "--index", bell_index, "--save", "run.json"
        ).stdout.splitlines()
        shown = cli("show", "run.json").stdout.splitlines()
        assert shown[:-1] == live[1:-1]
        assert live[-1] == f"{shown[-1]} · run.json written"

    def test_an_ircot_run_too(self, cli: Cli, bell_index: Path) -> None:
        asked = (
            "ask",
            QUESTION,
            "--index",
            bell_index,
            "--loop",
            "ircot",
            "--save",
            "run.json",
        )
        live = cli(*asked).stdout.splitlines()
        assert cli("show", "run.json").stdout.splitlines()[:-1] == live[1:-1]

    def test_a_file_s_name_decides_its_format(self, cli: Cli, bell_index: Path) -> None:
        names = ("run.html", "run.json", "graph.graphml", "graph.mmd")
        result = cli(
            "ask",
            QUESTION,
            "--index",
            bell_index,
            *(part for name in names for part in ("--save", name)),
        )
        starts = ["<!doctype", '{\n  "schem', "<graphml", "flowchart"]
        assert all(
            Path(name).read_text().lower().startswith(start)
            for name, start in zip(names, starts, strict=True)
        )
        assert result.stdout.endswith("graph.mmd written\n")

    def test_show_writes_html_from_a_trace(self, cli: Cli, bell_index: Path) -> None:
        cli("ask", QUESTION, "--index", bell_index, "--save", "run.json")
        cli("show", "run.json", "--html", "run.html")
        assert "Alexander Graham Bell" in Path("run.html").read_text()

    @pytest.mark.parametrize(
        ("target", "message"),
        [
            (
                "run.txt",
                "cannot save to run.txt: its name must end in one of .html, .json, .graphml, .mmd",
            ),
            (
                "gone/run.json",
                "cannot save to gone/run.json: the folder gone does not exist; create it first",
            ),
            ("folder.json", "cannot save to folder.json: it is a folder; name a file"),
        ],
    )
    def test_a_bad_target_ends_before_the_run(
        self, cli: Cli, bell_index: Path, target: str, message: str
    ) -> None:
        Path("folder.json").mkdir()
        result = cli("ask", QUESTION, "--index", bell_index, "--save", target)
        assert (result.exit_code, result.stdout, result.stderr) == (
            1,
            "",
            f"ras-agent: {message}\n",
        )

    def test_a_target_that_fails_loses_neither_the_answer_nor_the_other_targets(
        self, cli: Cli, bell_index: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        written = Path.write_text

        def write(path: Path, *args: Any, **kwargs: Any) -> int:
            if path.name == "full.html":
                raise OSError(28, "No space left on device", str(path))
            return written(path, *args, **kwargs)

        monkeypatch.setattr(Path, "write_text", write)
        result = cli(
            "ask",
            QUESTION,
            "--index",
            bell_index,
            "--json",
            "--save",
            "full.html",
            "--save",
            "run.json",
        )
        assert Trace.from_json(result.stdout) == Trace.from_json(
            Path("run.json").read_text()
        )
        assert (result.exit_code, result.stderr.splitlines()[-1]) == (
            1,
            "ras-agent: [Errno 28] No space left on device: 'full.html'",
        )


class TestModels:
    def test_an_answer_is_streamed_and_its_citations_numbered(
        self, cli: Cli, bell_index: Path, scripted_llm: Any
    ) -> None:
        scripted_llm.script({"reply": "Edinburgh is the city [1]."})
        result = cli(
            "ask", "Where was Bell born?", "--index", bell_index, "--answerer", scripted_llm.spec,
            "--extractor", "offline", "--loop", "single-shot", "--k", 1, "--style", "long",
        )  # fmt: skip
        assert scripted_llm.requests()[0]["stream"] is True
        assert (
            "offline extractor: no LLM configured (--extractor or --llm adds one)\n"
            in result.stdout
        )
        assert (
            "\nanswer Edinburgh is the city [1].\n       [1] Alexander Graham Bell"
            in result.stdout
        )
        assert " · 1 LLM call (" in result.stdout.splitlines()[-1]

    def test_one_model_can_play_every_role(
        self, cli: Cli, bell_index: Path, scripted_llm: Any
    ) -> None:
        scripted_llm.script({"reply": "[NO_RETRIEVAL]"}, {"reply": "Four."})
        result = cli(
            "ask",
            "What is two and two?",
            "--index",
            bell_index,
            "--llm",
            scripted_llm.spec,
            "--from-memory",
        )
        memory = "from the model's memory: nothing was looked up"
        assert result.stdout.startswith(
            f"       [NO_RETRIEVAL]\nanswer Four\n       {memory}\n"
        )
        assert result.exit_code == 0
        assert "offline" not in result.stdout

    def test_a_model_is_not_asked_for_an_answer_where_nothing_was_found(
        self, cli: Cli, bell_index: Path, scripted_llm: Any
    ) -> None:
        scripted_llm.script({"reply": "[NO_RETRIEVAL]"})
        result = cli(
            "ask", "Quelle heure?", "--index", bell_index, "--llm", scripted_llm.spec
        )
        assert (
            "\nanswer No answer: no passage was found for the question.\n"
            in result.stdout
        )
        assert (result.exit_code, len(scripted_llm.requests())) == (3, 1)

    def test_a_trace_holds_no_secret_of_an_address(
        self, cli: Cli, bell_index: Path, scripted_llm: Any
    ) -> None:
        scripted_llm.script({"reply": "[NO_RETRIEVAL]"}, {"reply": "Four."})
        spec = scripted_llm.spec.replace("http://", "http://me:hunter2@")
        result = cli(
            "ask", "Two and two?", "--index", bell_index, "--llm", spec, "--json"
        )
        assert Trace.from_json(result.stdout).roles["planner"] == scripted_llm.spec
        assert "hunter2" not in result.stdout + result.stderr

    def test_a_cached_reply_is_replayed(
        self, cli: Cli, bell_index: Path, scripted_llm: Any
    ) -> None:
        scripted_llm.script({"reply": "[NO_RETRIEVAL]"}, {"reply": "Four."})
        asked = (
            "ask",
            "What is two and two?",
            "--index",
            bell_index,
            "--llm",
            scripted_llm.spec,
            "--from-memory",
        )
        asked = (*asked, "--cache", "kept.db")
        first, again = cli(*asked), cli(*asked)
        assert "2 from cache" in again.stdout
        assert again.stdout.splitlines()[:-1] == first.stdout.splitlines()[:-1]
        assert len(scripted_llm.requests()) == 2

    def test_a_replay_answers_without_the_model_and_a_changed_prompt_fails_with_its_first_difference(
        self, cli: Cli, bell_index: Path, scripted_llm: Any, tmp_path: Path
    ) -> None:
        scripted_llm.script({"reply": "[NO_RETRIEVAL]"}, {"reply": "Four."})
        asked = (
            "ask",
            "What is two and two?",
            "--index",
            bell_index,
            "--llm",
            scripted_llm.spec,
            "--from-memory",
        )
        asked = (*asked, "--cache", "kept.db")
        cli(*asked)
        again = cli(*asked, "--replay")
        assert (again.exit_code, "2 from cache" in again.stdout) == (0, True), (
            again.output
        )
        (tmp_path / "prompts").mkdir()
        (tmp_path / "prompts" / "plan.txt").write_text(
            "My own plan for {{question}} {{history}}"
        )
        changed = cli(*asked, "--replay", "--prompts", tmp_path / "prompts")
        assert changed.exit_code == 1
        shown = " ".join(changed.stderr.split())
        assert "no reply in kept.db to the request of planner at hop 1" in shown
        assert "one of system where this one has one of user" in shown
        assert len(scripted_llm.requests()) == 2

    def test_own_prompts_replace_the_packaged_ones(
        self, cli: Cli, bell_index: Path, scripted_llm: Any, tmp_path: Path
    ) -> None:
        scripted_llm.script({"reply": "[NO_RETRIEVAL]"}, {"reply": "Four."})
        (tmp_path / "prompts").mkdir()
        (tmp_path / "prompts" / "plan.txt").write_text(
            "My own plan for {{question}} {{history}}"
        )
        cli(
            "ask",
            "Two and two?",
            "--index",
            bell_index,
            "--llm",
            scripted_llm.spec,
            "--prompts",
            tmp_path / "prompts",
        )
        assert scripted_llm.requests()[0]["messages"][0]["content"].startswith(
            "My own plan for "
        )

    def test_an_unknown_provider_is_one_line(self, cli: Cli, bell_index: Path) -> None:
        result = cli(
            "ask", QUESTION, "--index", bell_index, "--planner", "nobody:model"
        )
        assert result.exit_code == 1
        assert result.stderr.startswith(
            "ras-agent: cannot set up the chat model 'nobody:model': "
        )
        assert len(result.stderr.splitlines()) == 1


class TestSettings:
    def test_the_environment_and_a_file_are_read(
        self, cli: Cli, bell_index: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path("ras-agent.toml").write_text(
            f'index = "{bell_index.name}"\nmax_hops = 1\n'
        )
        monkeypatch.setenv("RAS_AGENT_K", "2")
        trace = Trace.from_json(cli("ask", QUESTION, "--json").stdout)
        assert [len(step.hits) for step in trace.steps] == [2]

    def test_an_unknown_key_is_reported_with_its_file(self, cli: Cli) -> None:
        Path("mine.toml").write_text("max_hop = 1")
        result = cli("ask", QUESTION, "--sample", "--config", "mine.toml")
        assert result.exit_code == 1
        assert says(
            "mine.toml", "unknown setting 'max_hop'", "did you mean 'max_hops'"
        ).search(result.stderr)

    def test_a_wrong_flag_is_reported(self, cli: Cli) -> None:
        result = cli("ask", QUESTION, "--sample", "--max-hops", "0")
        assert (result.exit_code, result.stderr) == (
            2,
            "ras-agent: --max-hops: input should be greater than 0, got 0\n",
        )


class TestConversation:
    def test_a_thread_goes_on_where_it_ended(self, cli: Cli, tmp_path: Path) -> None:
        kept = (
            "--sample",
            "--thread",
            "bell",
            "--checkpoint",
            f"sqlite:{tmp_path / 'kept.sqlite'}",
        )
        cli("ask", "Where was Alexander Graham Bell born?", *kept)
        result = cli("ask", "And which river flows through that city?", *kept)
        assert (
            result.stdout.splitlines()[1]
            == "asks   Which river flows through Edinburgh?"
        )
        assert "answer Water of Leith [1]" in result.stdout
        told = json.loads(cli("ask", "Where does it rise?", *kept, "--json").stdout)
        assert (told["question"], told["asked"]) == (
            "Where does Water of Leith rise?",
            "Where does it rise?",
        )

    def test_another_thread_knows_nothing_of_it(self, cli: Cli, tmp_path: Path) -> None:
        kept = ("--sample", "--checkpoint", f"sqlite:{tmp_path / 'kept.sqlite'}")
        cli("ask", "Where was Alexander Graham Bell born?", *kept, "--thread", "one")
        assert (
            "asks "
            not in cli("ask", "When did he die?", *kept, "--thread", "two").stdout
        )

    @pytest.mark.parametrize(
        "flags", [["--thread", "bell"], ["--checkpoint", "sqlite:kept.sqlite"]]
    )
    def test_a_thread_and_its_place_belong_together(
        self, cli: Cli, flags: list[str]
    ) -> None:
        result = cli("ask", QUESTION, "--sample", *flags)
        assert (result.exit_code, "--thread" in result.stderr) == (2, True)

    def test_a_saved_follow_up_is_shown_as_it_was(
        self, cli: Cli, tmp_path: Path
    ) -> None:
        kept = (
            "--sample",
            "--thread",
            "bell",
            "--checkpoint",
            f"sqlite:{tmp_path / 'kept.sqlite'}",
        )
        cli("ask", "Where was Alexander Graham Bell born?", *kept)
        cli("ask", "When did he die?", *kept, "--save", str(tmp_path / "run.json"))
        assert (
            "asks   When did Alexander Graham Bell die?"
            in cli("show", str(tmp_path / "run.json")).stdout
        )


class TestErrors:
    def test_no_index_is_wrong_usage(self, cli: Cli) -> None:
        result = cli("ask", QUESTION)
        assert result.exit_code == 2
        assert (
            "there is no index to search: give --index PATH, or --sample"
            in result.stderr
        )

    @pytest.mark.parametrize(
        "arguments",
        [[" ", "--sample"], ["Who?", "--sample", "--index", "x"], ["Who?", "--nope"]],
    )
    def test_wrong_usage_is_exit_code_2(self, cli: Cli, arguments: list[str]) -> None:
        assert cli("ask", *arguments).exit_code == 2

    def test_a_missing_index_is_one_line(self, cli: Cli) -> None:
        result = cli("ask", QUESTION, "--index", "gone.index")
        assert (result.exit_code, result.stdout) == (1, "")
        (line,) = result.stderr.splitlines()
        assert says("no index", "gone.index", "make one with `ras-agent index`").search(
            line
        )

    def test_debug_shows_the_traceback(self, cli: Cli) -> None:
        result = cli("ask", QUESTION, "--index", "gone.index", "--debug")
        assert type(result.exception).__name__ == "IndexNotFound"

    def test_a_file_that_is_no_trace_is_one_line(
        self, cli: Cli, tmp_path: Path
    ) -> None:
        (tmp_path / "run.json").write_text("{}")
        result = cli("show", "run.json")
        assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
        assert result.stderr.startswith("ras-agent: run.json: ")
        result = cli("show", "gone.json")
        message = "gone.json: No such file or directory; `ras-agent ask QUESTION --save run.json` writes a trace"
        assert (result.exit_code, result.stderr) == (1, f"ras-agent: {message}\n")


def _heed_ctrl_c() -> None:
    """A shell's background jobs are deaf to Ctrl-C, and hand that on to their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow("processes")
class TestProcess:
    def test_the_installed_program_prints_only_text_into_a_pipe(
        self, bell_index: Path
    ) -> None:
        environment = os.environ | {"XDG_CONFIG_HOME": str(bell_index)}
        ended = subprocess.run(
            [*COMMAND, "ask", QUESTION, "--index", str(bell_index)],
            capture_output=True,
            text=True,
            env=environment,
        )
        assert ended.returncode in (0, 3)
        assert "\x1b" not in ended.stdout
        assert "answer " in ended.stdout

    def test_ctrl_c_ends_a_run_with_130_and_one_line(
        self, bell_index: Path, scripted_llm: Any
    ) -> None:
        scripted_llm.script({"hang": True})
        command = [
            *COMMAND,
            "ask",
            QUESTION,
            "--index",
            str(bell_index),
            "--llm",
            scripted_llm.spec,
        ]
        pipes: dict[str, Any] = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
        }
        with subprocess.Popen(command, **pipes, preexec_fn=_heed_ctrl_c) as process:
            while not scripted_llm.requests():
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, printed = process.communicate()
        assert (process.returncode, printed) == (130, "ras-agent: interrupted\n")
