"""A browser that waits as long as it takes; contexts are told so by those who open them."""

import pytest

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
