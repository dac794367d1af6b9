"""`dragoman completion`: what a shell needs to complete the command line."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_DRAGOMAN_COMPLETE"  # by which the shell asks; click makes the name from that of the program


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and their values in SHELL.

    \b
    bash: dragoman completion bash > ~/.local/share/bash-completion/completions/dragoman
    zsh:  dragoman completion zsh > DIRECTORY/_dragoman, one of those in $fpath
    fish: dragoman completion fish > ~/.config/fish/completions/dragoman.fish
    """
    root = context.find_root()
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root.command, {}, root.info_name or "dragoman", _VARIABLE).source())
