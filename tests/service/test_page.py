"""The page in a real browser: log in, submit, watch, cancel, read why one waits."""

from __future__ import annotations

import shutil

import pytest

from live_service import service_of_module

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")

HOSTILE = "<img src=x onerror=document.title='gone'>"


service = service_of_module()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=BROWSER, args=flags)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, service):
    """A page of a context of its own, which may ask no other host."""
    context = browser.new_context(base_url=service.address)
    page = context.new_page()
    said, hosts = [], set()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    page.said = said
    yield page
    context.close()
    assert hosts == {service.address.removeprefix("http://")}


def says(page, selector, text):
    from playwright.sync_api import expect

    expect(page.locator(selector)).to_contain_text(text, timeout=20_000)


def rows(page, number):
    from playwright.sync_api import expect

    expect(page.locator("#jobs tbody tr")).to_have_count(number, timeout=20_000)


def enter(page, secret):
    page.goto("/")
    page.fill("#token", secret)
    page.click("#enter button")
    page.wait_for_selector("#inside:not([hidden])")
    says(page, "#headline", "cpu")


def test_a_wrong_token_opens_nothing_and_says_so(page):
    page.goto("/")
    page.fill("#token", "foresail_wrong")
    page.click("#enter button")
    says(page, "#refused", "token")
    says(page, "#refused", "opens nothing")
    assert page.is_hidden("#inside")


def test_a_job_is_submitted_watched_and_read(page, service):
    enter(page, service.token("ann", "user"))
    page.keyboard.press("n")
    page.fill("#submit input[name=command]", "echo $((40 + 2)); sleep 0.3")
    page.fill("#submit input[name=name]", "answer")
    page.keyboard.press("Enter")
    says(page, "#submit-says", "accepted")
    page.select_option("#state", "done")
    page.wait_for_selector("#jobs .completed", timeout=20_000)
    page.click("#jobs button.link")
    says(page, "#output", "42")
    says(page, "#story", "Started after")
    assert page.is_disabled("#cancel")
    page.keyboard.press("Escape")
    assert page.is_hidden("#one")
    assert page.said == []


def test_one_waits_says_why_and_is_cancelled_as_is_the_one_that_runs(page, service):
    with service.client(service.token("bob", "user")) as client:
        wide = {"command": "sleep 300", "cpus": 2, "name": "wide", "requested_time": "10min"}
        jobs = [client.post("/v1/jobs", json=wide).json()["jobs"][0]["job_id"] for _ in range(2)]
    enter(page, service.token("bob", "user"))
    page.wait_for_selector("#jobs .running")
    page.wait_for_selector("#jobs .pending")
    page.wait_for_selector("#jobs svg .likely")
    says(page, "#jobs", "goes first: EASY would have come to it")
    page.wait_for_selector("#plan .waits")
    assert page.locator("#plan .runs").count() == 1
    for job_id in reversed(jobs):
        page.click(f"[data-job='{job_id}']")
        page.wait_for_selector("#cancel:enabled")
        page.click("#cancel")
        says(page, "#facts", "cancelled")
    rows(page, 0)
    says(page, "#story", "Cancelled while it ran")
    assert page.said == []


def test_a_job_is_held_and_released(page, service):
    with service.client(service.token("eve", "user")) as client:
        client.post("/v1/jobs", json={"command": "echo free", "held": True})
    enter(page, service.token("eve", "user"))
    page.click("#jobs button.link")
    page.wait_for_selector("#release:enabled")
    says(page, "#facts", "held by eve until it is released")
    page.click("#release")
    says(page, "#output", "free")


def test_others_jobs_are_bars_without_names(page, service):
    with service.client(service.token("carl", "user")) as client:
        job = client.post("/v1/jobs", json={"command": "sleep 60", "name": "secret"}).json()
        enter(page, service.token("dora", "user"))
        page.wait_for_selector("#plan .runs")
        assert "secret" not in page.content()
        assert page.locator("#jobs tbody tr").count() == 0
        client.post(f"/v1/jobs/{job['jobs'][0]['job_id']}/cancel")


def test_what_is_hostile_is_text(page, service):
    with service.client() as client:
        client.post("/v1/jobs", json={"command": HOSTILE, "held": True})
    enter(page, service.admin_token)
    page.fill("#user", "admin")
    page.keyboard.press("Enter")
    page.click("#jobs button.link")
    says(page, "#facts", "onerror")
    assert page.title() == "Foresail"
    assert page.locator("img").count() == 0


def test_thousands_of_jobs_are_shown_a_page_at_a_time(page, service):
    many = service.token("many", "user")
    with service.client(many) as client:
        body = {"command": "true", "array": "0-9999", "held": True}
        assert client.post("/v1/jobs", json=body).status_code == 201
    enter(page, many)
    rows(page, 50)
    assert page.evaluate("document.querySelectorAll('*').length") < 3_000
    page.click("#older")
    page.wait_for_selector("[data-job$='_50']")
    page.click("#newer")
    page.wait_for_selector("[data-job$='_0']")
    with service.client(many) as client:
        first = client.get("/v1/jobs", params={"limit": 1}).json()["jobs"][0]["job_id"]
        client.post(f"/v1/jobs/{first.partition('_')[0]}/cancel")


def problems(page):
    """What axe finds wrong for people who cannot see well, or use no mouse."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in found]


def test_a_long_queue_begins_with_what_runs_and_is_next_and_axe_finds_nothing(page, service):
    """5,000 that wait: no cell is empty; in a narrow window the forecast stays in sight."""
    crowd = service.token("crowd", "user")
    with service.client(crowd) as client:
        body = {"command": "sleep 60", "array": "0-4999", "requested_time": 90, "cpus": 2}
        array = client.post("/v1/jobs", json=body).json()["jobs"][0]["job_id"].partition("_")[0]
    page.goto("/")
    assert problems(page) == []
    enter(page, crowd)
    page.wait_for_selector("#jobs .running", timeout=30_000)
    page.wait_for_selector("#jobs svg .likely", timeout=90_000)
    states = page.locator("#jobs tbody .state").all_text_contents()
    assert states == sorted(states, key=["running", "pending"].index)
    assert len(states) == 50
    assert all(page.locator("#jobs tbody .starts").all_text_contents())
    assert all(page.locator("#jobs tbody tr:has(.pending) .why").all_text_contents())
    page.wait_for_selector("#plan .waits")
    page.keyboard.press("n")
    assert problems(page) == []
    page.locator("#jobs button.link").nth(1).click()
    page.wait_for_selector("#facts dd")
    page.emulate_media(color_scheme="dark")
    assert problems(page) == []
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 400, "height": 800})
    box = page.locator("#jobs .starts").nth(1).bounding_box()
    assert box["x"] + box["width"] <= 400
    assert "in " in page.locator("#jobs .starts").nth(1).inner_text()
    assert problems(page) == []
    assert page.said == []
    with service.client(crowd) as client:
        client.post(f"/v1/jobs/{array}/cancel")


def test_a_job_is_asked_for_in_full(page, service):
    """Memory, an array, a folder, variables: as the form says; what is no variable is refused."""
    enter(page, service.token("fay", "user"))
    page.keyboard.press("n")
    asked = {
        "command": "pwd; echo $COLOUR",
        "memory": "100MiB",
        "array": "3-4",
        "directory": "/tmp",
    }
    for name, value in asked.items():
        page.fill(f"#submit input[name={name}]", value)
    page.fill("#submit textarea", "COLOUR")
    page.click("#submit button")
    says(page, "#submit-says", "COLOUR is no variable")
    page.fill("#submit textarea", "COLOUR=a=b")
    page.click("#submit button")
    says(page, "#submit-says", "2 jobs")
    page.select_option("#state", "done")
    page.wait_for_selector("#jobs .completed", timeout=20_000)
    page.click("#jobs button.link")
    says(page, "#output", "/tmp")
    says(page, "#output", "a=b")
    assert page.said == []


def test_it_is_dark_or_light_as_asked_and_everything_is_named(page, service):
    page.emulate_media(color_scheme="dark")
    enter(page, service.admin_token)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light == "rgb(255, 255, 255)"
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, input, select')]
        .filter((each) => !each.textContent.trim() && !each.labels?.length).length"""
    )
    assert nameless == 0
    page.wait_for_selector("#plan svg > title", state="attached")  # the plan comes by itself
    titles = page.locator("#plan svg > title").all_text_contents()
    assert "cpus held by" in titles[0]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")


def test_it_says_that_the_service_is_away_and_goes_on_when_the_token_is_revoked(page, service):
    with service.client() as admin:
        brief = admin.post("/v1/tokens", json={"user": "brief", "role": "user"}).json()
        enter(page, brief["secret"])
        admin.delete(f"/v1/tokens/{brief['token_id']}")
    page.wait_for_selector("#enter:not([hidden])", timeout=20_000)
    says(page, "#refused", "not open this any more")
