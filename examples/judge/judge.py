"""A judge without a model, so that the example needs no key: an answer that thanks is polite.

It is sent the prompt that a model would be sent, and has to answer in the same form.
"""

import json
import re
from typing import Any


def judge(messages: list[dict[str, Any]]) -> str:
    """Answer with a verdict on each item of the rubric."""
    prompt = str(messages[-1]["content"])
    word = re.findall(r'"verdict" must be "(\w+)"', prompt)[-1]
    answer = re.findall(rf"BEGIN {word} the final answer of the agent\n(.*?)\nEND {word}", prompt, re.DOTALL)[-1]
    met = "hank" in answer
    item = {"id": "criterion", "met": met, "quote": answer[:40], "reason": "It thanks." if met else "It does not."}
    return json.dumps({"verdict": word, "items": [item]})
