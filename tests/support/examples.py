"""Number of examples of property tests: few in `make check`, all in `make soak`."""

from hypothesis import settings

QUICK, NORMAL, THOROUGH = "quick", "normal", "thorough"
"""Profiles of Hypothesis: of `make check`, `make test` and `make soak`."""


def register_profiles() -> None:
    """Register the profiles for `--hypothesis-profile`, and load that of `make test`."""
    settings.register_profile(QUICK, max_examples=examples(100, QUICK), deadline=None)
    settings.register_profile(NORMAL, max_examples=examples(200, NORMAL), deadline=None)
    settings.register_profile(THOROUGH, max_examples=1000, deadline=None)
    settings.load_profile(NORMAL)


def examples(count: int, profile: str | None = None) -> int:
    """Return how many of the `count` examples of a thorough run the current profile tries."""
    profile = profile or settings.get_current_profile_name()
    if profile == THOROUGH:
        return count
    # Almost every mistake is found by the first examples; the rest is for those that few values show.
    return 10 if profile == QUICK else max(25, count // 4)
