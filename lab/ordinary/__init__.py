"""Questions over ordinary documents: minutes, price lists, manuals; documents/ and questions.jsonl are the set."""
