"""Options of the command line that state the question, in a table of the kinds of questions.

A list of answers is the default; each other kind has an option that selects it.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import shuffledp as sdp
from shuffledp.cli.options import taken

if TYPE_CHECKING:
    from shuffledp.collection.questions.question import Question
    from shuffledp.collection.source.columns import Column

_QUESTION = """
    --domain A,B,...  Possible answers, at least two; double quotes around one with a comma.
    --domain-file PATH  Text file of possible answers, one a line; with --columns JSON.
    --mean  Ask for the mean of a number in --range.
    mean_by=--by COLUMN  With --mean: ask for the mean of each group in this column, which is
        private too; --domain lists the groups.
    --compare A,B  With --by: also estimate the difference of the means of two groups.
    --quantiles P,P,...  Ask for quantiles of a number, such as .25,.5,.75, and its histogram.
    --histogram  Ask for the histogram of a number and the shares below its edges.
    --bins N|EDGES  For --quantiles and --histogram: edges of the bins, or the number of equal bins
        in --range, 64 by default.
    limits=--range LOW,HIGH  Smallest and largest number, for --mean, --quantiles and --histogram.
    --vector A,B,...  Ask for the mean of a vector with these components; needs --norm.
    --norm X  Largest Euclidean norm of a vector.
    --max-answers S  Let people give up to S of the answers, instead of exactly one.
    {search}
    --columns A,B,...  Ask for one answer in each of these columns; --domain-file is then JSON with
        a list of answers for each column.
    --pairs A:B,...|all  With --columns: also estimate the cross-tables of these pairs, or of all,
        and test each for an association.
    """
_SEARCH = """--discover  Ask for popular texts that nobody listed; needs --max-bytes.
    --max-bytes N  With --discover: length of the longest text, in bytes of UTF-8.
    --most N  With --discover: largest number of texts found, and of prefixes kept in a round; 100
        by default.
    --bits N  With --discover: bits added to the prefixes in each round, 4, 8, 12 or 16; by default
        the number that finds the rarest texts."""
QUESTION = _QUESTION.format(search=_SEARCH)
QUESTION_OF_ONE_ROUND = _QUESTION.format(search="")

# Number of bins of a distribution where none is stated.
_USUAL_BINS = 64


def _distribution(given: dict[str, Any], name: str) -> "Question":
    """Return the question of the distribution of a number, in even bins or between edges."""
    bins: Any = given.get("bins", _USUAL_BINS)
    how: Any = {"bins": bins, "limits": given.get("limits")}
    if isinstance(bins, tuple):
        how = {"edges": bins}
    how |= {"name": name} if name else {}
    return sdp.Distribution(**how, quantiles=given.get("quantiles", ()))


# Constructor of each kind of question, from the given options and the name of a column.
_KINDS: "dict[str, Callable[[dict[str, Any], str], Question]]" = {
    "": lambda given, _: sdp.Categories(given["domain"]),
    "mean": lambda given, name: _mean(given, name or "mean"),
    "quantiles": _distribution,
    "histogram": _distribution,
    "vector": lambda given, _: sdp.VectorMean(given["vector"], norm_bound=given["norm"]),
    "discover": lambda given, _: sdp.HeavyHitters(
        **{name: given[name] for name in ("max_bytes", *_BESIDE) if name in given}
    ),
    "max_answers": lambda given, _: sdp.AnswerSets(
        given["domain"], max_answers=given["max_answers"]
    ),
    "columns": lambda given, _: sdp.Columns(given["domain"], pairs=given.get("pairs")),
}
# Options that are valid only together with another one.
_BESIDE: dict[str, str] = {"most": "discover", "bits": "discover", "pairs": "columns"}
_BESIDE |= {"mean_by": "mean", "compare": "mean_by"}
# Pairs of options that go together, with an example; then kinds whose answers are listed.
_PAIRS = {
    ("mean", "limits"): "--mean --range 0,120",
    ("vector", "norm"): "--vector x,y --norm 1",
    ("discover", "max_bytes"): "--discover --max-bytes 16",
}
_LISTED = ("", "max_answers", "columns")
_BINNED = ("quantiles", "histogram")
_LISTS = {"domain", "domain_file"}


class Asked:
    """The values of `QUESTION`, taken out of all options and checked against each other."""

    def __init__(self, options: dict[str, Any]) -> None:
        others = (*_BESIDE, *(name for _, name in _PAIRS), "bins")
        flags_of = (*_LISTS, *filter(None, _KINDS), *others)
        values = taken(options, *(each for each in flags_of if each in options)).items()
        given = {name: each for name, each in values if each is not None and each is not False}
        kinds = [name for name in _KINDS if name in given]
        flags = [f"--{name.replace('_', '-')}" for name in kinds]
        self._given, self._kind = given, "".join(kinds[:1])
        #: True if possible answers were listed.
        self.has_domain = not given.keys().isdisjoint(_LISTS)
        if len(kinds) > 1:
            raise click.UsageError(f"{' and '.join(flags)} ask different questions: give one")
        if given.keys() >= _LISTS:
            raise click.UsageError("give --domain or --domain-file, not both")
        if self.has_domain and self._kind not in _LISTED and "mean_by" not in given:
            raise click.UsageError(f"{flags[0]} needs no --domain")
        _require_bins(self._kind, given)
        for (asks, beside), example in _PAIRS.items():
            is_free = self._kind in _BINNED and beside == "limits"
            if (asks in given) != (beside in given) and not is_free:
                pair = " and ".join(re.findall(r"--[\w-]+", example))
                raise click.UsageError(f"{pair} go together, as in {example}")
        for name, asks in _BESIDE.items():
            if name in given and asks not in given:
                names = (each.removeprefix("mean_") for each in (name, asks))
                raise click.UsageError("--{} goes with --{}: give that, too".format(*names))
        if "columns" in given and "domain" in given:
            raise click.UsageError("--columns needs a --domain-file (JSON) rather than --domain")
        if self._kind == "max_answers" and not self.has_domain:
            raise click.UsageError(f"{flags[0]} needs --domain or --domain-file")

    @property
    def is_about_answers(self) -> bool:
        """True if each user has exactly one of a list of answers, the default question."""
        return not self._kind

    @property
    def is_given(self) -> bool:
        """True if any option of a question is given."""
        return bool(self._given)

    @property
    def is_read_from_data(self) -> bool:
        """True if the possible answers must be read from the table."""
        return not self.is_given or (self._kind == "columns" and not self.has_domain)

    def question(self, *, name: str = "") -> "Question | None":
        """Return the question, or None where its answers were not listed."""
        from shuffledp.core.labels import read_domain

        if not self.is_given:
            return None
        given = dict(self._given)
        if self._kind == "columns":
            if not self.has_domain:
                raise click.UsageError("--columns needs --domain-file: no answers are known yet")
            from shuffledp.collection.questions.columns import read_domains

            given["domain"] = read_domains(given.pop("domain_file"), given["columns"])
        if "domain_file" in given:
            given["domain"] = read_domain(given["domain_file"])
        return _KINDS[self._kind](given, name)

    def terms(
        self,
        randomizer: str | None,
        epsilon0: float,
        text: str,
        *,
        no_local_noise: bool = False,
        with_dummies: bool = False,
    ) -> "sdp.deploy.AskedTerms":
        """Return the question of a collection yet to come, with its randomizer."""
        from shuffledp.deploy.creating import first_round

        question = self.question()
        if question is None:
            raise click.UsageError("give --domain or --domain-file: nobody's answers are known yet")
        question = first_round(question, is_for_all=with_dummies)
        name, of = randomizer or next(iter(question.candidates())), sdp.deploy.AskedTerms.of
        return of(question, name, epsilon0, text, no_local_noise=no_local_noise)

    def open(self, table: Path, column: str | None, seed: int | None, **reading: Any) -> "Column":
        """Return the column of a table that answers the question, checked."""
        question: Any
        if self._kind == "columns" and not self.has_domain:
            from shuffledp.collection.questions.columns import UnlistedColumns

            question = UnlistedColumns(self._given["columns"], self._given.get("pairs"))
        else:
            question = self.question(name=column or "")
        has_columns = bool(question and question.table_columns) and "mean_by" not in self._given
        if (column is None) != has_columns:
            raise click.UsageError("give --column, or several with --vector or --columns")
        return sdp.collection.open_column(table, column, question, seed=seed, **reading)


def _require_bins(kind: str, given: dict[str, Any]) -> None:
    """Raise unless bins, or their edges, are given as the question needs them."""
    if kind not in _BINNED:
        if "bins" in given:
            raise click.UsageError("--bins is for --quantiles and --histogram: give one of them")
    elif isinstance(given.get("bins"), tuple) == ("limits" in given):
        raise click.UsageError(
            f"--{kind} needs either --range, perhaps with a number of --bins, or all edges of the "
            "bins, as in --bins 0,18,65,120"
        )


def _mean(given: dict[str, Any], name: str) -> "Question":
    """Return the question of a mean, or of the mean of each group."""
    if "mean_by" not in given:
        return sdp.Mean(*given["limits"], name=name)
    if "domain" not in given:
        raise click.UsageError("--by needs --domain or --domain-file, the possible groups")
    return sdp.MeanByGroup(
        given["domain"],
        *given["limits"],
        name=name,
        by=given["mean_by"],
        compare=given.get("compare", ()),
    )
