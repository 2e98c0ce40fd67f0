# Targets: serve (CPU), serve-gpu, train (GPU, or CPU where there is none).
# Build: docker build --target serve -t segdec .
# Run:   docker run --read-only --tmpfs /tmp -p 8000:8000 -v "$PWD/runs/demo/model:/models:ro" segdec

FROM python:3.11.13-slim AS builder
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python3 -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH
WORKDIR /build

# Dependencies, locked with hashes; deploy/README.md says how to renew the lists.
FROM builder AS serve-packages
COPY deploy/image/serve.txt ./
RUN pip install --require-hashes -r serve.txt

FROM builder AS serve-gpu-packages
COPY deploy/image/serve-gpu.txt ./
RUN pip install --require-hashes -r serve-gpu.txt

FROM builder AS train-packages
COPY deploy/image/train.txt ./
RUN pip install --require-hashes -r train.txt

# The project in its own layer: a new version is a few megabytes.
FROM builder AS code
COPY deploy/image/build.txt ./
RUN pip install --require-hashes -r build.txt
COPY pyproject.toml README.md LICENSE ./
COPY segdec segdec
RUN pip install --no-deps --no-build-isolation --target /opt/code .

# HOME: the user has no home folder. USER is last in each image: the user owns none of the files before it.
FROM python:3.11.13-slim AS base
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="segdec" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/app:/opt/code \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp
WORKDIR /app
STOPSIGNAL SIGTERM

# SEGDEC_* are environment variables, so that flags of `docker run segdec --max-pixels N` do not replace them.
FROM base AS service
LABEL org.opencontainers.image.description="Surface-defect inspection over HTTP"
ENV SEGDEC_MODEL=/models \
    SEGDEC_HOST=0.0.0.0 \
    SEGDEC_RECORD_FOLDER=/record
# A named volume mounted here inherits the owner of this folder. No VOLUME instruction: a record in an anonymous volume
# would be lost; on a read-only root file system without a mount, a record is refused.
RUN install --directory --owner 10001 --group 10001 /record
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "-m", "api", "health"]
ENTRYPOINT ["python", "-m", "api"]

FROM base AS train
LABEL org.opencontainers.image.description="Training of surface-defect inspection"
COPY --from=train-packages /opt/venv /opt/venv
COPY --from=code /opt/code /opt/code
COPY datasets datasets
COPY training training
# Cache for what the driver compiles if a GPU is newer than TensorFlow's binaries. Mount a volume to keep it; an
# anonymous one keeps the root file system read-only.
RUN install --directory --owner 10001 --group 10001 /cache
ENV CUDA_CACHE_PATH=/cache \
    CUDA_CACHE_MAXSIZE=4294967296
VOLUME /cache
USER 10001:10001
ENTRYPOINT ["python", "-m", "training"]

FROM service AS serve-gpu
COPY --from=serve-gpu-packages /opt/venv /opt/venv
COPY --from=code /opt/code /opt/code
COPY api api
COPY datasets datasets
# As in the target 'train'.
RUN install --directory --owner 10001 --group 10001 /cache
ENV CUDA_CACHE_PATH=/cache \
    CUDA_CACHE_MAXSIZE=4294967296
VOLUME /cache
USER 10001:10001

FROM service AS serve
COPY --from=serve-packages /opt/venv /opt/venv
COPY --from=code /opt/code /opt/code
COPY api api
COPY datasets datasets
USER 10001:10001
