"""The texts of the pages: each has its Chinese, and no page has a text outside of the catalogs."""
