"""Connections to a server: addresses, privileges, conflicts, and a server that is lost for a while."""

import gc
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from agentv.errors import StoreConnectionError, StoreError
from agentv.model.stored import ExecutionRow
from agentv.stores.postgres import KIND, PostgresStore
from agentv.stores.postgres.address import parse_address
from agentv.stores.postgres.connection import ServerConnection
from tests.support.postgres import PASSWORD, PostgresServer, temporary_server
from tests.support.stored_rows import NAME, claim, saved


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that a test may stop, if it starts it again."""
    with temporary_server() as started:
        yield started


class TestAddresses:
    @pytest.mark.parametrize(
        ("address", "name"),
        [
            ("postgresql://me:secret@db.example/team", "postgresql://me@db.example/team"),
            ("postgres://me:secret@db.example:5433/team", "postgresql://me@db.example:5433/team"),
            (
                "postgresql://db.example/team?schema=ci&sslmode=verify-full&sslpassword=secret",
                "postgresql://db.example/team?sslmode=verify-full&schema=ci",
            ),
            (
                "postgresql://me@a:1,b:2/team?target_session_attrs=primary",
                "postgresql://me@a:1,b:2/team?target_session_attrs=primary",
            ),
            ("postgresql://?service=team&reconnect_timeout=5", "postgresql:///?service=team&reconnect_timeout=5"),
            ("postgresql://m%2Fe:secret@db/t%3Fm", "postgresql://m%2Fe@db/t%3Fm"),
            ("postgresql:///team?host=/run/pg&user=me&password=secret", "postgresql://me@%2Frun%2Fpg/team"),
            ("postgresql://me:s%40cret%20@db/team", "postgresql://me@db/team"),
        ],
    )
    def test_the_name_of_a_store_shows_no_password(self, address: str, name: str) -> None:
        parsed = parse_address(address)
        assert parsed.name == name
        same = parse_address(name)
        assert (same.name, same.schema, same.reconnect_s) == (name, parsed.schema, parsed.reconnect_s)
        shown = {**conninfo_to_dict(parsed.conninfo)}
        for secret in ("password", "sslpassword"):
            shown.pop(secret, None)
        assert conninfo_to_dict(same.conninfo) == shown, "a name leads to the same store"

    @pytest.mark.parametrize(
        "address",
        [
            "postgresql://me:secret@db/team?colour=red",
            "postgresql://me:secret@db/team?schema=",
            f"postgresql://me:secret@db/team?schema={'x' * 64}",
            f"postgresql://me:secret@db/team?schema={'%C3%A9' * 32}",
            "postgresql://me:secret@db/team?schema=pg_team",
            "postgresql://me:secret@db/team?schema=a&schema=b",
            "postgresql://me:secret@db/team?reconnect_timeout=soon",
            "postgresql://me:secret@db/team?reconnect_timeout=nan",
            "postgresql://me:secret@db/team?reconnect_timeout=-1",
            "postgresql://me:secret@[db/team",
            "postgresql://me:my secret@db/team",
            "postgresql://me:secret%@db/team",
            "postgresql://me:p@secret@db/team",
            "postgresql://me:p/secret@db/team",
            "postgresql://me:p?secret@db/team",
            "postgresql://me:p?x=/secret%zz@db/team",
            "postgresql://db/team?password=secret%zz",
            "postgresql://db/team?password=my secret",
        ],
    )
    def test_a_wrong_address_is_explained_without_its_password(self, address: str) -> None:
        with pytest.raises(StoreError, match="expected postgresql://user@host:5432/database") as raised:
            parse_address(address)
        assert "secret" not in str(raised.value)

    def test_secrets_and_hosts_are_told_for_redaction_and_untrusted_projects(self) -> None:
        address = "postgresql://me:s%40cret@db.example,other.example/team?sslpassword=key"
        assert list(KIND.secrets(address)) == ["s@cret", "key", "s%40cret"], "as it is, and as it is written"
        assert list(KIND.hosts(address)) == ["db.example", "other.example"]
        assert list(KIND.secrets("postgresql://db/team?password=a+b%2Bc")) == ["a+b+c", "a+b%2Bc", "a%2Bb%2Bc"]

    def test_passwords_in_files_of_libpq_are_known_without_a_connection(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        passwords, services = tmp_path / "pgpass", tmp_path / "services"
        passwords.write_text("db.invalid:5432:team:me:of a file\n")
        passwords.chmod(0o600)
        services.write_text("[ours]\nhost=db.invalid\ndbname=team\nuser=me\npassword=of-a-service\n")
        monkeypatch.setenv("PGPASSFILE", str(passwords))
        monkeypatch.setenv("PGSERVICEFILE", str(services))
        monkeypatch.delenv("PGPASSWORD", raising=False)
        assert list(KIND.secrets("postgresql://me@db.invalid/team")) == ["of a file", "of%20a%20file"]
        assert list(KIND.secrets("postgresql:///?service=ours")) == ["of-a-service"]
        assert list(KIND.secrets("postgresql:///?service=missing")) == []
        assert list(KIND.hosts("postgresql://db/?service=ours")) == ["db", "service:ours"]

    def test_a_percent_sign_in_a_password_is_explained(self) -> None:
        with pytest.raises(StoreError, match="% in a password are written as %2F %3F %40 %25"):
            parse_address("postgresql://me:100%@db/team")

    def test_a_refused_password_is_an_error_that_does_not_show_it(self, postgres_server: PostgresServer) -> None:
        with pytest.raises(StoreConnectionError, match="password authentication failed") as raised:
            PostgresStore(postgres_server.tcp_address(password="a-wrong-one"))  # noqa: S106 - that is the test
        assert "a-wrong-one" not in str(raised.value)

    def test_a_server_that_is_not_there_is_named_at_once(self) -> None:
        began = time.monotonic()
        with pytest.raises(StoreConnectionError, match=r"^postgresql://me@127.0.0.1:1/team: no connection: .*refused"):
            PostgresStore("postgresql://me:secret@127.0.0.1:1/team")
        assert time.monotonic() - began < 5

    def test_of_several_hosts_each_failure_is_told_once(self) -> None:
        with pytest.raises(StoreConnectionError) as raised:
            PostgresStore("postgresql://me:secret@127.0.0.1:1,127.0.0.1:2/team")
        assert [str(raised.value).count(f"port {port} failed") for port in (1, 2)] == [1, 1]

    def test_a_server_that_is_too_old_is_refused(
        self, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agentv.stores.postgres.connection.MIN_VERSION", 99_00_00)
        with pytest.raises(StoreError, match=r"the server is PostgreSQL \d+.*: agentv needs 99 or later$"):
            PostgresStore(postgres_server.address())

    def test_a_database_that_cannot_store_every_text_is_refused(self, postgres_server: PostgresServer) -> None:
        address = postgres_server.address()
        with psycopg.connect(parse_address(address).conninfo, autocommit=True) as owner:
            owner.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
        with pytest.raises(StoreError, match=r"has the encoding LATIN1, .* created with `ENCODING 'UTF8'`"):
            PostgresStore(address.replace("/postgres?", "/latin?"))


class TestPrivileges:
    @pytest.fixture
    def address(self, postgres_server: PostgresServer) -> str:
        address = postgres_server.address()
        PostgresStore(address).close()
        return address

    @pytest.fixture
    def as_role(self, address: str) -> Iterator[Callable[[str, str], str]]:
        """Return a function that creates a role with these privileges, and gives the address for it."""
        schema = parse_address(address).schema
        made = []
        with psycopg.connect(parse_address(address).conninfo, autocommit=True) as owner:

            def create(role: str, privileges: str) -> str:
                name = f"{role}_{schema}"
                owner.execute(f'CREATE ROLE "{name}" LOGIN')
                made.append(name)
                for privilege in filter(None, privileges.split(";")):
                    owner.execute(privilege.format(schema=f'"{schema}"', role=f'"{name}"'))
                return address.replace("agentv@", f"{name}@")

            yield create
            for name in made:
                owner.execute(f'DROP OWNED BY "{name}"; DROP ROLE "{name}"')

    def test_a_writer_needs_neither_ownership_nor_the_right_to_create(self, as_role: Callable[[str, str], str]) -> None:
        tables = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}"
        store = PostgresStore(as_role("writer", f"GRANT USAGE ON SCHEMA {{schema}} TO {{role}};{tables}"))
        store.begin(ExecutionRow(id=NAME, status="running", planned=1, started_at="x"))
        store.write(NAME, [claim("a")], [])
        assert store.write(NAME, [], [saved("a")])[1] == {"a"}
        store.delete([NAME])
        store.close()

    def test_a_role_that_may_not_use_an_empty_schema_is_told_so(self, as_role: Callable[[str, str], str]) -> None:
        with pytest.raises(StoreError, match="the role may not use this schema"):
            PostgresStore(as_role("stranger", "DROP SCHEMA {schema} CASCADE;CREATE SCHEMA {schema}"))

    def test_a_reader_can_list_and_is_told_that_it_may_not_write(
        self, address: str, as_role: Callable[[str, str], str]
    ) -> None:
        owner = PostgresStore(address)
        owner.begin(ExecutionRow(id=NAME, status="running", planned=1, started_at="x"))
        owner.write(NAME, [claim("a")], [])
        tables = "GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
        store = PostgresStore(as_role("reader", f"GRANT USAGE ON SCHEMA {{schema}} TO {{role}};{tables}"))
        store.release_dead_claims()
        assert [row.status for row in store.runs(NAME)] == ["queued"]
        with pytest.raises(StoreError, match="the role lacks a privilege"):
            store.delete([NAME])
        store.close()
        owner.close()

    def test_somebody_without_the_right_to_create_is_told_what_to_ask_for(
        self, postgres_server: PostgresServer, as_role: Callable[[str, str], str]
    ) -> None:
        address = as_role("nobody", "").replace("schema=test", "schema=absent")
        with pytest.raises(StoreError, match='let the owner of the database run `CREATE SCHEMA "absent'):
            PostgresStore(address)
        del postgres_server

    def test_a_schema_of_another_program_is_left_alone(self, postgres_server: PostgresServer) -> None:
        address = postgres_server.address()
        schema = parse_address(address).schema
        with psycopg.connect(parse_address(address).conninfo, autocommit=True) as other:
            other.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.theirs (x int)")
        with pytest.raises(StoreError, match="holds tables of another program; name another one with \\?schema="):
            PostgresStore(address)

    def test_newer_tables_are_refused(self, address: str) -> None:
        store = PostgresStore(address)
        store.db.execute("UPDATE store_version SET version = 999")
        with pytest.raises(StoreError, match=r"written by a newer agentv .* version 999, .* update agentv"):
            PostgresStore(address)
        with pytest.raises(StoreError, match="written by a newer agentv"):
            store.change_token()
        store.close()


class TestText:
    def test_a_character_that_the_server_cannot_store_is_shown_by_a_symbol(
        self, postgres_server: PostgresServer
    ) -> None:
        store = PostgresStore(postgres_server.address())
        store.begin(ExecutionRow(id=NAME, status="running", planned=1, started_at="x"))
        store.write(NAME, [claim("a")._replace(case_id="a\0b")], [])
        assert store.write(NAME, [], [saved("a")])[1] == {"a"}
        (row,) = store.runs(NAME)
        assert (row.case_id, row.damage) == ("a\u2400b", None)
        (run,) = store.stored_runs(NAME)
        moved = PostgresStore(postgres_server.address())
        moved.add(ExecutionRow(id=NAME, status="pass", planned=1, started_at="x"), [run._replace(case_id="a\0b")])
        assert [(row.case_id, row.damage) for row in moved.runs(NAME)] == [("a\u2400b", None)]
        for each in (store, moved):
            each.close()


class TestArrays:
    def test_columns_are_returned_as_they_were_sent(self, postgres_server: PostgresServer) -> None:
        rows = [
            (1, 0.5, "plain", b"\x00\xff"),
            (-(2**63), float("inf"), 'quote " brace { backslash \\ comma, NULL', b""),
            (2**63 - 1, 3, "", b"{}"),
            (None, None, None, None),
            (0, -0.0, "\u00e4\u6f22\U0001f600\n", b"\\"),
        ]
        columns = ("seq", "score", "key", "data")
        connection = ServerConnection(postgres_server.address())
        found = connection.execute_rows("SELECT seq, score, key, data FROM {it}", columns, rows).fetchall()
        dense = connection.execute_rows("SELECT seq, score FROM {it}", columns[:2], [(1, 2), (3, 4)]).fetchall()
        connection.close()
        assert found == rows
        assert dense == [(1, 2.0), (3, 4.0)]

    def test_a_number_that_no_column_holds_is_an_error_of_the_store(self, postgres_server: PostgresServer) -> None:
        connection = ServerConnection(postgres_server.address())
        with pytest.raises(StoreError, match="too large"), connection.translate_errors():
            connection.execute_rows("SELECT seq FROM {it}", ("seq",), [(2**63,)])
        connection.close()


class TestPoolers:
    def test_a_session_that_another_client_has_used_is_never_mistaken_for_ours(
        self, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other, address = postgres_server.address(), postgres_server.address()
        PostgresStore(other).close()

        def connect_by_pooler(*arguments: Any, **options: Any) -> psycopg.Connection[Any]:
            """Return a session with the state of another client, and the process id that a pooler makes up."""
            connection = psycopg.Connection[Any].connect(*arguments, **options)
            connection.execute(f"SET search_path TO {parse_address(other).schema}")
            monkeypatch.setattr(type(connection.info), "backend_pid", 1)
            return connection

        monkeypatch.setattr("agentv.stores.postgres.connection._SelfClosingConnection.connect", connect_by_pooler)
        store = PostgresStore(address)
        store.begin(ExecutionRow(id=NAME, status="running", planned=1, started_at="x"))
        store.write(NAME, [claim("a")], [])
        assert store.write(NAME, [], [saved("a")])[1] == {"a"}
        found = list(store.executions(limit=5))
        store.close()
        monkeypatch.undo()
        direct, untouched = PostgresStore(address), PostgresStore(other)
        assert [row.id for row in found] == [row.id for row in direct.executions(limit=5)] == [NAME]
        assert list(untouched.executions(limit=5)) == []
        direct.close()
        untouched.close()

    def test_one_that_pools_statements_is_refused(self, postgres_server: PostgresServer) -> None:
        store = PostgresStore(postgres_server.address())
        refused = "transaction blocks not allowed in statement pooling mode"
        with pytest.raises(StoreError, match="the connection pooler must pool sessions or transactions"):  # noqa: SIM117 - of the store
            with store.translate_errors():
                raise psycopg.errors.ProtocolViolation(refused)
        store.close()


class TestLoss:
    def test_a_server_that_is_restarted_in_the_middle_costs_nothing(self, server: PostgresServer) -> None:
        store = PostgresStore(server.address())
        store.begin(ExecutionRow(id=NAME, status="running", planned=400, started_at="x"))
        restarts = [("stop", "fast"), ("stop", "immediate"), ("kill",)]
        trouble = threading.Thread(target=_restart, args=(server, restarts))
        trouble.start()
        keys, done = iter(range(100_000)), 0
        while trouble.is_alive() or done < 50:
            block = [f"{next(keys):x}" for _ in range(5)]
            assert store.write(NAME, [claim(key) for key in block], [])[0] == {*block}
            assert store.write(NAME, [], [saved(key) for key in block])[1] == {*block}
            done += len(block)
        trouble.join()
        assert len({result.key for result in store.results(NAME)}) == done
        assert all(run.damage is None and len(run.attempt_log) == 1 for run in store.stored_runs(NAME))
        store.close()

    def test_a_connection_that_is_cut_after_the_commit_writes_nothing_twice(
        self, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = PostgresStore(postgres_server.address())

        def then_lost(call: Callable[[], object]) -> object:
            """Make a call whose connection is lost just after its first commit."""
            attempt = store._attempt  # noqa: SLF001 - a network does this
            cut: list[None] = []

            def fail_once(function: Callable[[], object]) -> object:
                result = attempt(function)
                if not cut:
                    cut.append(store._pg.close())  # type: ignore[func-returns-value] # noqa: SLF001 - as above
                    message = "server closed the connection unexpectedly"
                    raise psycopg.OperationalError(message)
                return result

            with monkeypatch.context() as patch:
                patch.setattr(store, "_attempt", fail_once)
                return call()

        then_lost(lambda: store.begin(ExecutionRow(id=NAME, status="running", planned=1, started_at="x")))
        assert [row.id for row in store.executions()] == [NAME]
        assert then_lost(lambda: store.write(NAME, [claim("a"), claim("b")], [])[0]) == {"a", "b"}
        assert then_lost(lambda: store.write(NAME, [], [saved("a")])[1]) == {"a"}
        assert store.write(NAME, [], [saved("b", "error")])[1] == {"b"}
        assert then_lost(lambda: store.write(NAME, [claim("b", 1)], [], ["error"])[0]) == {"b"}
        assert store.write(NAME, [], [saved("b")])[1] == {"b"}
        assert [(row.verdict, row.rounds) for row in store.runs(NAME)] == [("pass", 1), ("pass", 2)]
        assert [len(run.attempt_log) for run in store.stored_runs(NAME)] == [1, 2]
        store.close()

    def test_a_server_that_stays_away_is_an_error_after_a_while(self, server: PostgresServer) -> None:
        store = PostgresStore(server.address(reconnect_timeout="0.3"))
        store.begin(ExecutionRow(id=NAME, status="running", planned=1, started_at="x"))
        server.stop()
        with pytest.raises(StoreConnectionError, match=r"lost, and could not be made again within 0.3 s"):
            store.write(NAME, [claim("a")], [])
        began = time.monotonic()
        with pytest.raises(StoreConnectionError):
            store.heartbeat()
        assert time.monotonic() - began < 0.2, "it was waited for once"
        store.close()
        server.start()

    def test_waiting_for_a_server_ends_when_the_execution_is_interrupted(self, server: PostgresServer) -> None:
        store = PostgresStore(server.address())
        store.begin(ExecutionRow(id=NAME, status="running", planned=1, started_at="x"))
        server.stop()
        threading.Timer(0.2, store.stop_retrying).start()
        began = time.monotonic()
        with pytest.raises(StoreConnectionError):
            store.write(NAME, [claim("a")], [])
        assert time.monotonic() - began < 10
        store.close()
        server.start()


def _restart(server: PostgresServer, restarts: list[tuple[str, ...]]) -> None:
    for action, *arguments in restarts:
        time.sleep(0.3)
        getattr(server, action)(*arguments)
        time.sleep(0.1)
        server.start()
    time.sleep(0.2)


def test_a_store_in_use_can_be_reached_with_a_password(postgres_server: PostgresServer) -> None:
    store = PostgresStore(postgres_server.tcp_address())
    assert PASSWORD not in store.name
    assert store.executions() == []
    store.close()


def test_a_store_that_nobody_closed_is_closed_without_a_warning(
    postgres_server: PostgresServer, recwarn: pytest.WarningsRecorder
) -> None:
    address = postgres_server.address()
    PostgresStore(address)
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []


@pytest.fixture(scope="module")
def certificate() -> Iterator[tuple[PostgresServer, str]]:
    """A server that refuses connections without TLS, and its self-made certificate."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no `openssl` to make a certificate with")
    with temporary_server() as started:
        key, certificate = started.data / "server.key", started.data / "server.crt"
        made = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", str(key), "-out", str(certificate)]
        names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run([openssl, "req", "-x509", *made, *names], check=True, capture_output=True)
        owner = started.data.stat().st_uid
        for path, mode in ((key, 0o600), (certificate, 0o644)):
            path.chmod(mode)
            os.chown(path, owner, -1)
        with (started.data / "postgresql.conf").open("a") as settings:
            settings.write("\nssl = on\n")
        rules = started.data / "pg_hba.conf"
        rules.write_text(rules.read_text().replace("host ", "hostssl "))
        started.stop("fast")
        started.start()
        yield started, str(certificate)


class TestEncryption:
    def test_the_certificate_is_checked(self, certificate: tuple[PostgresServer, str]) -> None:
        server, path = certificate
        store = PostgresStore(f"{server.tcp_address()}&sslmode=verify-full&sslrootcert={path}")
        query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        assert store.db.execute(query).fetchone() == (True,)
        store.close()

    @pytest.mark.parametrize(
        ("parameters", "reason"),
        [
            ("sslmode=disable", "no encryption"),
            ("sslmode=verify-full&sslrootcert=/no/such/file", "does not exist"),
            ("sslmode=verify-full&sslrootcert=system", "verify failed"),
        ],
    )
    def test_a_refused_connection_says_why(
        self, certificate: tuple[PostgresServer, str], parameters: str, reason: str
    ) -> None:
        with pytest.raises(StoreConnectionError, match=reason) as caught:
            PostgresStore(f"{certificate[0].tcp_address()}&{parameters}")
        assert PASSWORD not in str(caught.value)
