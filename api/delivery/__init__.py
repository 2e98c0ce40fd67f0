"""Tells others what was inspected: sinks to which the outbox is sent, and an OPC UA server that is asked.

`delivery` → `sender` → `sink`. Needs the group `record`, the OPC UA server the group `opcua`.
"""
