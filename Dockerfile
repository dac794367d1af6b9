# Targets: cpu (the default), cuda, export. docs/docker.md says how to build and run them.
ARG PYTHON_IMAGE=python:3.13-slim-trixie

# --- The kernels, compiled on the builder's platform for the image's, so that no compiler is ever emulated.
FROM --platform=${BUILDPLATFORM} ${PYTHON_IMAGE} AS kernels
WORKDIR /src
COPY constraints.txt ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python -m venv /opt/compiler && \
    /opt/compiler/bin/pip install --constraint constraints.txt ziglang
COPY kernels kernels
ARG TARGETARCH
RUN case "$TARGETARCH" in amd64) cpu=x86_64 ;; arm64) cpu=aarch64 ;; *) cpu=$(uname -m) ;; esac && \
    /opt/compiler/bin/python kernels/build.py --compiler zig --target "$cpu-linux-gnu" --output /kernels

# --- The virtual environment /opt/dragoman, which has no pip of its own, and what tells its dependencies. With the
# epoch set, whatever it is, compiled Python tells its source by a hash: by a time, no two images would be equal.
FROM ${PYTHON_IMAGE} AS build
ENV PIP_CONSTRAINT=/src/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
    DRAGOMAN_BUILD_KERNELS=never SOURCE_DATE_EPOCH=946684800
WORKDIR /src
COPY constraints.txt pyproject.toml hatch_build.py README.md LICENSE ./
COPY service/__init__.py service/
COPY client/pyproject.toml client/README.md client/LICENSE client/
COPY client/dragoman_client/__init__.py client/dragoman_client/
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install --constraint constraints.txt pip && \
    python -m venv --without-pip /opt/dragoman

FROM build AS dependencies-cpu
RUN --mount=type=cache,target=/root/.cache/pip \
    pip --python /opt/dragoman/bin/python install --constraint constraints.txt --only-deps ./client '.[cpu,otel,stores]'

FROM build AS dependencies-cuda
RUN --mount=type=cache,target=/root/.cache/pip \
    pip --python /opt/dragoman/bin/python install --constraint constraints.txt --only-deps ./client '.[gpu,otel,stores]'

FROM build AS dependencies-export
RUN --mount=type=cache,target=/root/.cache/pip \
    pip --python /opt/dragoman/bin/python install --constraint constraints.txt --only-deps ./client '.[cpu,export]'

# --- This project, installed below /package: a small layer on top of its dependencies, which change seldom.
FROM build AS package
COPY client client
COPY service service
COPY export export
COPY --from=kernels /kernels service/kernels
ENV DRAGOMAN_BUILD_KERNELS=/src/service/kernels/libdragoman_kernels.so
RUN --mount=type=cache,target=/root/.cache/pip \
    pip --python /opt/dragoman/bin/python install --constraint constraints.txt --no-deps --root /package ./client .

# --- The shipped checkpoints as bundles. The int8 ones of models/ serve if they were made from these checkpoints, which
# their checksums tell; otherwise they are made here, and that takes torch. CUDA wants float16, which is not committed.
FROM package AS bundles-cpu
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=bind,source=checkpoints,target=/src/checkpoints \
    --mount=type=bind,source=models,target=/src/models \
    --mount=type=bind,from=dependencies-cpu,source=/opt/dragoman,target=/opt/dependencies \
    if /opt/dependencies/bin/python -m service.bundle.checksums models checkpoints; then cp -R models /models; else \
      pip --python /opt/dragoman/bin/python install --constraint constraints.txt --only-deps ./client '.[cpu,export]' && \
      for checkpoint in checkpoints/*; do \
        /opt/dragoman/bin/python -m export convert "$checkpoint" --precision int8 \
          --output "/models/${checkpoint##*/}/1" || exit; \
      done; \
    fi

FROM dependencies-export AS bundles-cuda
COPY --from=package /src /src
RUN --mount=type=bind,source=checkpoints,target=/src/checkpoints \
    for checkpoint in checkpoints/*; do \
      /opt/dragoman/bin/python -m export convert "$checkpoint" --precision float16 \
        --output "/models/${checkpoint##*/}/1" || exit; \
    done

# --- What is in the image, as CycloneDX: the installed distributions with their licences, and the models.
FROM build AS sbom
COPY deploy/image/add_models.py ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python -m venv --without-pip /opt/sbom && \
    pip --python /opt/sbom/bin/python install --constraint constraints.txt --group image

FROM sbom AS sbom-cpu
RUN --mount=type=bind,from=dependencies-cpu,source=/opt/dragoman,target=/opt/dragoman \
    --mount=type=bind,from=package,source=/package,target=/package \
    --mount=type=bind,from=bundles-cpu,source=/models,target=/models \
    PYTHONPATH="$(echo /package/opt/dragoman/lib/python3*/site-packages)" \
    /opt/sbom/bin/cyclonedx-py environment --gather-license-texts --output-reproducible \
      --output-file sbom.json /opt/dragoman/bin/python && \
    python add_models.py sbom.json /models

FROM sbom AS sbom-cuda
RUN --mount=type=bind,from=dependencies-cuda,source=/opt/dragoman,target=/opt/dragoman \
    --mount=type=bind,from=package,source=/package,target=/package \
    --mount=type=bind,from=bundles-cuda,source=/models,target=/models \
    PYTHONPATH="$(echo /package/opt/dragoman/lib/python3*/site-packages)" \
    /opt/sbom/bin/cyclonedx-py environment --gather-license-texts --output-reproducible \
      --output-file sbom.json /opt/dragoman/bin/python && \
    python add_models.py sbom.json /models

# --- What the licences ask to come along: the project's, those of files by others, and the notices of the models.
FROM build AS notices
COPY THIRD_PARTY.md ./
RUN --mount=type=bind,source=checkpoints,target=/src/checkpoints \
    mkdir /notices && cp --parents LICENSE THIRD_PARTY.md checkpoints/*/NOTICE /notices

# --- What all images share: a user without name or rights, no pip, nothing setuid.
FROM ${PYTHON_IMAGE} AS runtime
RUN pip uninstall --yes --root-user-action ignore pip setuptools wheel && \
    rm -r /usr/local/lib/python3*/ensurepip && \
    find / -xdev -type f -perm /6000 -exec chmod a-s {} +
ENV PATH=/opt/dragoman/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 ORT_DISABLE_TELEMETRY=1
WORKDIR /
USER 10001:10001
STOPSIGNAL SIGTERM
ARG VERSION=""
ARG REVISION=""
ARG CREATED=""
ARG SOURCE=""
LABEL org.opencontainers.image.title="Dragoman" \
      org.opencontainers.image.description="A translation server for trained encoder-decoder Transformers" \
      org.opencontainers.image.licenses="Apache-2.0 AND MIT AND Unicode-DFS-2016" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}"

FROM runtime AS export
COPY --from=notices /notices/LICENSE /notices/THIRD_PARTY.md /usr/share/dragoman/
COPY --from=dependencies-export /opt/dragoman /opt/dragoman
COPY --from=package /package /
WORKDIR /work
HEALTHCHECK NONE
ENTRYPOINT ["python", "-m", "export"]
CMD ["--help"]

# --- The server, with the models, whose weights are CC-BY-4.0. The admin listener keeps its default: loopback, inside of
# the container.
FROM runtime AS server
LABEL org.opencontainers.image.licenses="Apache-2.0 AND MIT AND Unicode-DFS-2016 AND CC-BY-4.0"
COPY --from=notices /notices /usr/share/dragoman/
COPY --chmod=644 deploy/image/config.toml /etc/dragoman/config.toml
ENV DRAGOMAN_SERVE_CONFIG=/etc/dragoman/config.toml \
    DRAGOMAN_SERVE_MODELS=/models \
    DRAGOMAN_SERVE_HOST=0.0.0.0 \
    DRAGOMAN_SERVE_METRICS_HOST=0.0.0.0 \
    DRAGOMAN_SERVE_METRICS_PORT=9464
EXPOSE 50051 9464
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["python", "-IS", "-c", "import http.client, os, sys; probe = http.client.HTTPConnection('127.0.0.1', int(os.environ['DRAGOMAN_SERVE_METRICS_PORT']), timeout=4); probe.request('GET', '/readyz'); sys.exit(probe.getresponse().status != 200)"]
ENTRYPOINT ["dragoman", "serve"]

FROM server AS cuda
ENV DRAGOMAN_SERVE_DEVICE=cuda NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=dependencies-cuda /opt/dragoman /opt/dragoman
COPY --from=bundles-cuda /models /models
COPY --from=package /package /
COPY --from=sbom-cuda /src/sbom.json /usr/share/dragoman/

FROM server AS cpu
COPY --from=dependencies-cpu /opt/dragoman /opt/dragoman
COPY --from=bundles-cpu /models /models
COPY --from=package /package /
COPY --from=sbom-cpu /src/sbom.json /usr/share/dragoman/
