import random
import re

from export.training.items import make_item, put_item

ITEM = re.compile(r"\d|/|_|\.json|[a-z][A-Z]")


def test_items_are_of_many_kinds() -> None:
    items = [make_item(random.Random(seed)) for seed in range(400)]
    assert all((ITEM.search(item) and " " not in item.strip()) or re.fullmatch(r"[+\d -]+", item) for item in items)
    forms = {re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", re.sub(r"\d+", "1", item))) for item in items}
    assert {"1", "1-1-1", "1.1.1.1", "a1.1.1", "A-1-1", "a_a", "/a/a", "1:1"} <= forms


def test_an_item_takes_the_place_of_a_number_that_both_sides_share() -> None:
    for seed in range(50):
        source, target = put_item("Room 12 is free.", "Zimmer 12 ist frei.", random.Random(seed))
        item = source.removeprefix("Room ").removesuffix(" is free.")
        assert target == f"Zimmer {item} ist frei."
        assert item != "12"


def test_without_a_number_the_item_stands_beside_both_sides() -> None:
    forms = set()
    for seed in range(50):
        source, target = put_item("Open the file.", "Öffne die Datei.", random.Random(seed))
        item = make_item(random.Random(seed))
        assert source.replace("Open the file", "") == target.replace("Öffne die Datei", "")
        forms.add(source.replace(item, "1"))
    assert forms == {"1: Open the file.", "Open the file (1).", "Open the file: 1.", "Open the file 1."}
