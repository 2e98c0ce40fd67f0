# Targets: serve (CPU), serve-gpu, train (GPU, or CPU where there is none).
# Build: docker build --target serve -t segdec .
# Run:   docker run --read-only --tmpfs /tmp -p 8000:8000 -v "$PWD/runs/demo/model:/models:ro" segdec

FROM python:3.11.13-slim AS builder
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python3 -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH
WORKDIR /build

# What others wrote, known by its hashes; deploy/README.md says how to renew the lists.
FROM builder AS serve-packages
COPY deploy/image/serve.txt ./
RUN pip install --require-hashes -r serve.txt

FROM builder AS serve-gpu-packages
COPY deploy/image/serve-gpu.txt ./
RUN pip install --require-hashes -r serve-gpu.txt

FROM builder AS train-packages
COPY deploy/image/train.txt ./
RUN pip install --require-hashes -r train.txt

# What we wrote, in a layer of its own: a new version is a few megabytes.
FROM builder AS code
COPY deploy/image/build.txt ./
RUN pip install --require-hashes -r build.txt
COPY pyproject.toml README.md LICENSE ./
COPY segdec segdec
RUN pip install --no-deps --no-build-isolation --target /opt/code .

# HOME: the user has no folder of its own, and nothing may be written elsewhere. It comes last in each image, so
# that nothing before it is the user's.
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

# SEGDEC_*: in the environment, so that `docker run segdec --max-pixels N` keeps them.
FROM base AS service
LABEL org.opencontainers.image.description="Surface-defect inspection over HTTP"
ENV SEGDEC_MODEL=/models \
    SEGDEC_HOST=0.0.0.0 \
    SEGDEC_RECORD_FOLDER=/record
# A named volume that is mounted here takes its owner from the folder. No VOLUME: a record in one without a name would
# be lost unseen; with a read-only root file system and no mount it is refused.
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
# What the driver compiles where a GPU is newer than TensorFlow's binaries: a volume mounted here outlives the
# container. Without one the engine makes its own, so that the root file system may be read-only.
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
USER 10001:10001
