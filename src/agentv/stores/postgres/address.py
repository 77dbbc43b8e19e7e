"""Address of a store on a PostgreSQL server: `postgresql://user@host/database?schema=name`."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from agentv.errors import StoreError

DEFAULT_SCHEMA = "agentv"
RECONNECT_S = 60.0
"""Time for which a lost connection is made again."""
MAX_NAME = 63
"""Longest name of a schema."""
SECRETS = ("password", "sslpassword")
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
    """Hosts, or folders of sockets, that it leads to."""

    def redact(self, text: str) -> str:
        """Return a text without passwords."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def parse_address(address: str) -> ServerAddress:
    """Return the parts of an address; raise `StoreError` if it is wrong."""
    base, _, query = address.partition("?")
    own = {"schema": DEFAULT_SCHEMA, "reconnect_timeout": f"{RECONNECT_S:g}"}
    others = []
    for part in filter(None, query.split("&")):
        name, is_set, value = part.partition("=")
        if not is_set:
            raise StoreError(UNESCAPED)
        if name in own:
            own[name] = unquote(value)
        else:
            others.append(part)
    authority, _, path = base.partition("://")[2].partition("/")
    if authority.count("@") > 1 or "@" in path:
        raise StoreError(UNESCAPED)
    try:
        uri = f"{base}?{'&'.join(others)}" if others else base
        parameters = {name: str(value) for name, value in conninfo_to_dict(uri).items() if value is not None}
        reconnect_s = float(own["reconnect_timeout"])
    except (ProgrammingError, ValueError) as error:
        names = set() if "@" in query else {part.partition("=")[0] for part in query.split("&")}
        reason = _QUOTED.sub(lambda part: part[0] if part[1] in names else '"..."', str(error).strip())
        msg = f"the address of the store is not understood: {reason}; {EXPECTED}"
        raise StoreError(msg) from None
    schema = own["schema"]
    if not 0 < len(schema.encode()) <= MAX_NAME or "\0" in schema:
        msg = f"{_shown(parameters, schema)}: a schema has a name of 1 to {MAX_NAME} bytes; {EXPECTED}"
        raise StoreError(msg)
    secrets = tuple([parameters[name] for name in SECRETS if parameters.get(name)])
    conninfo = make_conninfo("", **{**DEFAULTS, **parameters})
    hosts = ",".join(parameters.get(name, "") for name in ("host", "hostaddr")).split(",")
    return ServerAddress(
        _shown(parameters, schema),
        conninfo,
        schema,
        max(0.0, reconnect_s),
        secrets,
        tuple([host for host in hosts if host]) or ("localhost",),
    )


def _shown(parameters: dict[str, str], schema: str) -> str:
    """Return an address for messages: where the runs are, and nothing that is secret."""
    hosts = parameters.get("host", "").split(",")
    ports = parameters.get("port", "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    places = [
        f"{quote(host, safe='') if host.startswith('/') else host}{f':{port}' if port else ''}"
        for host, port in zip(hosts, ports, strict=False)
    ]
    user = f"{quote(parameters['user'])}@" if "user" in parameters else ""
    named = "" if schema == DEFAULT_SCHEMA else f"?schema={quote(schema)}"
    return f"postgresql://{user}{','.join(places)}/{quote(parameters.get('dbname', ''))}{named}"
