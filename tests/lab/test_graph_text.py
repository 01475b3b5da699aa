"""What a question's graph costs a prompt, as CSV and as the facts of the agent's own prompts."""

from lab.graph_text import tokens_of
from ras_agent.eval.question import Question


def test_a_name_in_many_facts_costs_less_as_csv_which_has_it_once() -> None:
    name = "the international chamber of commerce and of industry and crafts"
    facts = [[name, "meets in", place] for place in ("Oslo", "Rome", "Bonn", "Bern", "Wien", "Prag", "Graz", "Linz")]
    counts = tokens_of([Question("q", "Where?", ("Oslo",), metadata={"graph": facts})])
    assert counts["csv"] < counts["facts"]
