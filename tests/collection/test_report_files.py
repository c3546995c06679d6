"""Reports survive the way through Parquet and through Arrow; what is no report file is refused."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from collection.kinds import CHOICES, DOMAIN, KINDS, NUM_USERS
from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.collection.report_files import (
    from_frame,
    open_reports,
    reports_writer,
    to_frame,
    write_reports,
)
from shuffledp.collection.run import run as run_plan
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, FingerprintError, OutputError, ShuffledpError
from shuffledp.core.reports import Counts, Reports


def randomized(kind, name, seed=1):
    """Return a randomizer of the kind, and reports of it."""
    randomizer = kind.question.candidates()[name](2.0)
    values = next(kind.question.column(kind.values).blocks())
    return randomizer, randomizer.randomize(values, Entropy.from_seed(seed))


def labels_of(kind, randomizer):
    return kind.question.labels if randomizer.name == "k-rr" else None


def numbers_in(aggregate):
    if isinstance(aggregate, Counts):
        return [aggregate.support, aggregate.num_reports]
    return [aggregate.total, aggregate.total_of_squares, aggregate.num_reports]


def assert_same(first, second):
    for one, other in zip(numbers_in(first), numbers_in(second), strict=True):
        np.testing.assert_array_equal(one, other)
    assert first.fingerprint == second.fingerprint


def halves(reports):
    middle = reports.num_reports // 3
    for part in (reports.data[:middle], reports.data[middle:]):
        yield Reports(data=part, fingerprint=reports.fingerprint)


class ArrowOnly:
    """A table that offers nothing but its Arrow stream, as those of other libraries."""

    def __init__(self, frame):
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self._frame.__arrow_c_stream__(requested_schema)


# ------------------------------------------------------------------ there and back


@pytest.mark.parametrize(("name", "choice"), CHOICES)
def test_parquet_gives_the_same_counts(tmp_path, name, choice):
    kind = KINDS[name]
    randomizer, reports = randomized(kind, choice)
    path = tmp_path / "reports.parquet"
    write_reports(path, halves(reports), randomizer, labels=labels_of(kind, randomizer))
    file = open_reports(path)
    assert file.fingerprint == randomizer.fingerprint
    (again,) = file.blocks()
    np.testing.assert_array_equal(again.data, reports.data)
    assert again.data.dtype == reports.data.dtype
    assert_same(randomizer.aggregate(again), randomizer.aggregate(reports))


@pytest.mark.parametrize(("name", "choice"), CHOICES)
def test_arrow_gives_the_same_counts(name, choice):
    kind = KINDS[name]
    randomizer, reports = randomized(kind, choice)
    frame = to_frame(reports, labels=labels_of(kind, randomizer))
    assert frame.columns == ["report"]
    for table in (frame, ArrowOnly(frame)):
        again = from_frame(table, fingerprint=randomizer.fingerprint)
        assert again.data.dtype == reports.data.dtype
        assert_same(randomizer.aggregate(again), randomizer.aggregate(reports))


@pytest.mark.parametrize("k", [2, 256, 257, 65_536, 65_537])
def test_labels_become_the_codes_that_they_were(k):
    randomizer = sdp.randomizers.KRandomizedResponse(domain_size=k, epsilon0=1.0)
    reports = randomizer.randomize(np.arange(k).repeat(2), Entropy.from_seed(1))
    labels = tuple(f"label {i}" for i in range(k))
    frame = to_frame(reports, labels=labels)
    assert frame["report"].cast(pl.String)[0] == labels[reports.data[0]]
    again = from_frame(ArrowOnly(frame), fingerprint=reports.fingerprint)
    np.testing.assert_array_equal(again.data, reports.data)
    assert again.data.dtype == reports.data.dtype


def test_the_file_of_randomized_response_is_readable():
    reports = Reports(data=np.array([2, 0, 1, 1], dtype=np.uint8), fingerprint="f")
    frame = to_frame(reports, labels=DOMAIN)
    assert frame["report"].cast(pl.String).to_list() == ["refused", "yes", "no", "no"]
    bits = Reports(data=np.array([[1, 2], [255, 1]], dtype=np.uint8), fingerprint="f")
    assert to_frame(bits, labels=DOMAIN)["report"].to_list() == [[1, 2], [255, 1]]


def test_no_reports_at_all(tmp_path):
    randomizer = sdp.randomizers.SymmetricUnaryEncoding(domain_size=20, epsilon0=1.0)
    nobody = randomizer.randomize(np.empty(0, np.int64), Entropy.from_seed(1))
    write_reports(tmp_path / "a.parquet", [nobody], randomizer)
    assert not sum(len(each.data) for each in open_reports(tmp_path / "a.parquet").blocks())
    with pytest.raises(DataError, match="no reports to write"):
        write_reports(tmp_path / "b.parquet", [], randomizer)
    assert not (tmp_path / "b.parquet").exists()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_run_can_be_estimated_again_from_its_reports(tmp_path, kind):
    plan = sdp.plan(kind.question, num_users=NUM_USERS, epsilon=1.0, delta=1e-6)
    path = tmp_path / "reports.parquet"
    result = run_plan(plan, kind.values, seed=1, sink=reports_writer(path, plan))
    parts = [plan.randomizer.aggregate(reports) for reports in open_reports(path).blocks()]
    options = EstimateOptions()
    estimates = kind.question.estimate(plan.randomizer, sum(parts[1:], start=parts[0]), options)
    for name, column in result.estimates.columns().items():
        np.testing.assert_array_equal(estimates.columns()[name], column)


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("frequencies", "k-rr"),
        ("mean", "duchi"),
        ("vector-mean", "privunit"),
        ("answer-sets", "split:symmetric-unary"),
    ],
)
def test_counts_of_two_files_add_up_to_those_of_the_whole(tmp_path, name, choice):
    kind = KINDS[name]
    randomizer, reports = randomized(kind, choice)
    parts = []
    for i, part in enumerate(halves(reports)):
        path = tmp_path / f"{i}.parquet"
        write_reports(path, [part], randomizer, labels=labels_of(kind, randomizer))
        (again,) = open_reports(path).blocks()
        parts.append(randomizer.aggregate(again))
    whole = randomizer.aggregate(reports)
    merged = parts[0] + parts[1]
    assert merged.num_reports == NUM_USERS
    for one, other in zip(numbers_in(merged), numbers_in(whole), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_reports_of_another_law_are_refused(tmp_path, kind):
    for name, make in kind.question.candidates().items():
        _, reports = randomized(kind, name)
        write_reports(tmp_path / "a.parquet", [reports], make(2.0))
        (again,) = open_reports(tmp_path / "a.parquet").blocks()
        with pytest.raises(FingerprintError):
            make(1.9).aggregate(again)


@pytest.mark.parametrize("name", ["k-rr", "symmetric-unary"])
def test_reports_on_other_answers_or_in_another_order_are_refused(tmp_path, name):
    how = {"num_users": 9, "epsilon0": 2.0, "delta": 1e-6, "randomizer": name}
    plans = [sdp.plan(sdp.Categories(each), **how) for each in (["a", "b"], ["b", "a"], ["x", "y"])]
    reports = plans[0].randomizer.randomize(np.arange(9) % 2, Entropy.from_seed(1))
    for place, plan in enumerate(plans[:2]):
        reports_writer(tmp_path / f"{place}.parquet", plan)(iter([reports]))
    assert sdp.estimate(tmp_path / "0.parquet", plans[0]).num_users == 9
    for path, plan in [("0.parquet", plans[1]), ("0.parquet", plans[2]), ("", plans[0])]:
        with pytest.raises(DataError, match="other answers than the plan asks for"):
            sdp.estimate(tmp_path / path, plan)


@pytest.mark.parametrize("kept", [[0.25, 0.75], [1.0, 2.5]])
def test_fractions_are_no_reports(tmp_path, kept):
    plan = sdp.plan(sdp.Mean(0, 1), num_users=9, epsilon0=2.0, delta=1e-6, randomizer="piecewise")
    pl.DataFrame({"report": [1.0, 2.0]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"report": kept}).write_parquet(tmp_path / "b.parquet")
    (whole,) = open_reports(tmp_path / "a.parquet", plan=plan).blocks()
    assert whole.data.tolist() == [1, 2]
    with pytest.raises(DataError, match="that the plan's randomizer never makes"):
        list(open_reports(tmp_path / "b.parquet", plan=plan).blocks())


def test_reports_of_a_simulation_beside_others_are_refused(tmp_path):
    randomizer, reports = randomized(KINDS["frequencies"], "k-rr")
    for by in ("table", "simulation"):
        write_reports(tmp_path / f"{by}.parquet", [reports], randomizer, collected_by=by)
    with pytest.raises(
        DataError,
        match=r"table.parquet holds reports collected by table, "
        r"simulation.parquet reports collected by simulation",
    ):
        list(open_reports(tmp_path).blocks())


def test_a_foreign_table_is_refused():
    frame = pl.DataFrame({"answer": [1, 2]})
    with pytest.raises(DataError, match=r"no column 'report' \(its columns: answer\)"):
        from_frame(ArrowOnly(frame), fingerprint="f")


def test_nulls_are_refused():
    with pytest.raises(DataError, match="has 1 rows without a report"):
        from_frame(pl.DataFrame({"report": [1, None]}), fingerprint="f")


@pytest.mark.parametrize(
    "report",
    [
        pl.Series([[1, None]], dtype=pl.Array(pl.UInt8, 2)),  # a null inside
        pl.Series([[1], [1, 2]], dtype=pl.List(pl.UInt8)),  # ragged
        pl.Series(["yes", "no"]),
        pl.Series([300.5]),
        pl.Series([{"a": 1}]),
    ],
)
@pytest.mark.parametrize(
    "randomizer",
    [
        sdp.randomizers.KRandomizedResponse(domain_size=3, epsilon0=1.0),
        sdp.randomizers.SymmetricUnaryEncoding(domain_size=12, epsilon0=1.0),
    ],
    ids=["k-rr", "symmetric-unary"],
)
def test_columns_of_other_types_are_refused_by_the_randomizer(report, randomizer):
    with pytest.raises(ShuffledpError):
        randomizer.aggregate(
            from_frame(report.alias("report").to_frame(), fingerprint=randomizer.fingerprint)
        )


def test_a_foreign_file_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    frame = pl.DataFrame({"report": [1, 2]})
    for metadata in (
        None,
        {"shuffledp": "no json"},
        {"shuffledp": "[]"},
    ):
        frame.write_parquet(path, metadata=metadata)
        with pytest.raises(DataError, match=r"a\.parquet does not say which law"):
            open_reports(path)


def test_what_is_no_parquet_is_refused(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        open_reports(tmp_path / "absent.parquet")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 this is none PAR1")
    with pytest.raises(DataError, match=r"a\.parquet"):
        open_reports(tmp_path / "a.parquet")


def test_a_folder_that_cannot_be_is_an_output_error(tmp_path):
    randomizer, reports = randomized(KINDS["frequencies"], "k-rr")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        write_reports(tmp_path / "file" / "a.parquet", [reports], randomizer)


def test_an_interruption_leaves_the_older_file_and_no_other(tmp_path, monkeypatch):
    randomizer, reports = randomized(KINDS["frequencies"], "k-rr")
    path = tmp_path / "a.parquet"
    write_reports(path, [reports], randomizer)
    whole = path.read_bytes()

    def half(_frame, target, **_how):
        target.write_bytes(whole[:100])
        raise KeyboardInterrupt

    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", half)
    with pytest.raises(KeyboardInterrupt):
        write_reports(path, [reports], randomizer)
    assert [each.name for each in tmp_path.iterdir()] == ["a.parquet"]
    assert path.read_bytes() == whole


def test_only_randomized_response_writes_labels(tmp_path):
    # Codes of other randomizers are hashes or subsets, which name no answer.
    question = KINDS["frequencies"].question
    for name in question.candidates():
        randomizer, reports = randomized(KINDS["frequencies"], name)
        path = tmp_path / f"{name}.parquet"
        reports_writer(path, SimpleNamespace(question=question, randomizer=randomizer))([reports])
        assert (pl.read_parquet_schema(path)["report"] == pl.Enum(DOMAIN)) == (name == "k-rr")


def test_blocks_follow_one_another(tmp_path):
    kind = KINDS["frequencies"]
    randomizer, reports = randomized(kind, "k-rr")
    cuts = [0, 3, 4, len(reports.data)]
    blocks = [
        Reports(data=reports.data[start:stop], fingerprint=reports.fingerprint)
        for start, stop in pairwise(cuts)
    ]
    path = tmp_path / "reports.parquet"
    write_reports(path, blocks, randomizer)
    assert pl.read_parquet(path)["report"].to_list() == reports.data.tolist()


# ------------------------------------------------------------------ files of other programs


@pytest.fixture
def asked():
    return sdp.plan(sdp.Categories(DOMAIN), num_users=300, epsilon=1.0, delta=1e-6)


def drawn_by(plan, num_users):
    codes = np.arange(num_users) % len(plan.domain)
    return plan.randomizer.randomize(codes, Entropy.from_seed(5))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_labels_from_elsewhere_are_estimated_as_they_arrived(tmp_path, asked, suffix):
    reports = drawn_by(asked, 300)
    frame = pl.DataFrame({"report": [DOMAIN[code] for code in reports.data]})
    path = tmp_path / f"a.{suffix}"
    frame.write_csv(path) if suffix == "csv" else frame.write_parquet(path)
    found, same = sdp.estimate(path, asked), sdp.estimate(reports, asked)
    assert found.to_json_dict() == same.to_json_dict()
    assert found.num_users == 300
    assert open_reports(path, plan=asked).fingerprint == asked.randomizer.fingerprint


@pytest.mark.parametrize("name", ["symmetric-unary", "hadamard-response", "subset-selection"])
def test_encoded_reports_from_elsewhere(tmp_path, name):
    plan = sdp.plan(
        sdp.Categories(range(12)), num_users=3000, epsilon=1.0, delta=1e-6, randomizer=name
    )
    reports = drawn_by(plan, 3000)
    pl.DataFrame({"report": reports.data.tolist()}).write_parquet(tmp_path / "a.parquet")
    found = sdp.estimate(tmp_path / "a.parquet", plan).estimates
    assert (found.frequency == sdp.estimate(reports, plan).estimates.frequency).all()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_reports_of_every_kind_of_question_from_elsewhere(tmp_path, kind):
    plan = sdp.plan(kind.question, num_users=NUM_USERS, epsilon=1.0, delta=1e-6)
    values = next(kind.question.column(kind.values).blocks())
    reports = plan.randomizer.randomize(values, Entropy.from_seed(2))
    frame = to_frame(reports, labels=plan.domain if plan.randomizer.name == "k-rr" else None)
    frame.write_parquet(tmp_path / "a.parquet")
    found = sdp.estimate(str(tmp_path / "a.parquet"), plan).estimates
    same = sdp.estimate(reports, plan).estimates
    assert (found.standard_error == same.standard_error).all()


def test_rows_without_a_report_and_reports_that_are_none(tmp_path, asked):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"report": [*DOMAIN, None] * 100}).write_parquet(path)
    with pytest.raises(DataError, match=r"has 100 rows without a report.*missing='drop'"):
        sdp.estimate(path, asked)
    assert sdp.estimate(path, asked, missing="drop").num_users == 300
    pl.DataFrame({"report": ["maybe"] * 300}).write_parquet(path)
    with pytest.raises(DataError, match="that the plan's randomizer never makes"):
        sdp.estimate(path, asked, missing="drop")
    pl.DataFrame({"answer": ["yes"]}).write_parquet(path)
    with pytest.raises(DataError, match="has no column 'report'"):
        sdp.estimate(path, asked)
    with pytest.raises(DataError, match="no such file"):
        sdp.estimate(tmp_path / "none.csv", asked)


def test_packed_bits_in_bytes_are_read_as_those_in_lists(tmp_path):
    plan = sdp.plan(
        sdp.Categories([f"answer {number}" for number in range(20)]),
        num_users=500, epsilon0=2.0, delta=1e-8, randomizer="symmetric-unary",
    )  # fmt: skip
    drawn = plan.randomizer.randomize(np.arange(500) % 20, Entropy.from_seed(1))
    rows = [row.tobytes() for row in drawn.data]  # as Apache Spark stores them
    path = tmp_path / "reports.parquet"
    pl.DataFrame({"report": rows}).write_parquet(path)
    assert sdp.estimate(path, plan).to_json_dict() == sdp.estimate(drawn, plan).to_json_dict()
    pl.DataFrame({"report": [*rows, rows[0] + b"\0"]}).write_parquet(path)
    with pytest.raises(DataError, match=r"1 rows .* never makes"):
        sdp.estimate(path, plan)
