"""The viewer: a local server with a JSON API, its pages, and the report in one file."""
