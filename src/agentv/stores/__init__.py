"""Run stores: SQLite files with executions, runs, results and judge replies."""
