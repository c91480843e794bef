# The command with all extras, for files in the folder from which it is run:
#
#     docker build --tag lokl .
#     docker run --rm --volume "$PWD:/data" --user "$(id -u):$(id -g)" lokl compare a.csv b.csv --on id --target y.csv:y -o run
FROM python:3.13-slim

WORKDIR /src
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir '.[all]' && rm -rf /src

# Any user may run it: compiled loops, fonts and downloads are stored here.
ENV HOME=/cache NUMBA_CACHE_DIR=/cache/numba MPLCONFIGDIR=/cache/matplotlib
RUN mkdir -p /cache && chmod 1777 /cache
USER nobody
WORKDIR /data
ENTRYPOINT ["lokl"]
CMD ["--help"]
