"""Conversion of evals of other tools against loading the same files as YAML."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from agentv.api.convert import convert_paths, output_files
from benchmarks.clock import best_of
from benchmarks.table import Bar, Row

_CASES = 300
_ROUNDS = 5
_BAR = Bar("at most", 3.0)
_PROMPTFOO = {
    "prompts": ["Answer the customer: {{question}}", "Be short.\n{{question}}"],
    "providers": ["openai:gpt-4.1"],
    "defaultTest": {"assert": [{"type": "latency", "threshold": 5000}]},
    "tests": [
        {
            "description": f"Question {number}",
            "vars": {"question": f"How long does refund {number} take?"},
            "assert": [
                {"type": "icontains", "value": "refund"},
                {"type": "regex", "value": "\\d+ days"},
                {"type": "llm-rubric", "value": "It names the period."},
            ],
        }
        for number in range(_CASES)
    ],
}
_AGENTV = {
    "name": "branches",
    "prompts": ["{{ input }}"],
    "tests": [
        {
            "id": f"case-{number}",
            "vars": {"input": f"How do I close branch {number}?"},
            "assert": [
                {"type": "tool-trajectory", "mode": "any_order", "minimums": {"search": 2}},
                {"type": "contains", "value": "archive", "weight": 2},
                "It names the period.",
            ],
        }
        for number in range(_CASES)
    ],
}
_ADK = {
    "eval_set_id": "home",
    "eval_cases": [
        {
            "eval_id": f"case_{number}",
            "conversation": [
                {
                    "user_content": {"parts": [{"text": f"Turn lamp {number} on."}]},
                    "final_response": {"parts": [{"text": "It is on."}]},
                    "intermediate_data": {"tool_uses": [{"name": "set_device", "args": {"id": number}}]},
                }
            ],
        }
        for number in range(_CASES)
    ],
}
_EVALSTUDIO = [
    {
        "id": str(number),
        "name": f"Refund {number}",
        "instructions": "You want your money back.",
        "messages": [{"role": "user", "content": f"Where is refund {number}?"}],
        "successCriteria": "It names the day.",
    }
    for number in range(_CASES)
]
_OPENAI = {
    "name": "tickets",
    "data_source_config": {"type": "custom", "item_schema": {"type": "object"}},
    "testing_criteria": [
        {
            "type": "string_check",
            "name": "label",
            "input": "{{ sample.output_text }}",
            "operation": "eq",
            "reference": "{{ item.label }}",
        }
    ],
    "runs": [
        {
            "data_source": {
                "type": "completions",
                "model": "gpt-4.1",
                "input_messages": {"type": "template", "template": [{"role": "user", "content": "{{ item.text }}"}]},
                "source": {
                    "type": "file_content",
                    "content": [{"item": {"text": f"Ticket {number}", "label": "Other"}} for number in range(_CASES)],
                },
            }
        }
    ],
}
SOURCES: dict[str, tuple[str, Any]] = {
    "promptfoo": ("promptfooconfig.yaml", _PROMPTFOO),
    "AgentV": ("branches.eval.yaml", _AGENTV),
    "ADK": ("home.evalset.json", _ADK),
    "EvalStudio": ("scenarios.json", _EVALSTUDIO),
    "OpenAI Evals": ("tickets.json", _OPENAI),
}


def measure() -> list[Row]:
    """Time the conversion of each source, with its output as text, against `yaml.safe_load` of its file."""
    rows = []
    for tool, (name, data) in SOURCES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            text = yaml.safe_dump(data, sort_keys=False) if path.suffix == ".yaml" else json.dumps(data, indent=2)
            path.write_text(text, encoding="utf-8")
            if sum(each.case_count for each in convert_paths([str(path)])) < _CASES:
                msg = f"{tool}: cases are missing in the output"
                raise AssertionError(msg)
            ours, other = best_of(_ROUNDS, _conversion(path), _loading(text))
            label = f"convert: {_CASES} cases of {tool} against `yaml.safe_load` of the file"
            rows.append(Row(name=label, unit="seconds", ours=ours, other=other, bar=_BAR))
    return rows


def _conversion(path: Path) -> Callable[[], object]:
    return lambda: output_files(convert_paths([str(path)]))


def _loading(text: str) -> Callable[[], object]:
    return lambda: yaml.safe_load(text)
