# Build: docker build -t segdec .
# Run:   docker run --read-only --tmpfs /tmp -p 8000:8000 -v "$PWD/runs/demo/model:/models:ro" segdec

FROM python:3.11.13-slim AS builder
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH
WORKDIR /build
# The service's pins decide what is built, so that an image can be built again.
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY segdec segdec
RUN pip install ".[serve,tensorflow]" -c constraints.txt

FROM python:3.11.13-slim
LABEL org.opencontainers.image.title="segdec" \
      org.opencontainers.image.description="Surface-defect inspection over HTTP" \
      org.opencontainers.image.licenses="Apache-2.0"
# HOME: the user has no folder of its own, and nothing may be written elsewhere.
# SEGDEC_*: in the environment, so that `docker run segdec --max-pixels N` keeps them.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    SEGDEC_MODEL=/models \
    SEGDEC_HOST=0.0.0.0
WORKDIR /app
COPY --from=builder /opt/venv /opt/venv
COPY api /app/api
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:' + os.environ.get('SEGDEC_PORT', '8000') + '/readyz', timeout=4)"]
ENTRYPOINT ["python", "-m", "api"]
