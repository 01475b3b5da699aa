"""GraphQA's questions on hallucination: does an answer refer to nodes and edges that its graph has?"""

__all__ = ["CITING", "VALIDITY"]

VALIDITY = ("valid_nodes", "valid_edges", "fully_valid")
CITING = (
    'Answer first. Then show what in the graph the answer rests on: below a line "Nodes:" the nodes, one a line behind '
    'a dash, and below a line "Edges:" the edges, one a line as - (head; relation; tail), as the graph writes them.'
)
