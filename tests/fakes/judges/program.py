"""A judge that is a program: it writes down what it was asked, and finds an answer right that holds `Paris`."""

import json
import sys
from pathlib import Path
from typing import Any

SOURCE = """\
import json, os, re, sys, time

request = json.load(sys.stdin)
prompt = request["input_messages"][-1]["content"]
with open("asked.jsonl", "a") as log:
    log.write(json.dumps({"prompt": prompt, "start": time.time()}) + "\\n")
word = re.findall(r'"verdict" must be "([^"]+)"', prompt)[-1]
ids = re.findall(r'^- id "([^"]+)"', prompt[prompt.rindex("Decide each"):], re.MULTILINE)
answer = re.findall(rf"BEGIN {word} the final answer of the agent\\n(.*?)\\nEND {word}", prompt, re.DOTALL)[-1]
met = "Paris" in answer
items = [{"id": name, "met": met, "quote": answer[:30], "reason": "it names a city"} for name in ids]
if "HANG" in answer:
    time.sleep(60)
stutters = "STUTTER" in answer and "You were asked this before" not in prompt
text = "I would rather not." if "BABBLE" in answer or stutters else json.dumps({"verdict": word, "items": items})
usage = {"input_tokens": len(prompt) // 4, "output_tokens": len(text) // 4}
print(json.dumps({"text": text, "tokens_usage": usage, **json.loads(os.environ.get("REPLY") or '{"cost_usd": 0.25}')}))
"""


def judge_program(folder: Path, **settings: Any) -> dict[str, Any]:
    """The program in this folder, as a target."""
    (folder / "judge.py").write_text(SOURCE)
    command = [sys.executable, "-S", "-E", "judge.py"]
    return {"name": "judge", "provider": "cli", "command": command, "env": ["REPLY"], **settings}


def asked(folder: Path) -> list[str]:
    """Return the questions that the judge has received."""
    path = folder / "asked.jsonl"
    return [json.loads(line)["prompt"] for line in path.read_text().splitlines()] if path.exists() else []
