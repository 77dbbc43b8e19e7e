"""Files that a conversion copies into its output: checks and scripts of other tools, run by our evaluators."""
