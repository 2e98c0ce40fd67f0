"""The inspection record: what was judged, from which picture, and what people said of it.

routes → `record.Record` → `queries` → `tables`. Needs the group `record`.
"""
