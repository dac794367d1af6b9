"""The sentences that every bundle is verified on and carries, with translations, for the service's self-test."""

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
