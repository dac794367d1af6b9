"""Models of CTranslate2, and the packages of Argos Translate (LibreTranslate), which contain them."""
