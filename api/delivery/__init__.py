"""Reports inspections to other systems: sinks that get the events of the outbox, and an OPC UA server.

`delivery` runs a `sender` for each `sink`. Needs the group `record`; the OPC UA server needs the group
`opcua`.
"""
