"""A folder with conversations that fail in a known turn."""

from pathlib import Path

AGENT = """
def reply(messages):
    said = [message["content"] for message in messages if message["role"] == "user"]
    if "boom" in said[-1]:
        raise ValueError("no such order")
    if len(said) == 1:
        text = {"role": "assistant", "content": "Which order is it?"}
        return {"output_messages": [text], "tokens_usage": {"input_tokens": 10, "output_tokens": 5}, "cost_usd": 0.001}
    call = {"tool": "get_order", "input": {"order_id": "A-18"}, "output": {"state": "sent"}}
    messages = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "assistant", "content": "I found it."},
    ]
    return {"output_messages": messages, "tokens_usage": {"input_tokens": 20, "output_tokens": 7}, "cost_usd": 0.002}
"""
EVAL = """
personas:
  - {id: impatient, description: In a hurry., vars: {mood: angry}}
  - id: polite
targets:
  - {name: agent, provider: python, function: agent.py:reply}
cases:
  - id: refund
    persona: [impatient, default]
    tags: [money]
    turns:
      - user: I want my money back.
        evaluators: [{type: tool_trajectory, mode: exact, expected: []}]
      - user: It is order A-17.
        evaluators: [{type: tool_trajectory, mode: in_order, expected: [{tool: get_order, input: {order_id: A-17}}]}]
  - id: greeting
    persona: polite
    turns:
      - user: Hello there.
      - user: It is order A-18.
    evaluators:
      - {type: tool_trajectory, minimums: {get_order: 1}}
"""
BROKEN = """
targets:
  - {name: agent, provider: python, function: agent.py:reply}
cases:
  - id: crash
    turns:
      - user: Hello.
      - user: "boom \\e[31m and a secret"
    evaluators: [{type: no_tool_errors}]
"""
"""The agent raises an exception in turn 2, in which the user says a control character."""


def write_conversations(folder: Path) -> None:
    """Write an agent, an eval with personas, and an eval whose agent fails."""
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    (folder / "refund.eval.yaml").write_text(EVAL, encoding="utf-8")
    (folder / "broken.eval.yaml").write_text(BROKEN, encoding="utf-8")
