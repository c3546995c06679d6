"""A browser that waits as long as it takes (contexts are told so), and the UCI Adult census."""

from pathlib import Path

import polars as pl
import pytest

# Read where it lies, outside of this repository.
ADULT = Path(__file__).parents[3] / "shared" / "data" / "adult.data"
COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours",
    "native_country",
    "income",
]

_HANGING_MILLISECONDS = 600_000.0
_FLAGS = (
    "--no-sandbox",  # tests may run as root in a container; the pages are our own files
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser(chromium_executable):
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=_HANGING_MILLISECONDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_executable,
            args=list(_FLAGS),
            timeout=_HANGING_MILLISECONDS,
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def census(tmp_path_factory):
    """Return the census as a file with a header, and as a frame."""
    if not ADULT.exists():
        pytest.skip("the UCI Adult census is not on this machine")
    frame = pl.read_csv(ADULT, has_header=False, new_columns=COLUMNS).drop_nulls()
    frame = frame.with_columns(pl.col(pl.String).str.strip_chars())
    frame = frame.with_columns(pl.col("age", "hours").cast(pl.Int64))
    path = tmp_path_factory.mktemp("adult") / "adult.csv"
    frame.write_csv(path)
    return path, frame
