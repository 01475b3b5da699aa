"""The agents: state, nodes, routes, and builders of edges."""
