"""Apache Spark: the same reports and results as on one machine, whatever it runs again."""

import json

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.cli.main import main
from shuffledp.core.entropy import Entropy, derived_key
from shuffledp.core.errors import DataError, DomainError, MissingPackageError, ParameterError
from shuffledp.engines import spark, spark_blocks

pytestmark = pytest.mark.filterwarnings("ignore")  # pyspark's own, of its sockets and pandas

NUM_USERS = 3000
LABELS = [f"answer {number}" for number in range(20)]
SEED = 3


def plan_of(randomizer=None, **how):
    how = {"num_users": NUM_USERS, "epsilon0": 2.0, "delta": 1e-8, **how}
    return sdp.plan(sdp.Categories(LABELS), randomizer=randomizer, **how)


@pytest.fixture(scope="module")
def session(start_spark, tmp_path_factory):
    return start_spark("local[1]", tmp_path_factory.mktemp("spark"))


def frame_of(session, num_rows=NUM_USERS, partitions=3):
    text = "concat('answer ', cast(id % 20 as string)) as value"
    return session.range(num_rows, numPartitions=partitions).selectExpr("id", text)


def reports_in(frame):
    return sorted(row[0] for row in frame.collect())


def on_one_machine(plan, values, key, ids=None):
    """Return the reports of the same rows under the same key, in one block."""
    ids = np.arange(len(values)) if ids is None else ids
    entropy = Entropy.from_key(derived_key(key, b"rows", 0))
    return plan.randomizer.randomize(np.asarray(values)[np.argsort(ids)], entropy)


def key_of(seed):
    return Entropy.from_seed(seed).words(4).tobytes()


def placed(session, key, num_rows, num_blocks, path):
    """Yield each block that Spark forms of the ids 0, 1, ..., and its ids in their order."""
    from pyspark.sql import functions

    salt = int.from_bytes(derived_key(key, b"blocks", 0)[:8], "big", signed=True)
    hashed = functions.xxhash64(functions.col("id"), functions.lit(salt))
    block = functions.pmod(hashed, functions.lit(num_blocks)).cast("int")
    session.range(num_rows).select("id", block.alias("block")).write.parquet(str(path))
    rows = pl.read_parquet(path / "*.parquet").sort("block", "id")
    numbers, starts = np.unique(rows["block"].to_numpy(), return_index=True)
    yield from zip(numbers.tolist(), np.split(rows["id"].to_numpy(), starts[1:]), strict=True)


def test_a_run_has_the_reports_and_the_result_of_one_machine(session, tmp_path):
    """The one job of the quick tests: randomize, count, shuffle, store, count again."""
    plan, stored = plan_of(), []
    kept = tmp_path / "reports"

    def store(frame):
        stored.append(frame.rdd.getNumPartitions())
        frame.write.parquet(str(kept))

    found = spark.run(frame_of(session), "value", plan, id_column="id", seed=SEED, sink=store)
    wanted = on_one_machine(plan, np.arange(NUM_USERS) % 20, key_of(SEED))
    assert found.num_users == NUM_USERS
    assert found.collected_by == "simulation"
    assert found.estimates.count == pytest.approx(sdp.estimate(wanted, plan).estimates.count)
    assert stored == [1]
    again = sdp.spark.estimate(session.read.parquet(str(kept)), plan)
    here = sdp.estimate(kept, plan)
    assert again.to_json_dict() == here.to_json_dict()
    assert here.is_simulation  # as the files say
    assert again.to_json_dict()["estimates"] == found.to_json_dict()["estimates"]
    # Sorted within a file: nothing of the order in which the rows were.
    (file,) = kept.glob("*.parquet")
    texts = pl.read_parquet(file)["report"].to_list()
    assert texts == sorted(LABELS[code] for code in wanted.data)


@pytest.mark.slow
def test_what_cannot_be_randomized_is_refused_before_it_is(session):
    plan, rows = plan_of(), frame_of(session, 300)

    def refused(frame, error, message, **how):
        with pytest.raises(error, match=message):
            spark.randomize(frame, "value", plan, **{"id_column": "id", **how})

    refused(rows, ParameterError, "id_column is missing", id_column=None)
    refused(rows, DataError, "no column 'key'.*id, value", id_column="key")
    refused(rows.selectExpr("double(id) as id", "value"), ParameterError, "of type double")
    refused(rows.selectExpr("nullif(id, 7) as id", "value"), DataError, "null in 1 of 300 rows")
    twice = rows.union(rows.where("id = 5"))
    refused(twice, DataError, "1 ids that were there before")
    refused(rows.selectExpr("id % 9 as id", "value"), DataError, "about 9 different ids in 300")
    missing = rows.selectExpr("id", "if(id = 7, null, value) as value")
    refused(missing, DataError, "without an answer")
    refused(rows.selectExpr("id", "'what?' as value"), DomainError, "outside the domain")
    refused(rows.where("id < 0"), DataError, "0 rows")
    refused(rows, ParameterError, "clip=", clip=True)
    refused("a table", ParameterError, "frame is a builtins.str")
    assert spark.randomize(missing, "value", plan, id_column="id", missing="drop").count() == 299
    reading = {"missing": "drop"}
    found = spark.run(missing, "value", plan, id_column="id", reading=reading)
    assert any(each.startswith("Dropped: 1 row without an answer") for each in found.warnings)
    assert any("covers the other 299 users" in each for each in found.guarantee.bound.assumptions)
    with pytest.raises(DataError, match="no column 'report'"):
        spark.estimate(rows, plan)
    with pytest.raises(DataError, match="never makes"):
        spark.estimate(rows.selectExpr("concat('x', id) as report"), plan)
    with pytest.raises(DataError, match="0 reports"):
        spark.estimate(rows.selectExpr("value as report").where("false"), plan)


@pytest.mark.slow
def test_a_block_may_be_without_users(session, monkeypatch):
    """Of 20 rows in up to 20 blocks: whoever stays alone in a block, or leaves it, is no error."""
    monkeypatch.setattr(spark_blocks, "_ROWS_A_BLOCK", 1)
    rows = frame_of(session, 20).selectExpr("id", "if(id % 3 = 0, null, value) as value")
    made = spark.randomize(rows, "value", plan_of(), id_column="id", seed=SEED, missing="drop")
    assert made.count() == 13
    everybody = spark.randomize(frame_of(session, 20), "value", plan_of(), id_column="id")
    assert everybody.count() == 20
    with pytest.raises(DataError, match="1 rows with a value"):
        spark.randomize(rows.where("id < 2"), "value", plan_of(), id_column="id", missing="drop")


@pytest.mark.slow
def test_names_of_columns_are_told_apart_or_refused(session):
    plan, rows = plan_of(), frame_of(session, 300)
    for other in ("value", "VALUE", "ID"):
        twice = rows.selectExpr("id", "value", f"value as {other}")
        with pytest.raises(DataError, match=f"cannot tell .* {other}\\): rename one"):
            spark.randomize(twice, "value", plan, id_column="id")
    with pytest.raises(DataError, match="cannot tell column 'report'"):
        spark.estimate(rows.selectExpr("value as report", "id as Report"), plan)
    for name in ("__id", "__block", "a.b", "a`b"):
        named = rows.toDF("id", name)
        assert spark.randomize(named, name, plan, id_column="id").count() == 300


def test_java_has_to_be_there_and_new_enough(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingPackageError, match=r"JAVA_HOME = .* has no Java: install"):
        spark.require_java()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019' >&2\n")
    java.chmod(0o755)
    with pytest.raises(MissingPackageError, match=r"17 or newer, .* has Java 11"):
        spark.require_java()


@pytest.mark.slow
def test_the_commands_run_and_estimate_on_spark(session, tmp_path, monkeypatch, capsys):
    assert session
    monkeypatch.chdir(tmp_path)
    people = pl.DataFrame(
        {"id": range(NUM_USERS), "value": [LABELS[i % 20] for i in range(NUM_USERS)]}
    )
    people.write_parquet("people.parquet")
    plan_of().save("plan.json")
    on_spark = ["--plan", "plan.json", "--engine", "spark", "--json"]
    collect = ["run", "people.parquet", "--column", "value", *on_spark, "--save-reports"]
    assert main([*collect, "--out", "no"]) == 2
    assert "give --id, a primary key" in capsys.readouterr().err
    assert main([*collect, "--id", "id", "--out", "run"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["num_users"], found["collected_by"]) == (NUM_USERS, "table")
    said = str(found["guarantee"])
    assert "Each id is one person" in said
    assert "trusted" in said
    for how in (on_spark, [*on_spark[:2], "--json"]):
        assert main(["estimate", "run/reports.parquet", *how, "--out", f"{len(how)}"]) == 0
        again = json.loads(capsys.readouterr().out)
        assert again["estimates"] == found["estimates"]
        assert again["collected_by"] == "table"
    assert main([*collect, "--id", "id", "--dishonest", "3", "--out", "no"]) == 2
    assert main([*collect, "--processes", "2", "--out", "no"]) == 2
    assert main(["estimate", "x", "--plan", "plan.json", "--out", "no", "--engine", "spark"]) == 2
    (tmp_path / "folder").mkdir()
    people.write_csv("people.csv")
    (tmp_path / "junk.parquet").write_text("junk")
    for table, said in {
        "people.csv": "convert it to Parquet",
        "folder": "holds no file",
        "junk.parquet": "Spark stopped at junk.parquet: java.lang.RuntimeException",
    }.items():
        assert main(["run", table, *collect[2:], "--id", "id", "--out", "no"]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


# ------------------------------------------------------------------ slow: all kinds of reports
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["symmetric-unary", "optimized-unary", "optimized-local-hashing", "hadamard-response",
             "subset-selection"],
)  # fmt: skip
def test_every_kind_of_report_passes_through(session, name, tmp_path):
    plan = plan_of(name)
    reports = spark.randomize(frame_of(session), "value", plan, id_column="id", seed=SEED)
    drawn = on_one_machine(plan, np.arange(NUM_USERS) % 20, key_of(SEED))
    path = tmp_path / "reports.parquet"
    sdp.collection.write_reports(path, [drawn], plan.randomizer, collected_by="simulation")
    wanted = sdp.estimate(path, plan).to_json_dict()
    assert spark.estimate(reports, plan).to_json_dict() == wanted
    assert spark.estimate(spark.shuffle(reports, num_files=2), plan).to_json_dict() == wanted
    # As files of one machine hold them, whose origin Spark does not read.
    alike = spark.estimate(session.read.parquet(str(path)), plan).to_json_dict()
    assert alike == sdp.estimate(drawn, plan).to_json_dict()
    # As files of Spark are read on one machine, and by its workers.
    folder = tmp_path / "shuffled"
    spark.shuffle(reports, num_files=2).write.parquet(str(folder))
    for engine in (map, spark.Workers().map):
        assert sdp.estimate(folder, plan, engine=engine).to_json_dict() == wanted


@pytest.mark.slow
def test_reports_made_on_spark_name_their_law_and_origin(session, tmp_path):
    """In a frame, shuffled, and stored: a plan of less epsilon0 would promise less epsilon."""
    plan, other = plan_of(), plan_of(epsilon0=1.0)
    reports = spark.randomize(frame_of(session), "value", plan, id_column="id")
    spark.shuffle(reports).write.parquet(str(tmp_path / "kept"))
    stored = session.read.parquet(str(tmp_path / "kept"))
    for frame in (reports, spark.shuffle(reports), stored):
        assert spark.estimate(frame, plan).collected_by == "table"
        with pytest.raises(DataError, match="another law"):
            spark.estimate(frame, other)
    assert sdp.estimate(tmp_path / "kept", plan).collected_by == "table"
    with pytest.raises(ParameterError, match="another law"):
        sdp.estimate(tmp_path / "kept", other)
    with pytest.raises(DataError, match="pass the plan"):
        sdp.collection.open_reports(tmp_path / "kept")


@pytest.mark.slow
def test_what_is_wrong_in_a_file_is_said_by_workers_too(session, tmp_path):
    assert session
    pl.DataFrame({"report": ["what?"]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="never makes"):
        sdp.estimate(tmp_path, plan_of(), engine=spark.Workers().map)


@pytest.mark.slow
def test_each_block_has_the_reports_of_one_machine(session, monkeypatch, tmp_path):
    """Blocks as Spark forms them, each randomized here in the order of its ids."""
    monkeypatch.setattr(spark_blocks, "_ROWS_A_BLOCK", 100)
    plan, key = plan_of(), key_of(SEED)
    found = reports_in(spark.randomize(frame_of(session), "value", plan, id_column="id", seed=SEED))
    wanted = []
    for number, ids in placed(session, key, NUM_USERS, NUM_USERS // 100, tmp_path / "placed"):
        entropy = Entropy.from_key(derived_key(key, b"rows", number))
        wanted += [LABELS[code] for code in plan.randomizer.randomize(ids % 20, entropy).data]
    assert found == sorted(wanted)


@pytest.mark.slow
def test_numbers_vectors_and_texts(session):
    rows = session.range(2000, numPartitions=4).selectExpr("id", "id / 2000.0 as x", "0.5 as y")
    mean = sdp.plan(sdp.Mean(0, 1), num_users=2000, epsilon0=4.0, delta=1e-8)
    found = spark.run(rows, "x", mean, id_column="id", seed=SEED)
    (estimated,), (error,) = found.estimates.mean, found.estimates.standard_error
    assert abs(estimated - 0.5) < 7 * error
    vectors = sdp.VectorMean(["x", "y"], norm_bound=2.0)
    plan = sdp.plan(vectors, num_users=2000, epsilon0=8.0, delta=1e-8)
    found = spark.run(rows, None, plan, id_column="id", seed=SEED)
    assert (abs(found.estimates.mean - 0.5) < 7 * found.estimates.standard_error).all()


@pytest.mark.slow
def test_shuffled_reports_follow_from_their_multiset_alone(session, monkeypatch):
    monkeypatch.setattr(spark, "_EQUAL_ROWS", 100)
    codes = [number % 20 for number in range(1500)] + [7] * 1001

    def shuffled(order, partitions):
        rows = session.createDataFrame([(codes[place],) for place in order], "report int")
        found = spark.shuffle(rows.repartition(partitions), num_files=4)
        return [[row[0] for row in part] for part in found.rdd.glom().collect()]

    order = np.arange(len(codes))
    first = shuffled(order, 2)
    assert sorted(code for part in first for code in part) == sorted(codes)
    assert sum(part.count(7) > 0 for part in first) > 1  # many equal ones are in several files
    assert shuffled(Entropy.from_seed(1).generator().permutation(order), 7) == first
    # Control: an order by where rows were is told apart.
    assert shuffled(order[:-1], 2) != first
