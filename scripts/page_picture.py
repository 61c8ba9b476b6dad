"""A picture of the service's page: ``page_picture.py ADDRESS FILE``; the token is FORESAIL_TOKEN.

Needs Playwright and a Chromium, and says so where one is missing.
"""

from __future__ import annotations

import os
import shutil
import sys

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main(address: str, path: str) -> int:
    """Log in, wait until jobs are shown, and write the picture; returns the exit status."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        browser = None
    if browser is None:
        print("no picture of the page: that needs Playwright and a Chromium")
        return 1
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        launched = playwright.chromium.launch(executable_path=browser, args=flags)
        page = launched.new_page(base_url=address, viewport={"width": 1280, "height": 900})
        page.goto("/")
        page.fill("#token", os.environ["FORESAIL_TOKEN"])
        page.click("#enter button")
        page.wait_for_selector("#plan svg")
        page.select_option("#state", "")
        page.wait_for_selector("#jobs tbody tr")
        page.wait_for_timeout(500)
        page.screenshot(path=path, full_page=True)
        launched.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
