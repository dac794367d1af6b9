"""The translation page, for a browser; and how a page is made of its parts."""
