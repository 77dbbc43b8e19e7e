"""`tool_trajectory`: did the agent call the right tools, in the right order, with the right arguments."""

from agentv.evaluators.trajectory.evaluator import ToolTrajectory

__all__ = ["ToolTrajectory"]
