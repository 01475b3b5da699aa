"""Index a few texts and ask a question that needs two of them.

    python examples/ask_own_text.py

Set RAS_AGENT_LLM to a model, such as openai:gpt-4o-mini or vllm:http://localhost:8000/v1#name; without one the offline
mode answers.
"""

import os

from ras_agent import Passage, Settings, create_ras_agent

PASSAGES = [
    Passage(
        "bell",
        "Alexander Graham Bell was born in Edinburgh. He patented the telephone.",
        "Alexander Graham Bell",
    ),
    Passage(
        "leith", "The Water of Leith is the main river of Edinburgh.", "Water of Leith"
    ),
    Passage(
        "verne", "Jules Verne was born in Nantes, a city on the Loire.", "Jules Verne"
    ),
]

if __name__ == "__main__":
    agent = create_ras_agent(
        index=PASSAGES, settings=Settings(llm=os.environ.get("RAS_AGENT_LLM"))
    )
    out = agent.invoke(
        {
            "question": "Which river flows through the birthplace of Alexander Graham Bell?"
        }
    )
    print(out["answer"])
    for citation in out["citations"]:
        print(f"  {citation['passage_id']}: {citation['quote']}")
