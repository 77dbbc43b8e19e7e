"""Protection of the viewer: allowed hosts and origins, and the headers of every response."""

from collections.abc import Iterator
from socket import create_connection

import pytest

from agentv.web.store_view import StoreView
from tests.support.command import Command
from tests.support.viewer import store_file
from tests.support.viewer_server import Served, serve

API = "/api/v1/executions"
FOREIGN = (
    *("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "localhost:80@evil.example", "localhost."),
    *("", "[::2]", "[::1]evil.example", "::1", "192.0.2.7", "2130706433", "127.0.0.1:x"),
)


class TestHosts:
    @pytest.mark.parametrize("host", FOREIGN)
    def test_a_foreign_host_is_refused(self, viewer: Served, host: str) -> None:
        assert viewer.get(API, {"Host": host}).status in (400, 403)

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:1234", "[::1]:8642"])
    def test_names_of_this_machine_are_answered(self, viewer: Served, host: str) -> None:
        assert viewer.get(API, {"Host": host}).status == 200

    @pytest.mark.parametrize("hosts", [[], ["127.0.0.1", "127.0.0.1"]])
    def test_a_request_has_one_host(self, viewer: Served, hosts: list[str]) -> None:
        with create_connection(("127.0.0.1", viewer.port), timeout=30) as connection:
            lines = [f"GET {API} HTTP/1.0", *(f"Host: {host}" for host in hosts), "", ""]
            connection.sendall("\r\n".join(lines).encode())
            assert connection.recv(100).split()[1] in (b"400", b"403")


class TestOtherSites:
    @pytest.mark.parametrize("site", ["cross-site", "same-site"])
    def test_requests_of_other_sites_are_refused(self, viewer: Served, site: str) -> None:
        assert viewer.get(API, {"Sec-Fetch-Site": site}).status == 403
        assert viewer.get("/static/app.js", {"Sec-Fetch-Site": site}).status == 403

    def test_a_link_to_the_page_works(self, viewer: Served) -> None:
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        assert viewer.get("/", headers).status == 200
        assert viewer.get(API, headers).status == 403

    def test_requests_of_another_origin_are_refused(self, viewer: Served) -> None:
        assert viewer.get(API, {"Origin": "https://evil.example"}).status == 403
        assert viewer.get(API, {"Origin": "null"}).status == 403
        assert viewer.get(API, {"Origin": f"http://127.0.0.1:{viewer.port}"}).status == 200


class TestWriting:
    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
    def test_nothing_else_can_be_written(self, viewer: Served, method: str) -> None:
        for path in (API, "/", "/static/app.js", f"{API}/last/runs"):
            assert viewer.request(method, path, b"{}").status == 405

    def test_a_label_needs_the_token_of_the_page(self, viewer: Served) -> None:
        run = viewer.get("executions/last/runs").data["runs"][0]["id"]
        path, body = f"/api/v1/runs/{run}/label", b'{"label": "pass"}'
        json = {"Content-Type": "application/json"}
        good = {**json, "X-Agentv-Token": viewer.protection.write_token}
        assert viewer.request("PUT", path, body, json).status == 403
        assert viewer.request("PUT", path, body, {**json, "X-Agentv-Token": "wrong"}).status == 403
        assert viewer.request("PUT", path, body, {**good, "Origin": "https://evil.example"}).status == 403
        assert viewer.request("PUT", path, body, {**good, "Content-Type": "text/plain"}).status == 415
        assert viewer.get("labels").body == b""


@pytest.fixture
def exposed(project: Command) -> Iterator[Served]:
    """Return a viewer as other machines reach it, although it listens to this one."""
    with serve(store_file(project), host="192.0.2.1", allowed_hosts=["lab.example"]) as served:
        yield served


class TestToken:
    def test_a_bind_beyond_this_machine_needs_a_token(self, exposed: Served) -> None:
        token = exposed.protection.access_token
        assert token
        assert exposed.get(API, {"Host": "lab.example"}).status == 403
        assert exposed.get(API, {"Authorization": "Bearer wrong"}).status == 403
        assert exposed.get(API, {"Authorization": f"Bearer {token}"}).status == 200
        assert exposed.get("/").status == 403

    def test_the_printed_address_sets_a_cookie_that_scripts_cannot_read(self, exposed: Served) -> None:
        token = exposed.protection.access_token
        answer = exposed.get(f"/?token={token}")
        assert answer.status == 303
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert exposed.get("/", {"Cookie": cookie.partition(";")[0]}).status == 200
        assert exposed.get("/?token=wrong").status == 403

    def test_the_printed_address_counts_before_the_cookie_of_an_earlier_server(self, exposed: Served) -> None:
        answer = exposed.get(f"/?token={exposed.protection.access_token}", {"Cookie": "agentv_token=old"})
        assert answer.status == 303

    @pytest.mark.parametrize("token", ["\udcff", "\N{LATIN SMALL LETTER E WITH ACUTE}", "x" * 5_000])
    def test_a_token_that_is_no_text_is_refused(self, exposed: Served, token: str) -> None:
        sent = token.encode("utf-8", "surrogateescape").decode("latin-1")
        assert exposed.get(API, {"Authorization": f"Bearer {sent}"}).status == 403
        run = {"Content-Type": "application/json", "X-Agentv-Token": sent}
        known = {"Authorization": f"Bearer {exposed.protection.access_token}"}
        assert exposed.request("PUT", "/api/v1/runs/x-y/label", b"{}", {**run, **known}).status == 403

    def test_all_addresses_of_a_machine_answer_if_it_listens_to_all(self, project: Command) -> None:
        with serve(store_file(project), host="0.0.0.0") as viewer:  # noqa: S104 - the name only
            known = {"Authorization": f"Bearer {viewer.protection.access_token}"}
            for host, status in (("192.0.2.7:80", 200), ("[2001:db8::1]", 200), ("evil.example", 403)):
                assert viewer.get(API, {**known, "Host": host}).status == status


def test_an_answer_that_fails_says_so_with_all_headers(
    viewer: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        msg = "unforeseen"
        raise RuntimeError(msg)

    monkeypatch.setattr(StoreView, "execution", fail)
    answer = viewer.get(f"{API}/last")
    assert (answer.status, answer.data["error"]["code"]) == (500, "internal")
    assert "unforeseen" not in answer.body.decode()
    assert "unforeseen" in caplog.text
    assert "Content-Security-Policy" in answer.headers


def test_every_answer_has_the_protecting_headers(viewer: Served) -> None:
    for path in ("/", "/static/app.js", API, "/nothing", "/api/v1/runs/nothing"):
        headers = viewer.get(path).headers
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; ")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Server"] == "agentv"
        assert "Access-Control-Allow-Origin" not in headers
