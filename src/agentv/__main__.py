"""`python -m agentv` is `agentv`."""

from agentv.cli.main import main

if __name__ == "__main__":
    main()
