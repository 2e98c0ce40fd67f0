"""The inspection record: verdicts, pictures and reviews in a database and a picture store.

Routes call `record.Record`, which runs query functions (`queries`, `outbox_queries`, …) in threads, each with
a connection. `writer` stores inspections; `storage` holds pictures, `review` handles reviews, `line` monitors
the line, `outbox` queues events for other systems. Needs the group `record`.
"""
