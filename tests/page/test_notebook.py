"""The output in a notebook: text of documents is escaped, and nothing is fetched to draw it."""

from ras_agent import create_ras_agent
from ras_agent.running.trace import Trace


def test_a_trace_shows_question_answer_and_quotes_with_markup_as_text() -> None:
    agent = create_ras_agent(
        index=[
            {
                "text": "The <script>x</script> telephone was invented by Ada Holm.",
                "title": "<b>A",
            }
        ]
    )
    cell = Trace.from_state(
        agent.invoke({"question": "Who invented the telephone?"})
    )._repr_html_()
    assert "<p><b>Ada Holm</b></p>" in cell
    assert "&lt;script&gt;" in cell
    assert "<script>" not in cell
    assert "&lt;b&gt;A" in cell


def test_an_agent_shows_its_name_and_nodes_without_a_picture_of_a_web_service() -> None:
    shown = create_ras_agent(index=["A text."])._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}
    assert "<b>Agent ras</b>" in shown["text/html"]
    assert "retrieve" in shown["text/plain"]
