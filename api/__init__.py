"""The inspection service: an artifact answered over HTTP. Started by `python -m api --model FOLDER`."""
