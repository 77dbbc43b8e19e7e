"""False alarms of `agentv compare --fail-on regression` on two executions of the same agent, and its power.

`python -m benchmarks.false_alarms` prints, for agents of different flakiness and for several numbers of repetitions,
the share of comparisons that report a regression although nothing changed; and the share that name a case which fails
in every run of B.
"""

from collections.abc import Callable
from random import Random

from agentv.api.compare import decide_strata
from agentv.scoring.regression import Stratum

CASES = 40
AGENTS: dict[str, Callable[[Random], float]] = {
    "steady": lambda _: 1.0,
    "one in fifty fails": lambda _: 0.98,
    "one in ten fails": lambda _: 0.9,
    "one in four fails": lambda _: 0.75,
    "half fails": lambda _: 0.5,
    "a few cases flicker": lambda chance: chance.choice((0.6, *[1.0] * 9)),
    "every case differs": lambda chance: chance.random(),
}
"""The probability that a case passes, drawn for each case."""
REPEATS = (1, 3, 5, 10)
CONFIDENCE = 0.95


def same_agent(agent: str, runs_a: int, runs_b: int, chance: Random, *, lost: bool = False) -> list[Stratum]:
    """Return the runs of two executions of one agent; with `lost`, B fails the first case in every run."""
    rates = [AGENTS[agent](chance) for _ in range(CASES)]
    strata = [Stratum(_passes(rate, runs_a, chance), runs_a, _passes(rate, runs_b, chance), runs_b) for rate in rates]
    return [Stratum(runs_a, runs_a, 0, runs_b), *strata[1:]] if lost else strata


def _passes(rate: float, runs: int, chance: Random) -> int:
    return sum(chance.random() < rate for _ in range(runs))


def false_alarm_rate(agent: str, runs_a: int, runs_b: int, *, comparisons: int, chance: Random) -> float:
    """Return the share of comparisons of an agent with itself that report a regression."""
    alarms = 0
    for _ in range(comparisons):
        verdict, regressed = decide_strata(same_agent(agent, runs_a, runs_b, chance), CONFIDENCE)
        alarms += verdict == "worse" or bool(regressed)
    return alarms / comparisons


def power(agent: str, runs: int, *, comparisons: int, chance: Random) -> float:
    """Return the share of comparisons that report a regression when one case fails in every run of B."""
    found = 0
    for _ in range(comparisons):
        verdict, regressed = decide_strata(same_agent(agent, runs, runs, chance, lost=True), CONFIDENCE)
        found += verdict == "worse" or bool(regressed)
    return found / comparisons


def main(comparisons: int = 2_000) -> None:
    """Print both tables."""
    chance = Random(1)  # noqa: S311 - a simulation
    columns = " | ".join(f"{runs} runs" for runs in REPEATS)
    print(f"| false alarms | {columns} |")
    for agent in AGENTS:
        rates = [false_alarm_rate(agent, runs, runs, comparisons=comparisons, chance=chance) for runs in REPEATS]
        print(_row(agent, rates))
    print(f"| one case of {CASES} lost | {columns} |")
    for agent in AGENTS:
        print(_row(agent, [power(agent, runs, comparisons=comparisons, chance=chance) for runs in REPEATS]))


def _row(agent: str, shares: list[float]) -> str:
    return f"| {agent} | {' | '.join(f'{share * 100:.1f} %' for share in shares)} |"


if __name__ == "__main__":
    main()
