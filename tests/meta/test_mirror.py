"""`tests/` mirrors `src/`: a file with more than 60 lines of code has its own file of tests."""

from pathlib import Path

from meta.test_size_limits import code_lines

TESTS = Path(__file__).parents[1]
SOURCES = TESTS.parent / "src" / "shuffledp"

LONG = 60

# Where tests of a file stand that has none of its own.
ELSEWHERE = {
    "collection/cautions.py": "collection/test_plan.py",
    "collection/counting.py": "collection/test_local.py",
    "collection/questions/__init__.py": "collection/test_questions.py",
    "collection/questions/answer_sets.py": "collection/test_questions.py",
    "collection/questions/categories.py": "collection/test_questions.py",
    "collection/questions/columns.py": "collection/test_columns.py",
    "collection/questions/distribution.py": "collection/test_distributions.py",
    "collection/questions/mean.py": "collection/test_bit_sums.py",
    "collection/questions/mean_by_group.py": "collection/test_mean_by_group.py",
    "collection/questions/question.py": "collection/test_questions.py",
    "collection/questions/rounds.py": "deploy/test_search_tasks.py",
    "collection/questions/vector_mean.py": "collection/test_questions.py",
    "core/labels.py": "collection/source/test_tables.py",
    "deploy/web/pages.py": "deploy/web/test_survey.py",
    "engines/spark_blocks.py": "engines/test_spark.py",
    "groups/shuffling.py": "end_to_end/test_cli_run_groups.py",
    "monitoring/comparison.py": "monitoring/test_plan.py",
    "randomizers/base.py": "contracts",
    "report/network.py": "report/test_groups_and_network.py",
    "report/wording.py": "report/test_finding_first.py",
    "testing/collecting.py": "contracts",
    "testing/law.py": "contracts",
}


def without_tests(sources, tests):
    """Return the long files that have no tests of their own, by their paths.

    Commands are tested from end to end, and compiled kernels through what calls them.
    """
    for path in sorted(sources.rglob("*.py")):
        place = path.relative_to(sources)
        if place.parts[0] == "cli" or path.stem.endswith("_kernels"):
            continue
        is_long = len(code_lines(path.read_text(encoding="utf-8"))) > LONG
        if is_long and not list((tests / place.parent).glob(f"test_{path.stem}*.py")):
            yield place.as_posix()


def test_every_long_file_has_its_tests():
    assert set(without_tests(SOURCES, TESTS)) <= set(ELSEWHERE)


def test_the_exceptions_are_files_and_their_tests_are_there():
    for place in ELSEWHERE.values():
        assert (TESTS / place).exists(), place


def test_a_planted_file_without_tests_is_found(tmp_path):
    (tmp_path / "long.py").write_text("x = 1\n" * (LONG + 1))
    (tmp_path / "short.py").write_text("x = 1\n" * LONG)
    assert list(without_tests(tmp_path, TESTS)) == ["long.py"]
