"""Scoring of replies: tool calls, contexts, outcomes and statistics, without I/O."""
