"""What the configuration adds to a server."""

import pytest

from service.config.server_config import ServerConfig
from service.domain.translation import OwnPlaceholder
from service.server.optional_parts import WrongPlaceholder, placeholders_of


def test_placeholders_of_all_calls_are_checked_at_the_start() -> None:
    assert placeholders_of(ServerConfig()) == ()
    assert placeholders_of(ServerConfig(placeholder=("a+", r"\d"))) == (OwnPlaceholder("a+"), OwnPlaceholder(r"\d"))
    with pytest.raises(WrongPlaceholder, match=r"^the setting placeholder can't be used: placeholders\[1\] is '\('"):
        placeholders_of(ServerConfig(placeholder=("a", "(")))
