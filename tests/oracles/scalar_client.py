"""One client of monitoring written out in plain numbers, to compare with and to enumerate."""

from dataclasses import dataclass, replace

from oracles.monitored_release import hadamard, one_hot


def bit(encoding, column, code):
    """B(column, value) for the value of that code; -1 is nothing."""
    if encoding.name == "boolean":
        return int(code == 0)
    return (one_hot if encoding.name == "one-hot" else hadamard)(column, code)


@dataclass(frozen=True, kw_only=True)
class Client:
    """What a client remembers; see `shuffledp.monitoring.client`."""

    level: int
    key: int
    num_changes: int = 0
    num_increments: int = 0
    num_ignored: int = 0
    told: int = -1
    value: int = -1
    before: int = -1
    after: int = -1

    def after_telling(self, code, design):
        """The state in a period in which the user's value has this code."""
        state = replace(self, told=code)
        if code in (self.told, self.value):
            return state
        if self.num_changes == design.max_changes:
            return replace(state, num_ignored=self.num_ignored + 1)
        kappa = self.num_changes + 1
        state = replace(state, num_changes=kappa, value=code)
        if design.law.name == "predrawn-signs":
            return replace(state, after=code)
        if kappa == self.key:  # kappa = kappa*: c <- x_t
            return replace(state, before=self.value, after=code)
        return state

    def increment_under(self, column, design):
        """What the node in progress would report on if it ended now, in {-1, 0, 1}."""
        encoding = design.encoding
        return bit(encoding, column, self.after) - bit(encoding, column, self.before)

    def after_node(self, column, coin, word, design):
        """The sign to report at a node's end, and the state for the next node."""
        increment = self.increment_under(column, design)
        state = replace(self, before=self.value, after=self.value)  # c <- 0
        if increment == 0:
            return 2 * coin - 1, state
        state = replace(state, num_increments=self.num_increments + 1)
        if design.law.name == "predrawn-signs":
            is_opposite = (self.key >> self.num_increments) & 1
        else:
            is_opposite = word < design.law.flip_threshold
        return (-increment if is_opposite else increment), state
