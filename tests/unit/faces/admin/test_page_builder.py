"""The page is one file, and its policy permits exactly the scripts and styles in it."""

import base64
import hashlib
import re

from service.faces.admin.page_builder import build_page

PAGE = build_page()
HTML = PAGE.body.decode()


def test_every_block_is_allowed_by_its_hash() -> None:
    for kind in ("script", "style"):
        blocks = re.findall(f"<{kind}>(.*?)</{kind}>", HTML, re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(block.encode()).digest()).decode() for block in blocks]
        (directive,) = re.findall(f"{kind}-src ([^;]*)", PAGE.policy)
        assert directive == " ".join(f"'sha256-{digest}'" for digest in digests)
        assert len(blocks) == 2


def test_nothing_is_loaded_from_anywhere() -> None:
    tags = re.sub("<(script|style)>.*?</\\1>|<!--.*?-->", "", HTML, flags=re.DOTALL)
    assert re.findall(r'(?:src|href|action)=(?!"data:)', tags) == []
    assert "<script" not in tags
    assert "style=" not in tags  # the policy would drop it
    assert re.search(r"\bon[a-z]+=", tags) is None
    assert "@import" not in HTML
    assert "url(" not in HTML
    assert PAGE.policy.startswith("default-src 'none'; ")
    assert "unsafe" not in PAGE.policy


def test_all_parts_are_in_place_with_their_licence() -> None:
    assert not re.search("<!-- (licence|styles|scripts) -->", HTML)
    assert "uPlot (v1.6.32)" in HTML
    assert "Permission is hereby granted" in HTML
    assert "Charts: uPlot 1.6.32" in HTML  # as the page itself states
