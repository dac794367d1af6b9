"""The API of LibreTranslate (https://docs.libretranslate.com)."""
