"""`python -m service`: the same as the `dragoman` command."""

from service.cli.main import main

main()
