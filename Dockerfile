# One image: the server, the page, the bundled plugins, and Postgres.
# Built in the same steps as `make build`.

# The images that it begins with, by tag; deploy/image/pins.sh prints the arguments that name them by digest.
ARG NODE_IMAGE=node:22-bookworm-slim
ARG GO_IMAGE=golang:1.26-bookworm
ARG DEBIAN_IMAGE=debian:bookworm-slim

FROM ${NODE_IMAGE} AS node

FROM ${GO_IMAGE} AS build
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules /usr/local/lib/node_modules
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
WORKDIR /src
# What changes seldom comes first, so that it is built seldom.
COPY go.mod go.sum ./
RUN go mod download
COPY ui/package.json ui/package-lock.json ui/.npmrc ui/
RUN cd ui && npm ci --no-fund --no-audit --loglevel=error
COPY . .
ARG VERSION=container
RUN make build VERSION="${VERSION}"

FROM ${DEBIAN_IMAGE}
# Only the binaries are wanted: the server makes a cluster of its own under /data.
RUN mkdir -p /etc/postgresql-common/createcluster.d \
 && echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.d/loadstone.conf \
 && apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libnss-wrapper postgresql \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --gid 0 --home-dir /data --no-create-home --shell /usr/sbin/nologin loadstone \
 # Group 0 owns /data, so that an arbitrary user id with group 0 (OpenShift) can write there.
 && mkdir -p /data && chown 10001:0 /data && chmod 0770 /data
COPY --from=build /src/bin/loadstone /usr/local/bin/loadstone
COPY --from=build /src/examples /usr/share/loadstone/examples
USER 10001:0
VOLUME /data
ENV LOADSTONE_DATA_DIR=/data \
    LOADSTONE_LISTEN=0.0.0.0:8080 \
    LOADSTONE_LOG_FORMAT=json
EXPOSE 8080
# The server's own check: no curl in the image.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 CMD ["loadstone", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["loadstone"]
CMD ["serve"]
