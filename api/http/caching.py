"""How long browsers keep files, and the type of most of them."""

PNG = "image/png"
VARY_BY_KEY = {"Vary": "Authorization, X-API-Key"}
IMMUTABLE = {"Cache-Control": "private, max-age=86400, immutable", **VARY_BY_KEY}
"""For files of a record that never change; for a day only, because a picture can be deleted."""
REVALIDATED = {"Cache-Control": "private, no-cache", **VARY_BY_KEY}
"""For files that change with reviews and with the model that is served."""
