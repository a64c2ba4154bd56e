"""``python -m dpbandits`` is the command ``dpbandits``."""

from .cli import main

main()
