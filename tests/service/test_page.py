"""The page in a real Chromium, against a real server process."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

import matchmill as mm
from matchmill.client import Client
from matchmill.errors import ExpressionError
from matchmill.language.expression import name_text
from tests.support.browser import Watched, chromium, tab
from tests.support.running_service import ServerProcess, new_key, running, wait_until

pytestmark = pytest.mark.slow


class Home(NamedTuple):
    address: str
    folder: Path
    browser: Any


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("page") / "served"
    with chromium() as browser, running(folder) as server:
        yield Home(server.address, folder, browser)


class Visit:
    """A tab that is signed in, and a client with the same key."""

    def __init__(self, watched: Watched, client: Client, key: str) -> None:
        self.watched = watched
        self.page = watched.page
        self.client = client
        self.key = key

    def sign_in(self) -> None:
        self.page.get_by_label("Key", exact=True).fill(self.key)
        self.page.keyboard.press("Enter")
        self.page.locator("#key-dialog").wait_for(state="hidden")

    def go(self, name: str) -> None:
        self.page.get_by_role("link", name=name, exact=True).click()

    def text(self, selector: str) -> str:
        found: str = self.page.locator(selector).inner_text()
        return found

    def wait_text(self, selector: str, text: str) -> None:
        self.page.locator(selector, has_text=text).wait_for()


@pytest.fixture
def visit(home: Home, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """Signed in with a key of a tenant that this test has for itself."""
    key = new_key(home.folder, tenant=request.node.name)
    client = Client(home.address, key=key)
    with client, tab(home.browser, home.address, viewport=DESKTOP) as watched:
        found = Visit(watched, client, key)
        found.sign_in()
        yield found


DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 375, "height": 740}


# -- the expression -------------------------------------------------------------------------------


def test_a_mistake_is_shown_at_its_place_as_one_types(visit: Visit) -> None:
    area = visit.page.locator("#expression")
    area.press_sequentially("price <= 580 and\ncolour = = 3")
    visit.page.locator("#expression-says .caret").wait_for()
    line, caret = visit.text("#expression-says .caret").split("\n")
    assert line == "colour = = 3"
    assert caret == " " * line.index("= 3") + "^"
    assert "a literal is expected after `=`" in visit.text("#expression-says .message")
    assert area.get_attribute("aria-invalid") == "true"
    mark = visit.page.locator("#write .mirror mark").first
    before = visit.page.evaluate("node => node.previousSibling.data", mark.element_handle())
    assert before == "price <= 580 and\ncolour = "
    area.fill("price <= 580 and colour = 3")
    visit.wait_text("#expression-says", "reads as price <= 580 and colour = 3")
    assert area.get_attribute("aria-invalid") == "false"
    assert visit.page.locator("#write .mirror mark").count() == 0


def test_places_count_characters(visit: Visit) -> None:
    """Python counts characters, browsers halves of them."""
    visit.page.locator("#expression").fill("'😀😀' = x and y = = 3")
    visit.page.locator("#expression-says .caret").wait_for()
    mark = visit.page.locator("#write .mirror mark").first
    assert visit.page.evaluate("node => node.previousSibling.data", mark.element_handle()) == (
        "'😀😀' = x and y = "
    )


def test_hints_are_shown(visit: Visit) -> None:
    with pytest.raises(ExpressionError) as raised:
        mm.parse("price = 'a\"")
    told = raised.value
    visit.page.locator("#expression").fill("price = 'a\"")
    visit.wait_text("#expression-says .message", told.message)
    assert visit.text("#expression-says .hint") == told.hint


def test_operators_and_attributes_are_inserted(visit: Visit) -> None:
    visit.page.get_by_text("Operators and attributes").click()
    visit.page.locator("#attributes").get_by_role("button", name="dep_delay").click()
    visit.page.locator("#operators").get_by_role("button", name="between 10 and 20").click()
    assert visit.page.locator("#expression").input_value() == "dep_delay between 10 and 20 "
    visit.wait_text("#expression-says", "reads as dep_delay between 10 and 20")
    names = ["first name", "in", "In.x", "größe", 'say "hi"', "a.b", "2nd", "_x"]
    visit.page.locator("#event").fill(json.dumps(dict.fromkeys(names, 1)))
    visit.wait_text("#attributes button", "_x")
    offered = visit.page.locator("#attributes button").all_inner_texts()
    assert {name_text(name) for name in names} <= set(offered)


def test_subscribing_shows_a_ticket_that_works(visit: Visit) -> None:
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.page.locator("#expression").fill("price < 10")
    visit.page.get_by_label("Id", exact=True).first.fill("u42")
    visit.page.get_by_label("Most per minute").fill("7")
    visit.page.get_by_role("button", name="Subscribe").click()
    ticket = visit.page.get_by_label("Ticket, shown only once").input_value()
    stored = visit.client.get("u42", ticket=ticket)
    assert (stored.expression, stored.max_per_minute) == ("price < 10", 7)
    visit.page.get_by_role("button", name="Copy").click()
    visit.page.get_by_role("button", name="Copied").wait_for()
    assert visit.page.evaluate("navigator.clipboard.readText()") == ticket


def test_what_the_service_rejects_is_shown(visit: Visit) -> None:
    visit.client.subscribe("taken", "x = 1")
    visit.page.locator("#expression").fill("x = 2")
    visit.page.get_by_label("Id", exact=True).first.fill("taken")
    visit.page.get_by_role("button", name="Subscribe").click()
    visit.wait_text("#expression-result.bad", "use another id")
    visit.watched.expect_rejection(409)
    visit.page.get_by_label("How many").first.fill("many")
    visit.page.get_by_role("button", name="Subscribe").click()
    visit.wait_text("#expression-result.bad", "must be a whole number")


def test_backtest(visit: Visit) -> None:
    visit.client.publish_many({"n": n} for n in range(30))
    visit.page.locator("#expression").fill("n < 12")
    visit.page.get_by_role("button", name="Backtest").click()
    visit.wait_text("#expression-result", "12 of the latest 30 events would have matched")


# -- the event ------------------------------------------------------------------------------------


def test_an_event_is_tried_and_explained(visit: Visit) -> None:
    visit.client.subscribe("cheap", "price <= 580 and origin = 'JFK'")
    visit.client.subscribe("dear", "price > 1000")
    visit.page.locator("#event").fill('{"price": 500, "origin": "JFK"}')
    visit.page.get_by_role("button", name="Find matches").click()
    visit.wait_text("#event-result", "1 subscription matches")
    visit.page.locator("#event-result").get_by_role("button", name="cheap").click()
    visit.wait_text("#explanation .verdict", "cheap matches")
    visit.page.get_by_label("Explain a subscription").fill("dear")
    visit.page.keyboard.press("Enter")
    visit.wait_text("#explanation .verdict", "dear does not match")
    assert "price is 500, needs > 1000 (500 too little)" in visit.text("#explanation .note")
    visit.page.locator("#expression").fill("price > 550 or (origin = 'LGA' and not late)")
    visit.page.get_by_role("button", name="Explain the expression").click()
    visit.page.locator("#explanation .leaf").nth(2).wait_for()  # not those of "dear" any more
    assert "does not match" in visit.text("#explanation .verdict")
    leaves = visit.page.locator("#explanation .leaf").all_inner_texts()
    assert [leaf.split("\n")[0] for leaf in leaves] == ["✗", "✗", "?"]


def test_whole_numbers_stay_exact(visit: Visit) -> None:
    visit.client.subscribe("exact", "n = 9007199254740993")
    visit.page.locator("#event").fill('{"n": 9007199254740993}')
    visit.page.get_by_role("button", name="Find matches").click()
    visit.wait_text("#event-result", "1 subscription matches")


def test_mistakes_in_an_event_are_shown(visit: Visit) -> None:
    visit.page.locator("#event").fill('{\n  "a": 1,\n  "b": \'x\'\n}')
    visit.page.locator("#event-says .caret").wait_for()
    assert visit.text("#event-says .caret").split("\n") == ["  \"b\": 'x'", "       ^"]
    visit.page.get_by_role("button", name="Find matches").click()
    visit.wait_text("#event-result.bad", "the event: a value is expected")


EVENT_TEXTS = [
    "{}", ' {"a": [1, 2.5e-3, null, true, {"b": "\\u00e9\\n"}]} ', '{"a": -0}', '{"a": ""}',
    "", "[]", "3", '{"a"}', '{"a": }', '{"a": 1,}', '{"a": 1 "b": 2}', '{"a": 01}', '{"a": 1.}',
    '{"a": +1}', '{"a": .5}', '{"a": NaN}', '{"a": "x}', '{"a": "\t"}', '{"a": "\\x"}', "{'a': 1}",
    '{"a": 1}}', '{"a": [1, 2}', '{"a": [1,]}', '{"a": {"b": 1, "b": 2}}', '{"a": 1, "a": 2}',
    '{"a": tru}', '{"a": 1e}', '{"a": "\\u12"}', "{", '{"a"', '{"a":', '{"a": [',
]  # fmt: skip


def test_events_are_judged_as_the_service_does(visit: Visit) -> None:
    program = "texts => import('/exact_json.js').then(m => texts.map(t => m.mistake(t) === null))"
    texts = [*EVENT_TEXTS, *damaged_texts(500)]
    expected = [is_event(text) for text in texts]
    assert visit.page.evaluate(program, texts) == expected
    assert sum(expected) > 50


def damaged_texts(n_texts: int) -> Iterator[str]:
    """An event with a character or two more, less, or changed."""
    rng = Random(5)
    whole = '{"a": [1, -2.5e3, "x\\n"], "b": {"c": null, "d": true}, "e": ""}'
    for _ in range(n_texts):
        signs = list(whole)
        for _ in range(rng.randint(1, 2)):
            place = rng.randrange(len(signs))
            signs[place : place + rng.randint(0, 1)] = rng.choice([*'"{}[]:,.-0e \\n\tx', ""])
        yield "".join(signs)


def is_event(text: str) -> bool:
    from matchmill.service.json_body import from_body
    from matchmill.service.problems import Problem

    try:
        return isinstance(from_body(text.encode()), dict)
    except Problem:
        return False


# -- live -----------------------------------------------------------------------------------------


def test_live_matches_appear_and_can_be_paused(visit: Visit) -> None:
    visit.client.subscribe("u42", "n > 0")
    visit.go("Live")
    visit.wait_text("#live-state", "connected")
    visit.client.publish({"n": 9007199254740993})
    visit.wait_text("#live-matches li", '{"n": 9007199254740993}')
    visit.wait_text("#live-matches li .id", "u42")
    visit.page.get_by_role("button", name="Pause").click()
    visit.client.publish_many({"n": n} for n in range(1, 301))
    visit.wait_text("#live-note", "Paused; 300 have arrived since")
    assert visit.page.locator("#live-matches li").count() == 1
    visit.page.get_by_role("button", name="Continue").click()
    visit.wait_text("#live-matches li", '{"n": 300}')
    assert visit.page.locator("#live-matches li").count() == 200


def test_a_mailbox_is_read_and_acknowledged(visit: Visit) -> None:
    made = visit.client.subscribe("mine", "n > 0")
    visit.client.publish_many({"n": n} for n in (1, 2))
    visit.go("Live")
    visit.page.locator("#own").get_by_label("Id").fill("mine")
    visit.page.locator("#own").get_by_label("Ticket").fill(made.ticket)
    visit.page.get_by_role("button", name="Open its mailbox").click()
    visit.wait_text("#own-matches li", '{"n": 2}')
    visit.client.publish({"n": 3})
    visit.wait_text("#own-matches li", '{"n": 3}')
    visit.page.get_by_role("button", name="Acknowledge these").click()
    wait_until(lambda: visit.client.get("mine").n_pending == 0)
    visit.client.unsubscribe("mine")
    visit.wait_text("#own-state", "the subscription has ended: unsubscribed or expired")


# -- the list -------------------------------------------------------------------------------------


def test_the_list_is_paged_and_searched(visit: Visit) -> None:
    visit.client.subscribe_many({f"sub-{n:02}": f"n = {n}" for n in range(45)})
    visit.go("Subscriptions")
    visit.wait_text("#list-rows tr:nth-child(20)", "sub-19")
    visit.page.get_by_role("button", name="Next").click()
    visit.wait_text("#list-rows tr:nth-child(20)", "sub-39")
    visit.page.get_by_role("button", name="Next").click()
    visit.wait_text("#list-rows tr:nth-child(5)", "sub-44")
    assert visit.page.get_by_role("button", name="Next").is_disabled()
    visit.page.get_by_role("button", name="Back").click()
    visit.wait_text("#list-rows tr:nth-child(1)", "sub-20")
    visit.page.get_by_label("Id begins with").fill("sub-3")
    visit.page.keyboard.press("Enter")
    visit.wait_text("#list-rows tr:nth-child(1)", "sub-30")
    assert visit.page.locator("#list-rows tr").count() == 10
    visit.watched.expect_rejection(404)  # nothing is called sub-3 itself
    visit.page.get_by_label("Id begins with").fill("sub-07")
    visit.page.keyboard.press("Enter")
    visit.wait_text("#list-rows tr:only-child", "n = 7")
    visit.page.get_by_role("button", name="Show sub-07").click()
    visit.wait_text("#show-dialog dd", "no limit")
    visit.page.keyboard.press("Escape")
    assert not visit.page.locator("#show-dialog").is_visible()
    visit.page.get_by_role("button", name="Explain sub-07").click()
    visit.wait_text("#explanation .verdict", "sub-07 does not match")


def test_renew_and_unsubscribe_ask_for_the_ticket(visit: Visit) -> None:
    made = visit.client.subscribe("mine", "x = 1", ttl_seconds=60)
    visit.go("Subscriptions")
    visit.page.get_by_role("button", name="Renew mine").click()
    dialog = visit.page.locator("#ask-dialog")
    dialog.get_by_label("Ticket").fill(made.ticket)
    dialog.get_by_label("How many").fill("3")
    dialog.get_by_role("button", name="Renew").click()
    visit.wait_text("#list-says", "mine now expires in 3 days")
    before = made.expires_at
    assert (visit.client.get("mine").expires_at - before).total_seconds() > 2.9 * 86400
    visit.page.get_by_role("button", name="Unsubscribe mine").click()
    visit.page.keyboard.press("Escape")  # not yet
    assert visit.client.get("mine").id == "mine"
    visit.page.get_by_role("button", name="Unsubscribe mine").click()
    dialog.get_by_label("Ticket").fill(made.ticket)
    dialog.get_by_role("button", name="Unsubscribe", exact=True).click()
    visit.wait_text("#list-says", "mine has ended")
    assert list(visit.client.subscriptions()) == []


def test_an_admin_unsubscribes_without_a_ticket_and_others_do_not(home: Home, visit: Visit) -> None:
    visit.client.subscribe_many({"a": "x = 1", "b": "x = 1"})
    visit.go("Subscriptions")
    visit.page.get_by_role("button", name="Unsubscribe a", exact=True).click()
    visit.page.get_by_role("button", name="Unsubscribe", exact=True).click()
    visit.wait_text("#list-says", "a has ended")
    tenant = "test_an_admin_unsubscribes_without_a_ticket_and_others_do_not"
    visit.key = new_key(home.folder, tenant, scopes=("read",))
    visit.page.get_by_role("button", name="Signed in").click()
    visit.sign_in()
    visit.page.get_by_role("button", name="Unsubscribe b", exact=True).click()
    visit.page.get_by_role("button", name="Unsubscribe", exact=True).click()
    visit.wait_text("#ask-dialog .bad", "no scope admin")
    visit.watched.expect_rejection(403)


# -- stats ----------------------------------------------------------------------------------------


def test_stats_are_drawn(visit: Visit) -> None:
    visit.client.subscribe("all", "n >= 0")
    visit.client.publish_many({"n": n} for n in range(600))
    visit.go("Stats")
    label = re.compile("per second since 1 min ago; now: events [1-9].*, matches [1-9]")
    visit.page.get_by_role("img", name=label).wait_for()
    visit.page.get_by_role(
        "img", name=re.compile("milliseconds .* p50 [0-9.]+, p99 [0-9.]+")
    ).wait_for()
    visit.wait_text("#rates svg text", "now")
    visit.wait_text("#costly th", "all")
    visit.wait_text("#tiles div", "Subscriptions")


# -- whoever visits -------------------------------------------------------------------------------


HOSTILE = '<img src=x onerror="window.hit=1">\''


def test_nothing_that_is_shown_becomes_markup(visit: Visit) -> None:
    made = visit.client.subscribe(HOSTILE, f'"{HOSTILE.replace(chr(34), "")}" = 1 or n = 1')
    visit.page.locator("#event").fill('{"n": 1, "<b>": "<img src=x onerror=window.hit=1>"}')
    visit.page.get_by_role("button", name="Find matches").click()
    visit.page.locator("#event-result").get_by_role("button").click()
    visit.wait_text("#explanation .verdict", HOSTILE)
    visit.page.get_by_text("Operators and attributes").click()
    visit.page.locator("#expression").fill("<img src=x onerror=window.hit=1>")
    visit.page.locator("#expression-says .caret").wait_for()
    visit.page.get_by_role("button", name="Publish").click()
    visit.wait_text("#event-result", "it matched 1 subscription")
    visit.go("Live")
    visit.wait_text("#live-matches .id", HOSTILE)
    visit.page.locator("#own").get_by_label("Id").fill(HOSTILE)
    visit.page.locator("#own").get_by_label("Ticket").fill(made.ticket)
    visit.page.get_by_role("button", name="Open its mailbox").click()
    visit.wait_text("#own-matches li", "onerror")
    visit.go("Subscriptions")
    visit.page.get_by_role("button", name=f"Show {HOSTILE}").click()
    visit.wait_text("#show-title", HOSTILE)
    visit.page.keyboard.press("Escape")
    visit.go("Stats")
    visit.wait_text("#costly th", HOSTILE)
    assert visit.page.locator("img").count() == 1  # the page's own
    assert visit.page.evaluate("window.hit") is None


def test_the_key_stays_in_the_tab(home: Home, visit: Visit) -> None:
    stored = "[location.href, JSON.stringify({...localStorage}), document.cookie].join()"
    assert visit.key not in visit.page.evaluate(stored)
    assert visit.page.evaluate("Object.values(sessionStorage)") == [visit.key]
    visit.page.reload()
    visit.page.get_by_role("button", name="Signed in").click()
    visit.page.get_by_role("button", name="Forget the key").click()
    assert visit.page.evaluate("sessionStorage.length") == 0
    visit.page.get_by_role("button", name="Sign in").wait_for()
    with tab(home.browser, home.address) as other:
        other.page.locator("#key-dialog").wait_for(state="visible")
        other.page.get_by_label("Key", exact=True).fill("mk_wrong")
        other.page.keyboard.press("Enter")
        other.page.locator("#key-dialog .bad", has_text="this key is not known").wait_for()
        other.expect_rejection(401)
        assert other.page.evaluate("sessionStorage.length") == 0


def tab_to(page: Any, is_there: str) -> None:
    """Press Tab until the focus is on an element of which the condition holds."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(f"(element => {is_there})(document.activeElement)"):
            # What has the focus is to be seen.
            outlined = page.evaluate(
                "e => [e, e.parentElement].some(x => getComputedStyle(x).outlineStyle !== 'none')",
                page.evaluate_handle("document.activeElement"),
            )
            assert outlined
            return
    raise AssertionError(f"Tab never leads to {is_there}")


def test_the_keyboard_alone_will_do(home: Home) -> None:
    key = new_key(home.folder, tenant="keyboard")
    with Client(home.address, key=key) as client, tab(home.browser, home.address) as watched:
        page = watched.page
        page.keyboard.type(key)  # the dialog has the focus
        page.keyboard.press("Enter")
        page.locator("#key-dialog").wait_for(state="hidden")
        tab_to(page, "element.id === 'expression'")
        page.keyboard.type("dep_delay > 30")
        tab_to(page, "element.name === 'id'")
        page.keyboard.type("keys-only")
        tab_to(page, "element.textContent === 'Subscribe'")
        page.keyboard.press("Enter")
        page.locator("#expression-result .secret").wait_for()
        tab_to(page, "element.id === 'event'")
        page.keyboard.press("Control+Enter")
        tab_to(page, "element.textContent === 'keys-only'")
        page.keyboard.press("Enter")
        page.locator("#explanation .verdict", has_text="keys-only matches").wait_for()
        page.evaluate("document.activeElement.blur()")
        tab_to(page, "element.textContent === 'Subscriptions'")
        page.keyboard.press("Enter")
        tab_to(page, "element.ariaLabel === 'Unsubscribe keys-only'")
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.ariaLabel") == "Unsubscribe keys-only"
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")  # the ticket is remembered, and the button has the focus
        page.locator("#list-says", has_text="keys-only has ended").wait_for()
        assert list(client.subscriptions()) == []


def test_every_field_has_a_name(visit: Visit) -> None:
    nameless = """
        [...document.querySelectorAll("input, select, textarea, button")]
          .filter((e) => !(e.labels?.length || e.ariaLabel || e.textContent.trim()))
          .map((e) => e.outerHTML)
    """
    assert visit.page.evaluate(nameless) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_it_fits_wide_and_narrow(
    home: Home, viewport: dict[str, int], scheme: Any, tmp_path: Path
) -> None:
    key = new_key(home.folder, tenant=f"looks-{scheme}-{viewport['width']}")
    options = {"viewport": viewport, "color_scheme": scheme, "reduced_motion": "reduce"}
    with (
        Client(home.address, key=key) as client,
        tab(home.browser, home.address, **options) as seen,
    ):
        fill_with_examples(client)
        visit = Visit(seen, client, key)
        visit.sign_in()
        use_everything(visit)
        for name, content in (
            ("Write", "#explanation .tree"),
            ("Live", "#live-matches li"),
            ("Subscriptions", "#list-rows tr"),
            ("Stats", "#rates svg"),
        ):
            visit.go(name)
            visit.page.locator(content).first.wait_for()
            visit.page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
            width = visit.page.evaluate("document.documentElement.scrollWidth")
            assert width <= viewport["width"], f"{name} is {width} wide"
        moving = "getComputedStyle(document.querySelector('.matches')).animationName"
        assert visit.page.evaluate(moving) == "none"


def fill_with_examples(client: Client) -> None:
    client.subscribe_many(
        {
            f"alert-{n:02}": f"origin = 'JFK' and dep_delay > {5 * n} or carrier in ('AA', 'UA')"
            for n in range(25)
        }
        | {"a" * 150: "x = '" + "long " * 60 + "'"}
    )
    client.publish_many({"origin": "JFK", "dep_delay": 4 * n} for n in range(50))


def use_everything(visit: Visit) -> None:
    visit.page.locator("#live-state.on").wait_for(state="attached")
    visit.client.publish({"origin": "JFK", "dep_delay": 100, "text": "long " * 60})
    visit.page.locator("#expression").fill("origin = 'JFK' and (dep_delay > 60 or not late)")
    visit.page.get_by_role("button", name="Explain the expression").click()
    visit.page.get_by_text("Operators and attributes").click()
    visit.page.get_by_role("button", name="Find matches").click()
    visit.page.locator("#event-result .chips").wait_for()
    visit.page.get_by_role("button", name="Subscribe").click()
    visit.page.locator("#expression-result .secret").wait_for()


def test_live_matches_go_on_after_the_server_was_killed(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "served"
    key = new_key(folder)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
    first = ServerProcess(folder, "--port", port)
    first.wait_ready()
    with (
        ExitStack() as later,
        Client(first.address, key=key) as client,
        tab(home.browser, first.address) as watched,
    ):
        visit = Visit(watched, client, key)
        visit.sign_in()
        client.subscribe("a", "n > 0")
        visit.go("Live")
        visit.wait_text("#live-state", "connected")
        first.kill()
        visit.wait_text("#live-state", "connecting again")
        later.enter_context(running(folder, "--port", port))
        visit.wait_text("#live-state", "connected")
        client.publish({"n": 7})
        visit.wait_text("#live-matches li", '{"n": 7}')
        watched.forget_lost_connections()
