# The decision service. docs/deploy.md says how to build and run it.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/larl \
    && /opt/larl/bin/pip install --no-cache-dir --constraint constraints.txt ".[serve]"

FROM python:${PYTHON}-slim
ENV PATH=/opt/larl/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    XDG_CACHE_HOME=/var/cache/larl
RUN useradd --system --uid 10001 --home-dir /var/lib/larl --create-home larl \
    && install --directory --owner=larl --mode=0700 /var/lib/larl /var/cache/larl /backup
COPY --from=build /opt/larl /opt/larl
USER 10001
WORKDIR /var/lib/larl
# Machine code is for the processor that builds the image. On another one, the first use of a policy compiles it again.
ARG PRECOMPILE=""
RUN larl precompile ${PRECOMPILE}
VOLUME /var/lib/larl
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/v1/health', timeout=2)"]
CMD ["larl", "serve", "--host", "0.0.0.0", "--storage", "sqlite:////var/lib/larl/study.db"]
