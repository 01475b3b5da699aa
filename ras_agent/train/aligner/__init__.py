"""Trains the aligner of ras_agent.tools.graph_tokens.aligner: samples with reasoning, training, measurements."""
