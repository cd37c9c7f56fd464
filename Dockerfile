# The server of one model, for a container:
#   docker build -t cqrf .
#   docker run --read-only --tmpfs /tmp -p 127.0.0.1:8000:8000 -v "$PWD/pbc.cqrf:/model.cqrf:ro" cqrf
# Kernels are compiled while the image is built, for the instructions of the machine that builds it;
# build it on the kind of machine that will run it. The root may be read-only, the user is not root.
ARG PYTHON_VERSION=3.13

FROM python:${PYTHON_VERSION}-slim AS build
WORKDIR /source
COPY . .
RUN python -m venv /opt/cqrf \
    && /opt/cqrf/bin/pip install --no-cache-dir -c constraints.txt ".[serve]"

FROM python:${PYTHON_VERSION}-slim
COPY --from=build /opt/cqrf /opt/cqrf
ENV PATH=/opt/cqrf/bin:$PATH \
    NUMBA_CACHE_DIR=/opt/cqrf/kernels \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
RUN cqrf warm && useradd --no-create-home --uid 10001 cqrf
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD \
    ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["cqrf", "serve", "--host", "0.0.0.0", "--port", "8000"]
CMD ["/model.cqrf"]
