# syntax=docker/dockerfile:1
# The version is the one that package.json pins; test/deploy.test.ts compares them.
FROM node:26.10.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
# The console is built here, with the tools that the image does not keep. The image's own Node runs everything, so the copy
# of it among the packages goes as well.
RUN node console/build.ts \
 && npm ci --omit=dev \
 && rm -rf node_modules/node-linux-* node_modules/.bin/node

FROM node:26.10.0-bookworm-slim
# Postgres, where the built-in one is used, wants a user that has a name.
RUN groupadd --gid 10001 tollgate \
 && useradd --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin tollgate \
 && install --directory --owner=10001 --group=10001 --mode=0700 /data
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 TOLLGATE_DATA=/data NODE_COMPILE_CACHE=/data/compile-cache
WORKDIR /app
COPY --from=build /app/package.json /app/package-lock.json /app/LICENSE ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/bin bin
COPY --from=build /app/docs docs
COPY --from=build /app/console console
COPY --from=build /app/sandbox sandbox
COPY --from=build /app/src src
USER 10001:10001
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/readyz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/src/main.ts"]
CMD ["serve"]
