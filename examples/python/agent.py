"""A small agent as a class: it is made once, and asked through its `run`."""

from typing import Any

PLACES = {"Paris": 18, "Oslo": 4}


class WeatherAgent:
    """Looks up a city and answers in one sentence."""

    def __init__(self, unit: str = "celsius") -> None:
        self.unit = unit

    def run(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Give the messages that this turn adds, each call with its result beside it."""
        question = messages[-1]["content"]
        city = next((name for name in PLACES if name in question), None)
        if city is None:
            return [{"role": "assistant", "content": "Which city do you mean?"}]
        found = PLACES[city] if self.unit == "celsius" else PLACES[city] * 9 / 5 + 32
        call = {"tool": "get_weather", "input": {"city": city, "unit": self.unit}, "output": {"degrees": found}}
        return [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "assistant", "content": f"It is {found:g} degrees in {city}."},
        ]
