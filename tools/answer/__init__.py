"""Stage: answer from the graph, with citations."""
