"""GFM: a query-dependent graph neural network that scores a knowledge graph's entities for a question."""
