"""How long the engine takes to compute a prompt's tokens, measured from its own steps."""

from __future__ import annotations

from typing import Dict, Optional, Tuple

_TOKENS_MIN = 32
_STEPS_MIN = 3
_STEPS_OPEN_MAX = 64
_WEIGHT = 0.2


class PrefillPace:
    """Seconds a token, of steps that are mostly prefill; later ones count more.

    Tokens deep in a prompt cost more than its first ones. So for a long hit this is rather too low, and a load that would just
    have paid may be declined.
    """

    def __init__(self) -> None:
        self._open: Dict[int, Tuple[float, int]] = {}
        self._last_end = 0.0
        self._seconds_a_token = 0.0
        self._steps = 0

    def begin(self, step: int, now: float, prefill_tokens: int, all_tokens: int) -> None:
        """A step is handed to the workers."""
        if len(self._open) >= _STEPS_OPEN_MAX:  # their ends were never told
            self._open.clear()
        counts = prefill_tokens >= _TOKENS_MIN and 2 * prefill_tokens >= all_tokens
        self._open[step] = (now, prefill_tokens if counts else 0)

    def end(self, step: int, now: float) -> None:
        """A step's results have come; where several are under way, it began to run when the one before it had ended."""
        begun, tokens = self._open.pop(step, (now, 0))
        took = now - max(begun, self._last_end)
        self._last_end = now
        if tokens and took > 0:
            pace = took / tokens
            self._steps += 1
            self._seconds_a_token += (pace - self._seconds_a_token) * (1.0 if self._steps == 1 else _WEIGHT)

    def seconds(self, tokens: int) -> Optional[float]:
        """What computing so many tokens takes; ``None`` until some steps were measured."""
        return tokens * self._seconds_a_token if self._steps >= _STEPS_MIN else None
