"""How files lie on disk: one module a layout, each with one function `index`."""
