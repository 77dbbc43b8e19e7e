"""Memory for large datasets, read in order or shuffled."""

from pathlib import Path

import yaml

from benchmarks.ours import Agentv
from benchmarks.table import Bar, Row

_FEW, _MANY = 1_000, 100_000
_LINE = 10_000
"""Bytes: ten megabytes against a gigabyte."""
_BAR = Bar("at most", 1.5)


class _Large(Agentv):
    """Cases with an input of ten kilobytes."""

    def __init__(self, *, shuffle: bool) -> None:
        super().__init__()
        self._shuffle = shuffle

    def write(self, folder: Path, count: int, *, wrong: bool = False) -> None:
        """An eval and its dataset, with lines that are only told apart by their ids."""
        super().write(folder, 0, wrong=wrong)
        path = folder / "loop.eval.yaml"
        suite = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump({**suite, "dataset": {"files": "cases.jsonl", "shuffle": self._shuffle}}))
        rest = b'", "input": "' + b"question " * (_LINE // len(b"question ")) + b'"}\n'
        with (folder / "cases.jsonl").open("wb") as file:
            file.writelines(b'{"id": "case-%d%b' % (number, rest) for number in range(count))


def measure() -> list[Row]:
    """The highest memory of `agentv eval` on a gigabyte of cases, and on a hundredth of it."""
    return [
        Row(
            name=f"dataset: agentv eval of {_MANY * _LINE // 10**9} GB{' shuffled' * shuffle} "
            f"against {_FEW * _LINE // 10**6} MB",
            unit="bytes",
            ours=_Large(shuffle=shuffle).run(_MANY).peak,
            other=_Large(shuffle=shuffle).run(_FEW).peak,
            bar=_BAR,
        )
        for shuffle in (False, True)
    ]
