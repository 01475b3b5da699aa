"""Agents as LangGraph graphs, and everything that another package needs to add one.

ras, ircot, react,          build the loops: nodes and edges, and a GraphSpec each
single_shot
nodes, decide               the work of nodes: begin, retrieve, structure, merge, answer; plan and reason
node, assembly              run a node's work, synchronously and asynchronously; AgentGraph
state, records, validate    the state's JSON, its records, the checks of everything from outside
parts, resolve              an agent's arguments, its parts, and how each is resolved, once
registry                    loops by name
"""
