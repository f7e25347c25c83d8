"""Browser settings by RAPPOR: which home pages are common, when nobody reveals theirs, even over a year of reports.

Run it with ``.venv/bin/python examples/browser_settings.py``; it takes some seconds and needs no data.

Every browser remembers one noisy Bloom filter of its home page and reports it, disguised anew, day after day. As long
as the page stays the same, whoever sees all reports of a person has learned no more than epsilon = 4 allows; one report
alone is worth about 1. When a page changes is not protected.
"""

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from defocus import local

PAGES = ["news", "search", "mail", "weather", "bank", "forum", "games", "school", "adware-a", "adware-b"]
SHARES = [0.30, 0.25, 0.15, 0.10, 0.07, 0.05, 0.04, 0.025, 0.01, 0.005]
BROWSERS = 50_000
EPSILON = 4
DESIGN = local.Rappor(local.Categories.of(PAGES), EPSILON, width=64, hashes=2, cohorts=16)


def collect(browsers: int = BROWSERS) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], local.Estimate]:
    """One day: every browser sends one report; the server knows the candidates and the cohort of each report."""
    asked = local.Oracle(DESIGN)
    pages = np.random.default_rng(0).choice(len(PAGES), size=browsers, p=SHARES)
    reports = asked.encode([PAGES[i] for i in pages])
    return np.bincount(pages, minlength=len(PAGES) + 1), asked.estimate(reports)  # the last page is any other


def one_browser(days: int = 365) -> tuple[int, float, float]:
    """A year of one browser: how many different reports it sent, what one of them cost and what all of them cost."""
    browser = local.Memory(DESIGN)
    sent = {browser.report("news") for _ in range(days)}
    return len(sent), DESIGN.report_epsilon, float(DESIGN.epsilon)


def main() -> None:
    """Print both."""
    true, estimate = collect()
    table = Table(title=f"home pages of {BROWSERS:,} browsers, estimated by RAPPOR", box=box.SIMPLE_HEAD)
    for name in ("page", "true", "estimated", "standard error"):
        table.add_column(name, justify="left" if name == "page" else "right")
    for i, page in enumerate(PAGES):
        table.add_row(page, str(true[i]), f"{estimate.counts[i]:.0f}", f"{estimate.errors[i]:.0f}")
    console = Console()
    console.print(table)
    different, one, all_of_them = one_browser()
    console.print(
        f"One browser sent {different} different reports in a year. One of them costs epsilon = {one:.2f}, "
        f"all of them together {all_of_them:g}, as long as the page stays the same."
    )


if __name__ == "__main__":
    main()
