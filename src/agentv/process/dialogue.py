"""A program that is talked to while it runs: told more, and heard piece by piece."""

from collections.abc import Callable

from agentv.process.output import Output

_MAX_STDERR_BYTES = 65_536


class Dialogue:
    """What is said to one program, and who hears what it prints; not for several threads."""

    def __init__(self, hear: Callable[[bytes], None], on_deaf: Callable[[], None] = lambda: None) -> None:
        self.hear = hear
        """Is handed each piece of stdout as it comes."""
        self.on_deaf = on_deaf
        """Is called when the program has closed its stdin while there was more to say."""
        self.stderr = Output(_MAX_STDERR_BYTES)
        self.unsaid = bytearray()
        """What the pipe has not taken yet."""
        self.is_closing = False
        """Whether stdin ends with what is unsaid."""
        self.has_ended = False
        """Whether the program has ended; what it left behind may still be on its way."""
        self.wake: Callable[[], None] = lambda: None
        """Set by whoever runs the program: there is something to say."""

    def say(self, data: bytes) -> None:
        """Write to the program's stdin, now or as soon as it reads."""
        self.unsaid += data
        self.wake()

    def hang_up(self) -> None:
        """Close its stdin when all is said."""
        self.is_closing = True
        self.wake()

    def fall_silent(self) -> None:
        """Note that it reads no more."""
        was_listening = bool(self.unsaid) and not self.has_ended
        self.unsaid.clear()
        self.is_closing = True
        if was_listening:
            self.on_deaf()
