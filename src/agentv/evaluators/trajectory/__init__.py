"""`tool_trajectory`: the tools that the agent called, their order and their arguments."""

from agentv.evaluators.trajectory.evaluator import ToolTrajectory

__all__ = ["ToolTrajectory"]
