"""The inspection service: serves an exported model over HTTP. Started by `python -m api --model FOLDER`."""
