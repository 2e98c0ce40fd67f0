"""The inspection record: what was judged, from which picture, and what people said of it.

routes → `record.Record` → `queries` → `tables`: each query is a function of a connection, and `Record` gives
it one, in a thread. `writer` keeps inspections; `storage` has their pictures, `review` what people say of
them, `line` how the line does, `outbox` what others are told. Needs the group `record`.
"""
