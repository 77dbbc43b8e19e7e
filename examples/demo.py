"""Two recorded conversations of one agent, held against the same expectations.

Both end with the same sentence; only one of them did the right things.
"""

import json
import sys
from pathlib import Path

import agentv
from agentv.reports.terminal import Style

HERE = Path(__file__).parent / "refund"


def main() -> int:
    """Print a verdict and a diff for each recording; nothing is called and no key is needed."""
    style = Style.of(sys.stdout)
    scorer = agentv.Scorer(json.loads((HERE / "expected.json").read_text()))
    verdicts = []
    for day in ("monday", "tuesday"):
        reply = json.loads((HERE / f"{day}.json").read_text())
        result = scorer.score(reply)
        verdicts.append(result.status)
        print(style.paint("bold", f"examples/refund/{day}.json"), "(a recording; no agent is called)")
        print(scorer.explain(reply, result, style))
        print()
    legend = {
        "match": "as expected",
        "mismatch": "other arguments",
        "out_of_order": "at another place",
        "missing": "not called",
        "extra": "not expected",
    }
    print("In the diff:", ", ".join(f"{style.mark(verdict)} {words}" for verdict, words in legend.items()))
    return 0 if verdicts == ["pass", "fail"] else 1


if __name__ == "__main__":
    sys.exit(main())
