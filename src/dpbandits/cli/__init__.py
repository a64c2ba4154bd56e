"""The command ``dpbandits``."""

from .commands import app


def main() -> None:
    """Run the command line."""
    app(prog_name="dpbandits")


__all__ = ["app", "main"]
