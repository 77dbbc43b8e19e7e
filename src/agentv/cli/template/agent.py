"""A support agent small enough to read: rules instead of a model, so it needs no key and always does the same.

agentv starts it once for each case, with the question, and reads the JSON that it writes.
"""

import argparse
import json
from pathlib import Path
from typing import Any

ORDERS = {"A-17": {"amount": 30, "region": "EU"}, "B-42": {"amount": 900, "region": "EU"}}
DOCS = {"branch": "Open Settings, choose the branch, press Deactivate.", "password": "Use the link on the login page."}


class Agent:
    """Answers a question and remembers every tool it called."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def call(self, tool: str, output: Any, **arguments: Any) -> Any:
        """Call a tool: here its output is known beforehand."""
        self.calls.append({"tool": tool, "input": arguments, "output": output})
        return output

    def answer(self, question: str) -> str:
        """Decide what to do, as a model would."""
        order_id = next((name for name in ORDERS if name in question), None)
        if "refund" in question.lower() and order_id:
            return self.refund(order_id)
        topic = next((word for word in DOCS if word in question.lower()), None)
        if topic:
            self.call("search_docs", [DOCS[topic]], query=f"{topic} deactivation" if topic == "branch" else topic)
            return DOCS[topic]
        return "Hello! Ask me about branches, passwords or refunds."

    def refund(self, order_id: str) -> str:
        """Pay it back. Large sums need an approval, which this agent forgets: that is the failure to find."""
        order = self.call("get_order", ORDERS[order_id], order_id=order_id)
        self.call("check_policy", "refunds allowed within 30 days", region=order["region"])
        self.call("refund", "done", order_id=order_id, amount=order["amount"])
        return f"I have refunded order {order_id}."


def main() -> None:
    """Read the question, answer it, and write what was done."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--prompt", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    agent = Agent()
    text = agent.answer(options.prompt)
    reply = {
        "text": text,
        "output_messages": [{"role": "assistant", "content": text, "tool_calls": agent.calls}],
        "tokens_usage": {"input_tokens": len(options.prompt) // 4, "output_tokens": len(text) // 4},
    }
    Path(options.out).write_text(json.dumps(reply), encoding="utf-8")


if __name__ == "__main__":
    main()
