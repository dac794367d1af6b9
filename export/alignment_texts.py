"""Sentences full of what translations copy verbatim (names, numbers, marks), to score attention on."""

ALIGNMENT_TEXTS = (
    "Anna and Peter flew from Berlin to Toronto on 12 May 1987.",
    "The train to Hamburg leaves at 9:45 from platform 7.",
    "Windows 11 and Linux both support this file format.",
    "Maria paid 250 euros; Thomas, however, paid only 75.",
    "In 2004 Google had about 3000 employees in California.",
    "Click OK, open Firefox, and go to example.org.",
    'Tom asked: "Where is David?" (He was in London.)',
    "Version 3.2 of LibreOffice was released in February 2010.",
    "Mr. Schmidt lives at 48 Park Avenue, New York.",
    "Press F5 to reload; press F11 for full screen.",
    "Does Julia know that Michael bought 6 books, 2 pens and 14 apples?",
    "The population of Madrid is 3,300,000; that of Lisbon is 545,000.",
    "Robert, Laura and Daniel won 5:2 against Chicago.",
    "Set the option to 100 % and restart Apache.",
    "On Monday Barack Obama met Angela Merkel in Washington!",
    "Write to support@example.com or call 555-0199.",
)
# The same with reserved symbols, for models that have them.
SYMBOL_TEXTS = (
    "Open {0} and save it as {1}.",
    "{0} met {1} in {2} last summer.",
    "There are {0} files in the folder {1}, but only {2} are new.",
    "If {0} is not installed, run {1} first.",
    "{0}Warning{1}: the {2}printer{3} is out of paper.",
    "Please send {0} to {1} before {2}.",
)
