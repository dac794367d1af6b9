"""The API of DeepL, versions 2 and 3 (https://developers.deepl.com)."""
