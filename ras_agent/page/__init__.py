"""The page that shows a trace: its HTML frame, style and script, put together by ras_agent.page.graph_page."""
