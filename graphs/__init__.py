"""Agents as LangGraph graphs, and everything that another package needs to add one.

ras, ircot, react,          the builders: nodes and edges, and a GraphSpec each
single_shot
nodes, decide               the nodes' work: begin, retrieve, structure, merge, answer; plan and reason
node, assembly              how a node's work is run, synchronously and asynchronously; AgentGraph
state, records, validate    the state's JSON, its records, the checks of everything from outside
parts, resolve              an agent's arguments, its parts, and how each is resolved, once
registry                    graphs by name
"""
