"""English sentences that every bundle is verified on."""

# Those that it carries, with translations, for the service's self-test.
GOLDEN_TEXTS = (
    "Where is the train station?",
    "I would like a cup of coffee, please.",
    "My brother lives in a small house near the sea.",
    "Save the file before you close the window.",
    "It has been raining since yesterday.",
    "Can you help me find my keys?",
    "Select the account and enter your password.",
    "She told me that she would be late.",
    "The meeting was moved to Friday.",
    "We should learn from our mistakes.",
    # Hard cases for tokenizers and models: one word, digits, names, marks, symbols that stand for themselves.
    "Hello!",
    "In 1969, 12.5 % of the 3,482 visitors paid $4.20 each.",
    "Dr. Müller's e-mail address is info@example.org, isn't it?",
    "\U0001f600 Great work \u2014 thank you so much!",
    "Click \ue000 to open \ue001.",
    "When the rain had stopped and the children were allowed to go outside again, they ran down to the river, where "
    "their grandfather had been waiting for them with a basket of apples since early in the morning.",
)
# Full of what translations copy verbatim (names, numbers, marks), to score attention on.
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
