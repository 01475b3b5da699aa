"""A run on screen."""

import io
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from ras_agent.app.cli.draw import Drawing
from ras_agent.app.cli.terminal import Hanging, inert, inert_json, pack
from ras_agent.contracts.events import (
    Answered,
    AnswerToken,
    Event,
    Failed,
    GraphDelta,
    Hits,
    Planned,
    WaitingForModel,
)
from ras_agent.contracts.records import (
    Answer,
    Citation,
    Failure,
    Hit,
    Passage,
    Plan,
    Triple,
)

TELEPHONE = Passage(
    "tel", "It carries the voice. It was patented by Bell.", "Telephone"
)
BELL = Passage("bell", "Bell was born in Edinburgh.", "Alexander Graham Bell")
PATENT = Triple("Telephone", "was patented by", "Alexander Graham Bell")
BIRTH = Triple("Alexander Graham Bell", "was born in", "Edinburgh")
CITED = Citation(1, "tel", "Telephone", 22, 45, "It was patented by Bell.")


def drawn(
    *events: Event, width: int = 80, verbose: bool = False, colour: bool = False
) -> str:
    out = io.StringIO()
    system = "truecolor" if colour else None
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        color_system=system,
        markup=False,
        emoji=False,
        highlight=False,
    )
    drawing = Drawing(console, verbose=verbose)
    for event in events:
        drawing.draw(event)
    return out.getvalue()


def test_a_run_reads_from_top_to_bottom() -> None:
    assert drawn(
        Planned(1, Plan("subq", "Where was the inventor of the telephone born?")),
        Hits(
            1,
            "Where was the inventor of the telephone born?",
            (Hit(TELEPHONE, 14.23), Hit(BELL, 11.9)),
        ),
        GraphDelta(1, (PATENT, BIRTH), 2, 3, 0),
        Planned(2, Plan("sufficient", reason="the city is known")),
        Answered(
            Answer("Edinburgh", (CITED, Citation(2, "bell", "Alexander Graham Bell"))),
            "sufficient",
        ),
    ) == (
        "hop 1  [SUBQ] Where was the inventor of the telephone born?\n"
        "       hits      Telephone 14.2 · Alexander Graham Bell 11.9\n"
        "       facts +2  (Telephone | was patented by | Alexander Graham Bell)\n"
        "                 (Alexander Graham Bell | was born in | Edinburgh)\n"
        "       graph     2 facts, 3 entities\n"
        "       [SUFFICIENT] the city is known\n"
        "answer Edinburgh [1][2]\n"
        "       [1] Telephone, sentence 2: “It was patented by Bell.”\n"
        "       [2] Alexander Graham Bell\n"
    )


def test_hops_that_are_searched_at_the_same_time_say_which_line_is_whose() -> None:
    shown = drawn(
        Planned(2, Plan("subq", "Bell", further=("telephone",))),
        Hits(2, "Bell", (Hit(BELL, 11.9),)),
        Hits(3, "telephone", (Hit(TELEPHONE, 14.23),)),
        GraphDelta(2, (BIRTH,), 2, 3, 0),
        GraphDelta(3, (PATENT,), 2, 3, 0),
    )
    assert shown == (
        "hop 2  [SUBQ] Bell\n"
        "hop 3  [SUBQ] telephone\n"
        "hop 2  hits      Alexander Graham Bell 11.9\n"
        "hop 3  hits      Telephone 14.2\n"
        "hop 2  facts +1  (Alexander Graham Bell | was born in | Edinburgh)\n"
        "       graph     2 facts, 3 entities\n"
        "hop 3  facts +1  (Telephone | was patented by | Alexander Graham Bell)\n"
        "       graph     2 facts, 3 entities\n"
    )


def test_a_question_that_needs_no_retrieval_says_so() -> None:
    shown = drawn(
        Planned(1, Plan("no_retrieval")), Answered(Answer("4"), "no_retrieval")
    )
    assert shown == "       [NO_RETRIEVAL]\nanswer 4\n"


def test_a_hop_without_a_plan_is_headed_by_its_query() -> None:
    assert (
        drawn(Hits(1, "Who was Bell?", ()))
        == "hop 1  Who was Bell?\n       hits      none\n"
    )


def test_a_thought_heads_its_hop_and_the_last_one_has_its_own_line() -> None:
    assert drawn(
        Planned(2, Plan("subq", "Bell was born in Edinburgh."), thought=True),
        Hits(2, "Bell was born in Edinburgh.", (Hit(BELL, 0.5),)),
        Planned(
            3, Plan("sufficient", reason="So the answer is Edinburgh."), thought=True
        ),
        Answered(Answer("Edinburgh"), "sufficient"),
    ) == (
        "hop 2  Bell was born in Edinburgh.\n"
        "       hits      Alexander Graham Bell 0.500\n"
        "       So the answer is Edinburgh.\n"
        "answer Edinburgh\n"
    )


def test_scores_have_as_many_decimals_as_their_size_needs() -> None:
    for score, shown in (
        (14.234, "14.2"),
        (2.345, "2.35"),
        (0.98765, "0.988"),
        (0.03279, "0.0328"),
    ):
        assert f"Telephone {shown}\n" in drawn(Hits(1, "q", (Hit(TELEPHONE, score),)))


def test_a_hop_without_new_facts_says_so_and_a_failure_is_shown() -> None:
    assert drawn(
        Failed(Failure("extractor", "no reply", 1)), GraphDelta(1, (), 4, 6, 0)
    ) == (
        "       failed    extractor: no reply\n       facts +0  nothing new\n       graph     4 facts, 6 entities\n"
    )


def test_a_failure_while_answering_is_printed_below_the_answer() -> None:
    failure = Failed(Failure("answerer", "cited [7], which is no evidence shown"))
    assert drawn(
        AnswerToken("Edin"),
        failure,
        AnswerToken("burgh"),
        Answered(Answer("Edinburgh"), "sufficient"),
    ) == (
        "answer Edinburgh\n       failed    answerer: cited [7], which is no evidence shown\n"
    )


def test_new_conflicts_are_counted() -> None:
    assert "graph     2 facts, 3 entities, 1 in conflict\n" in drawn(
        GraphDelta(1, (), 2, 3, 1)
    )


def test_the_facts_nearest_the_query_are_shown_and_all_on_request() -> None:
    facts = (
        *(
            Triple(f"Town {number}", "lies in", "a county of the north")
            for number in range(9)
        ),
        BIRTH,
    )
    events = (
        Hits(1, "Where was Alexander Graham Bell born?", ()),
        GraphDelta(1, facts, 10, 20, 0),
    )
    assert drawn(*events).splitlines()[2:5] == [
        "       facts +10 (Alexander Graham Bell | was born in | Edinburgh)",
        "                 (Town 0 | lies in | a county of the north)",
        "                 (Town 1 | lies in | a county of the north) … 7 more",
    ]
    assert drawn(*events, verbose=True).count("(Town") == 9


def test_an_answer_that_cites_inside_is_not_marked_again() -> None:
    assert drawn(
        Answered(Answer("It was Bell [1].", (CITED,)), "sufficient")
    ).startswith("answer It was Bell [1].\n")


def test_a_citation_says_file_and_page() -> None:
    cited = replace(CITED, file="docs/phones.pdf", page=3)
    assert drawn(Answered(Answer("Bell", (cited,)), "sufficient")) == (
        "answer Bell [1]\n       [1] Telephone (docs/phones.pdf, page 3): “It was patented by Bell.”\n"
    )


def test_a_passage_without_a_title_goes_by_its_id() -> None:
    assert "hits      a.txt 1.00" in drawn(
        Hits(1, "q", (Hit(Passage("a.txt", "text"), 1.0),))
    )


class TestWidth:
    def test_everything_hangs_at_its_label_and_fits(self) -> None:
        shown = drawn(
            Planned(1, Plan("subq", "Where was the inventor of the telephone born?")),
            Hits(1, "q", (Hit(TELEPHONE, 14.23), Hit(BELL, 11.9))),
            Answered(Answer("Edinburgh", (CITED,)), "sufficient"),
            width=40,
        )
        assert shown == (
            "hop 1  [SUBQ] Where was the inventor of\n"
            "       the telephone born?\n"
            "       hits      Telephone 14.2\n"
            "                 Alexander Graham Bell\n"
            "                 11.9\n"
            "answer Edinburgh [1]\n"
            "       [1] Telephone, sentence 2: “It\n"
            "           was patented by Bell.”\n"
        )

    def test_lines_break_between_items_only(self) -> None:
        items = [Text(name) for name in ("aaaa", "bbbb", "cccc", "dddd", "eeee")]
        assert pack(items, 11, " · ").plain == "aaaa · bbbb\ncccc · dddd\neeee"
        assert pack(items, 11, " ", lines=1).plain == "aaaa\n… 4 more"
        assert pack(items, 14, " ", lines=1).plain == "aaaa … 4 more"
        assert pack(items, 24, " ", lines=1).plain == "aaaa bbbb cccc dddd eeee"

    def test_wide_characters_count_double(self) -> None:
        assert pack([Text("贝尔"), Text("贝尔")], 9, " ").plain == "贝尔 贝尔"
        assert pack([Text("贝尔"), Text("贝尔")], 8, " ").plain == "贝尔\n贝尔"


class TestStreaming:
    def test_tokens_become_lines_as_they_come(self) -> None:
        tokens = [
            AnswerToken(text)
            for text in ("Edin", "burgh, the", " capital of", " Scotland")
        ]
        answer = Answer("Edinburgh, the capital of Scotland", (CITED,))
        assert drawn(*tokens, Answered(answer, "sufficient"), width=30).splitlines()[
            :2
        ] == [
            "answer Edinburgh, the capital",
            "       of Scotland [1]",
        ]

    def test_a_word_is_printed_when_it_is_complete(self) -> None:
        out = io.StringIO()
        hanging = Hanging(Console(file=out, width=40), Text("answer"), 7)
        hanging.add("the cap")
        assert out.getvalue() == "answer the"
        hanging.add("ital ")
        assert out.getvalue() == "answer the capital"

    def test_text_without_spaces_is_printed_at_once_and_wrapped_anywhere(self) -> None:
        out = io.StringIO()
        Hanging(Console(file=out, width=15), Text("answer"), 7).add("贝尔生于爱丁堡")
        assert out.getvalue() == "answer 贝尔生于\n       爱丁堡"

    def test_an_interrupted_run_ends_its_line(self) -> None:
        out = io.StringIO()
        drawing = Drawing(Console(file=out, width=80))
        drawing.draw(AnswerToken("Edinburgh is"))
        drawing.end()
        assert out.getvalue() == "answer Edinburgh is\n"

    def test_line_ends_of_a_long_answer_are_printed(self) -> None:
        shown = drawn(
            AnswerToken("First.\n\nSecond."),
            Answered(Answer("First.\n\nSecond."), "sufficient"),
        )
        assert [line.rstrip() for line in shown.splitlines()] == [
            "answer First.",
            "",
            "       Second.",
        ]

    def test_an_answer_other_than_its_tokens_is_printed_whole(self) -> None:
        shown = drawn(
            AnswerToken("Edin"),
            Answered(Answer("I don't know.", abstained=True), "sufficient"),
        )
        assert shown == "answer Edin\nanswer I don't know.\n"


def test_a_run_that_waits_says_how_many_calls_the_server_was_asked() -> None:
    busy_with: list[str] = []
    drawing = Drawing(Console(file=io.StringIO()), doing=busy_with.append)
    drawing.draw(WaitingForModel(asked=3, of=5))
    drawing.draw(WaitingForModel(asked=5, of=5, answered=2))
    assert busy_with == [
        "waiting for the model's server (3 of 5 asked)",
        "waiting for the model's server (5 of 5 asked, 2 answered)",
    ]


class TestHygiene:
    EVIL = "\x1b[2J\x9b31mBell [bold]red[/bold] :smile:\r\n\x07\u202eevil"

    def test_control_characters_markup_and_direction_marks_are_inert(self) -> None:
        assert inert(self.EVIL) == "[2J31mBell [bold]red[/bold] :smile: evil"

    def test_letters_of_all_scripts_and_joiners_are_printed(self) -> None:
        text = "می\u200cخواهم 👩\u200d🔬 e\u0301 ทดสอบ"
        assert inert(text) == text

    def test_nothing_retrieved_can_steer_the_terminal(self) -> None:
        evil = self.EVIL
        passage = Passage("p", evil, evil)
        shown = drawn(
            Planned(1, Plan("subq", evil)),
            Hits(1, evil, (Hit(passage, 1.0),)),
            Failed(Failure(evil, evil)),
            GraphDelta(1, (Triple(evil, evil, evil),), 1, 1, 0),
            Planned(2, Plan("subq", evil), thought=True),
            Planned(2, Plan("sufficient", reason=evil)),
            Answered(Answer(evil, (Citation(1, "p", evil, 0, 5, evil),)), "sufficient"),
            width=200,
        )
        assert not any(char in shown for char in "\x1b\x9b\r\x07\u202e")
        assert shown.count("[bold]red[/bold] :smile:") == 12
        assert "\x1b" not in drawn(
            AnswerToken(evil), Answered(Answer(evil), "sufficient")
        )

    def test_with_colour_only_our_own_codes_are_written(self) -> None:
        shown = drawn(
            Hits(1, "q", (Hit(Passage("p", "", self.EVIL), 1.0),)), colour=True
        )
        assert "\x1b[2J" not in shown
        assert "\x1b[1;36mhop 1\x1b[0m" in shown

    def test_json_stays_the_same_document(self) -> None:
        assert inert_json('{"a": "\x9b \u202e é"}') == '{"a": "\\u009b \\u202e é"}'
