"""An agent that converts currencies: it looks the rate up, then answers."""

from typing import Any

RATES = {"EUR": 1.0, "USD": 1.1, "GBP": 0.85}


def agent(prompt: str) -> list[dict[str, Any]]:
    """Answer a question such as `20 EUR in USD`."""
    amount, _, _, currency = prompt.split()
    call = {"tool": "get_rate", "input": {"currency": currency}, "output": RATES[currency]}
    text = f"{float(amount) * RATES[currency]:g} {currency}"
    return [{"role": "assistant", "tool_calls": [call]}, {"role": "assistant", "content": text}]
