"""``MonitorClient``: one user's device, which reports on a changing value for months."""

from typing import TYPE_CHECKING, Any, NoReturn, Self, SupportsIndex

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import KEY_BYTES, WORD_BYTES, Entropy, derived_key
from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.client_state import ClientState
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.reports import MonitorReport
from shuffledp.monitoring.sign_laws.exact_integers import draw_below

if TYPE_CHECKING:
    from shuffledp.monitoring.encodings.encoding import Encoding


class MonitorClient:
    """One user's side of a longitudinal collection, with one privacy budget for all periods.

    Parameters
    ----------
    periods : int
        d, how many periods the collection lasts.
    max_changes : int
        k, in [1, periods]: changes of the value that are followed.
    epsilon0 : float
        Local privacy loss, in nats, of everything that this client ever reports.
    protocol : str
        Law of the signs; see `MonitorDesign`.
    encoding : Encoding, optional
        How a value becomes bits; booleans where none is given. See `encoding_for`.
    entropy : Entropy, optional
        Source of the level and of the keys, drawn once; the operating system's generator where
        none is given.

    Raises
    ------
    ParameterError
        If a number is out of range; see `MonitorDesign`.

    Notes
    -----
    *Reports.* The client draws one level of the tree over the periods, once, and reports a sign
    at the end of each node of that level: every 1, 2, 4, 8, ... periods. Whether a report
    falls due depends on the level and the period only, never on the value.

    *Changes beyond max_changes* are not followed: the client goes on as if the value had stayed
    what it was after change number ``max_changes``. The guarantee holds whatever the value does;
    what suffers is the estimate, which counts this user with the value followed. If the value
    comes back to that one, nothing is wrong any more. `ignored_changes` says how many changes
    were not followed; it is secret, and never reported.

    *Late joiners.* A client first told in period t > 1 counts as having had no value before (0
    for booleans). It hands out no report for nodes that ended before t; the node in progress
    counts from no value. Estimates stay unbiased, for the reports left out would have been about
    nothing. But who reports at level h after how many periods shows who joined late: the central
    guarantee then has to assume that levels are not hidden.

    *Early leavers.* Tell None (0 for booleans) from the period of leaving on, which is one change,
    and go on to the end: then leaving is like any other change. A client that merely stops sends
    no report for the nodes that are unfinished then. An estimate that uses such a node misses all
    that it would have told of this user, who is counted with his last value where the nodes used
    are finished ones, and less or not at all elsewhere. Whoever counts reports sees at which
    levels users stopped: again the central guarantee has to assume that levels are not hidden. The
    local one holds either way.

    *Saving.* Save `to_bytes` after `update` and **before** the report is sent. A client restored
    from these bytes never hands out a report for that period again; if the report was not sent
    before a crash, it is lost, which costs accuracy only. The coins of a report are a keyed
    function of its period, with a key that is drawn once and saved: a client restored from an
    older copy and told the same values repeats the reports that it made before, bit for bit, so
    that no average over replays tells more than one report. Told *other* values for periods that
    it reported on before, it would report on both with the same coins: do not.

    Cost: tens of microseconds a report; the state has 97 bytes for booleans, at most 125.

    Source: Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta, "Amplification by
    Shuffling", SODA 2019, arXiv:1811.12469v2, Algorithm 1, corrected and with other laws of the
    signs; see `MonitorDesign`.

    Examples
    --------
    >>> client = MonitorClient(periods=4, max_changes=1, epsilon0=1.0)
    >>> reports = [client.update(t, value=t >= 3) for t in (1, 2, 3, 4)]
    >>> all(report.level == client.level for report in reports if report is not None)
    True
    >>> client.update(4, True) is None  # told before: the report was handed out already
    True
    """

    __slots__ = ("_design", "_state")

    def __init__(
        self,
        periods: SupportsIndex,
        max_changes: SupportsIndex,
        epsilon0: float,
        *,
        protocol: str = "predrawn-signs",
        encoding: "Encoding | None" = None,
        entropy: Entropy | None = None,
    ) -> None:
        design = MonitorDesign(
            periods=periods,  # type: ignore[arg-type]  # checked there
            max_changes=max_changes,  # type: ignore[arg-type]  # checked there
            epsilon0=epsilon0,
            protocol=protocol,
            encoding=encoding,  # type: ignore[arg-type]  # None stands for booleans there
        )
        self._start(design, entropy)

    @classmethod
    def of(cls, design: MonitorDesign, *, entropy: Entropy | None = None) -> Self:
        """Return a new client of a design.

        Parameters
        ----------
        design : MonitorDesign
            The collection.
        entropy : Entropy, optional
            Source of randomness; the operating system's generator where none is given.
        """
        client = cls.__new__(cls)
        client._start(design, entropy)
        return client

    @classmethod
    def from_bytes(cls, data: bytes, design: MonitorDesign) -> Self:
        """Return the client that `to_bytes` saved.

        Parameters
        ----------
        data : bytes
            As `to_bytes` returned it.
        design : MonitorDesign
            The collection that it took part in.

        Raises
        ------
        DataError
            If the bytes are no state, of another version, cut short, or damaged.
        FingerprintError
            If they are of another design.
        """
        client = cls.__new__(cls)
        client._design = design
        client._state = ClientState.from_bytes(data, design)
        return client

    def _start(self, design: MonitorDesign, entropy: Entropy | None) -> None:
        """Draw the level h* and the keys."""
        self._design = design
        source = Entropy.from_operating_system() if entropy is None else entropy
        self._state = ClientState.fresh(
            level=1 + int(draw_below(source, 1, design.num_levels)[0]),
            key=int(design.law.draw_keys(source, 1)[0]),
            coins=source.words(KEY_BYTES // WORD_BYTES).tobytes(),
            nothing=design.encoding.nothing,
        )

    @property
    def design(self) -> MonitorDesign:
        """The collection."""
        return self._design

    @property
    def level(self) -> int:
        """The level of the tree whose nodes this client reports; named in each report."""
        return self._state.level

    @property
    def last_period(self) -> int:
        """The last period told; 0 before the first."""
        return self._state.last_period

    @property
    def ignored_changes(self) -> int:
        """How many changes were told that were not followed; secret."""
        return self._state.num_ignored

    def to_bytes(self) -> bytes:
        """Return the state: versioned, with a checksum and the name of the design.

        Returns
        -------
        bytes
            Of one size for a design: 97 for booleans. Secret: it holds the value, and the keys
            that undo the protection of what was and will be reported.
        """
        return self._state.to_bytes(self._design)

    def update(self, t: SupportsIndex, value: Any) -> MonitorReport | None:
        """Tell the value of a period, and return the report that falls due.

        Parameters
        ----------
        t : int
            The period after the last one told; at first any in [1, d]. The last one again is
            allowed with the same value, and does nothing.
        value : object
            A value of the encoding; True or False for booleans. None: no value.

        Returns
        -------
        MonitorReport or None
            None if no node of the client's level ends at t, or its report was handed out before.

        Raises
        ------
        ParameterError
            If t is not a period, lies before the last one, leaves one out (use `advance`), or is
            the last one with another value. The state is as before.
        DomainError
            If the value is not in the domain. The state is as before.
        """
        period, code = self._checked(t, value)
        last = self._state.last_period
        if period == last:
            return None
        if last and period > last + 1:
            raise ParameterError(
                f"t = {period} leaves out the periods after {last}: call "
                f"advance({period}, value) to hold the last value through the gap, which also "
                "returns the reports that fell due in it"
            )
        state, report = self._after_period(self._state, period, code)
        self._state = state
        return report

    def advance(self, t: SupportsIndex, value: Any) -> tuple[MonitorReport, ...]:
        """Tell the value of a period after a gap, and return all reports that fell due.

        Parameters
        ----------
        t : int
            In [1, d], not before the last period told. In the periods between, the value is taken
            to have stayed what was told last. For a client told nothing yet this is `update`.
        value : object
            As for `update`.

        Returns
        -------
        tuple of MonitorReport
            In order of periods.

        Raises
        ------
        ParameterError, DomainError
            As `update` does, but not for a gap. The state is as before.
        """
        period, code = self._checked(t, value)
        state = self._state
        if period == state.last_period:
            return ()
        reports = []
        for missed in self._due_in_gap(period):
            state, report = self._after_period(state, missed, state.told)
            reports.append(report)
        state, report = self._after_period(state, period, code)
        self._state = state
        return tuple(each for each in [*reports, report] if each is not None)

    def _due_in_gap(self, period: int) -> range:
        """Return the ends of nodes after the last period told and before ``period``."""
        last = self._state.last_period
        if last == 0:
            return range(0)
        length = self._design.tree.length(self._state.level)
        return range(last - last % length + length, period, length)

    def _checked(self, t: SupportsIndex, value: Any) -> tuple[int, int]:
        """Return a period that may be told, and the code of its value, or raise."""
        period = require_at_least("t", t, 1)
        last, end = self._state.last_period, self._design.tree.periods
        if period > end:
            raise ParameterError(
                f"t = {period} is not in [1, {end}]: the collection ended with period {end}; set "
                "up a new one, with a budget of its own"
            )
        code = self._design.encoding.code(value)
        if period < last:
            raise ParameterError(
                f"t = {period} is before {last}, the last period told: time goes forward; tell "
                f"period {last + 1} next"
            )
        if period == last and code != self._state.told:
            raise ParameterError(
                f"t = {period} was told before with another value than {value!r}: what was "
                f"reported cannot be taken back; tell the new value as period {last + 1}"
            )
        return period, code

    def _after_period(
        self, state: ClientState, period: int, code: int
    ) -> tuple[ClientState, MonitorReport | None]:
        """Return the state after a period, and its report if one falls due."""
        state = state.after_telling(period, code, self._design)
        if period % self._design.tree.length(state.level):
            return state, None
        coins = Entropy.from_key(derived_key(state.coins, b"report", period))
        column = int(draw_below(coins, 1, self._design.encoding.num_columns)[0])
        # Both are drawn whatever the value did, so that the time taken tells nothing of it.
        coin, word = (int(each) for each in coins.words(2))
        sign, state = state.after_node(column, coin & 1, word, self._design)
        return state, MonitorReport(level=state.level, period=period, sign=sign, column=column)

    def __repr__(self) -> str:
        # The state stays out: logs are read by many.
        return f"MonitorClient({self._design!r}, last_period={self._state.last_period})"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise ParameterError(
            "a MonitorClient cannot be pickled or copied, for the copy could report on another "
            "value with the same coins: save to_bytes() where only the user can read it"
        )
