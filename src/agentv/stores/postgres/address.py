"""Address of a store on a PostgreSQL server: `postgresql://user@host/database?schema=name`."""

from __future__ import annotations

import re
from math import isfinite
from typing import NamedTuple
from urllib.parse import quote, unquote

from psycopg import Error, ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import PGconn

from agentv.errors import StoreError

DEFAULT_SCHEMA = "agentv"
RECONNECT_S = 60.0
"""Time for which a lost connection is made again."""
MAX_NAME = 63
"""Longest name of a schema."""
SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
"""Parameters that no message shows."""
DEFAULTS = {
    "application_name": "agentv",
    "connect_timeout": "10",
    # Notice a server that is gone, in half a minute instead of hours.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
"""Connection parameters that an address may override."""
OWN = {"schema": DEFAULT_SCHEMA, "reconnect_timeout": f"{RECONNECT_S:g}"}
"""Parameters of an address that are not for libpq, with their defaults."""
_IN_AUTHORITY = ("user", "host", "port", "dbname")
EXPECTED = "expected postgresql://user@host:5432/database?schema=name"
UNESCAPED = (
    "the address of the store is not understood: characters such as / ? @ % in a password are written as"
    f" %2F %3F %40 %25; {EXPECTED}"
)
_QUOTED = re.compile(r"""["']([^"']*)["']?""")
"""Parts of an address in messages of libpq, of which only names of parameters are shown."""


class ServerAddress(NamedTuple):
    """Parts of an address."""

    name: str
    """Address for messages, without passwords."""
    conninfo: str
    """Connection parameters of libpq."""
    schema: str
    reconnect_s: float
    secrets: tuple[str, ...]
    """Passwords in the address, which no message may show."""
    hosts: tuple[str, ...]
    """Hosts, folders of sockets and services that it leads to."""

    def redact(self, text: str) -> str:
        """Return a text without passwords."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def parse_address(address: str) -> ServerAddress:
    """Return the parts of an address; raise `StoreError` if it is wrong."""
    base, _, query = address.partition("?")
    own = dict(OWN)
    others = []
    given: set[str] = set()
    for part in filter(None, query.split("&")):
        name, is_set, value = part.partition("=")
        if not is_set:
            raise StoreError(UNESCAPED)
        if name in own:
            if name in given:
                msg = f"the address of the store is not understood: it has `{name}` twice; {EXPECTED}"
                raise StoreError(msg)
            given.add(name)
            own[name] = unquote(value)
        else:
            others.append(part)
    authority, _, path = base.partition("://")[2].partition("/")
    if authority.count("@") > 1 or "@" in path:
        raise StoreError(UNESCAPED)
    try:
        uri = f"{base}?{'&'.join(others)}" if others else base
        parameters = {name: str(value) for name, value in conninfo_to_dict(uri).items() if value is not None}
    except (ProgrammingError, ValueError) as error:
        if "percent-encoded" in str(error):
            raise StoreError(UNESCAPED) from None
        names = set() if "@" in query else {part.partition("=")[0] for part in query.split("&")}
        reason = _QUOTED.sub(lambda part: part[0] if part[1] in names else '"..."', str(error).strip())
        msg = f"the address of the store is not understood: {reason}; {EXPECTED}"
        raise StoreError(msg) from None
    name = _shown(parameters, own)
    schema, reconnect_s = own["schema"], _parse_seconds(own["reconnect_timeout"], name)
    if not 0 < len(schema.encode()) <= MAX_NAME or "\0" in schema or schema.startswith("pg_"):
        msg = f"{name}: a schema has a name of 1 to {MAX_NAME} bytes that does not begin with `pg_`; {EXPECTED}"
        raise StoreError(msg)
    plain = [parameters[name] for name in SECRETS if parameters.get(name)]
    written = [part.partition("=")[2] for part in others if part.partition("=")[0] in SECRETS]
    written.append(authority.rpartition("@")[0].partition(":")[2])
    # A program that prints the address prints a password as it is written there.
    secrets = tuple(dict.fromkeys(filter(None, [*plain, *written, *[quote(each, safe="") for each in plain]])))
    conninfo = make_conninfo("", **{**DEFAULTS, **parameters})
    hosts = [host for name in ("host", "hostaddr") for host in parameters.get(name, "").split(",") if host]
    if "service" in parameters:  # a file says where it is
        hosts.append(f"service:{parameters['service']}")
    return ServerAddress(name, conninfo, schema, reconnect_s, secrets, tuple(hosts) or ("localhost",))


def find_secrets(address: str) -> tuple[str, ...]:
    """Return the passwords of an address, and the one that libpq reads from a password file or a service file."""
    parsed = parse_address(address)
    try:
        # libpq reads its files, and refuses the last parameter before it connects.
        found = PGconn.connect_start(make_conninfo(parsed.conninfo, sslmode="none").encode()).password.decode()
    except (Error, ValueError):
        found = ""
    return tuple(dict.fromkeys(filter(None, (*parsed.secrets, found, quote(found, safe="")))))


def _parse_seconds(text: str, name: str) -> float:
    """Return the time of `reconnect_timeout`; raise `StoreError` if it is none."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not isfinite(seconds) or seconds < 0:
        msg = f"{name}: `reconnect_timeout` is a number of seconds from 0 on; {EXPECTED}"
        raise StoreError(msg)
    return seconds


def _shown(parameters: dict[str, str], own: dict[str, str]) -> str:
    """Return an address that leads to the same store, without its secrets."""
    hosts = parameters.get("host", "").split(",")
    ports = parameters.get("port", "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    places = [
        f"{quote(host, safe='') if host.startswith('/') else host}{f':{port}' if port else ''}"
        for host, port in zip(hosts, ports, strict=False)
    ]
    user = f"{quote(parameters['user'], safe='')}@" if "user" in parameters else ""
    others = {name: value for name, value in parameters.items() if name not in (*SECRETS, *_IN_AUTHORITY)}
    others |= {name: value for name, value in own.items() if value != OWN[name]}
    query = "&".join(f"{name}={quote(value, safe='/,')}" for name, value in others.items())
    return f"postgresql://{user}{','.join(places)}/{quote(parameters.get('dbname', ''))}{query and f'?{query}'}"
