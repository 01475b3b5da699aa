"""Retrieves passages for a query, by one retriever or by a mix of several.

bm25, dense, hybrid             by shared words, by vectors, by both
ppr, gfm, paths, pcst           by a knowledge graph
neighbours                      the facts about the query's entities, one step in the knowledge graph
"ppr+dense", ..., kg-mix        mixes of several retrievers
"""
