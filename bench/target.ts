// The gateways side by side, each as its own process in front of the same upstream.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Aim } from './load.ts'
import { runs } from './load.ts'
import { freePort, type Started, start } from './process.ts'

export interface Target extends Started {
  readonly name: string
  readonly version: string
  readonly port: number
  /** What this gateway wants to see besides the body. */
  readonly headers: Readonly<Record<string, string>>
  /** The same for a call that goes to the slow upstream, where that is not said by the model. */
  readonly slow?: { readonly headers?: Readonly<Record<string, string>>; readonly path?: string }
  /** The same for the upstream behind TLS. */
  readonly tls?: { readonly path?: string }
}

export interface TargetOptions {
  readonly directory: string
  readonly cores: string
  readonly upstreamPort: number
  /** Of the upstream whose streams take their time. */
  readonly slowPort: number
  /** The upstream behind TLS; absent where nothing is installed that could speak it. */
  readonly tls?: TlsUpstream | undefined
}

export interface TlsUpstream extends Started {
  readonly port: number
  /** The file of the certificate that it shows, for those who are to believe it. */
  readonly certificate: string
}

/** The same upstream as vendors offer it: an nginx in front of it ends TLS. Undefined without nginx and openssl. */
export async function startTls(
  directory: string,
  cores: string,
  upstreamPort: number,
): Promise<TlsUpstream | undefined> {
  const program = findNginx()
  if (!program || !runs('openssl', ['version'])) return undefined
  const prefix = join(directory, 'tls')
  mkdirSync(prefix, { recursive: true })
  const [certificate, key] = [join(prefix, 'certificate.pem'), join(prefix, 'key.pem')]
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=localhost',
      '-addext',
      'subjectAltName=DNS:localhost,IP:127.0.0.1',
      '-keyout',
      key,
      '-out',
      certificate,
    ],
    { stdio: 'ignore' },
  )
  const port = await freePort()
  writeFileSync(
    join(prefix, 'nginx.conf'),
    `${nginxHead(prefix)}
  upstream mock { server 127.0.0.1:${upstreamPort}; keepalive 4096; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port} ssl backlog=4096;
    ssl_certificate ${certificate}; ssl_certificate_key ${key}; ssl_session_cache shared:SSL:10m;
    location / { proxy_pass http://mock; }
  }
}
`,
  )
  const logFile = join(prefix, 'output')
  return {
    ...(await start(program, ['-p', prefix, '-c', join(prefix, 'nginx.conf')], { cores, port, logFile })),
    port,
    certificate,
  }
}

function findNginx(): string | undefined {
  return ['nginx', '/usr/sbin/nginx'].find((name) => runs(name, ['-v']))
}

function nginxHead(prefix: string): string {
  return `daemon off; master_process off; worker_processes 1; pid ${prefix}/nginx.pid; error_log ${prefix}/error.log;
events { worker_connections 16384; }
http {
  access_log off; keepalive_requests 100000000; client_max_body_size 64m; client_body_buffer_size 2m;
  client_body_temp_path ${prefix}/body; proxy_temp_path ${prefix}/proxy; fastcgi_temp_path ${prefix}/f;
  uwsgi_temp_path ${prefix}/u; scgi_temp_path ${prefix}/s;
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;`
}

export function aimAt(target: Target, body: string, path = '/v1/chat/completions'): Aim {
  return { port: target.port, path, headers: target.headers, body }
}

/** A plain reverse proxy with connections kept alive: the practical limit. Undefined when it is not installed. */
export async function startNginx({
  directory,
  cores,
  upstreamPort,
  slowPort,
  tls,
}: TargetOptions): Promise<Target | undefined> {
  const program = findNginx()
  if (!program) return undefined
  const port = await freePort()
  const prefix = join(directory, 'nginx')
  mkdirSync(prefix, { recursive: true })
  writeFileSync(
    join(prefix, 'nginx.conf'),
    `${nginxHead(prefix)}
  upstream mock { server 127.0.0.1:${upstreamPort}; keepalive 4096; keepalive_requests 100000000; }
  upstream slow { server 127.0.0.1:${slowPort}; keepalive 4096; }
  ${tls ? `upstream tls { server 127.0.0.1:${tls.port}; keepalive 4096; keepalive_requests 100000000; }` : ''}
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / { proxy_pass http://mock; }
    location /slow/ { proxy_pass http://slow/; }
    ${tls ? 'location /tls/ { proxy_pass https://tls/; }' : ''}
  }
}
`,
  )
  const started = await start(program, ['-p', prefix, '-c', join(prefix, 'nginx.conf')], {
    cores,
    port,
    logFile: join(prefix, 'output'),
  })
  // The version is written to the error output.
  const version = execFileSync('sh', ['-c', `${program} -v 2>&1`], { encoding: 'utf8' })
  return {
    ...started,
    name: 'nginx',
    version: version.replace(/^.*nginx\//s, '').trim(),
    port,
    headers: {},
    slow: { path: '/slow/v1/chat/completions' },
    tls: { path: '/tls/v1/chat/completions' },
  }
}

const PEER = { '@portkey-ai/gateway': '1.15.2' }
/** With a newer one the peer's streams do not flow. */
const PEER_OVERRIDES = { '@hono/node-server': '1.13.8' }

/** The peer: a gateway that does no billing. Undefined when npm cannot install it. */
export async function startPortkey({
  directory,
  cores,
  upstreamPort,
  slowPort,
}: TargetOptions): Promise<Target | undefined> {
  const home = join(homedir(), '.cache', 'tollgate-bench', 'portkey')
  const program = join(home, 'node_modules', '@portkey-ai', 'gateway', 'build', 'start-server.js')
  if (!existsSync(program)) {
    mkdirSync(home, { recursive: true })
    const manifest = { name: 'bench-peer', private: true, dependencies: PEER, overrides: PEER_OVERRIDES }
    writeFileSync(join(home, 'package.json'), JSON.stringify(manifest))
    if (!runs('npm', ['install', '--prefix', home, '--no-audit', '--no-fund', '--ignore-scripts'])) return undefined
  }
  const headersFor = (hostPort: number) => ({
    Authorization: 'Bearer sk-bench',
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `http://127.0.0.1:${hostPort}/v1`,
  })
  const port = await freePort()
  const started = await start(process.execPath, [program, `--port=${port}`, '--headless'], {
    cores,
    port,
    logFile: join(directory, 'portkey.log'),
    env: { NODE_ENV: 'production' },
  })
  return {
    ...started,
    name: 'Portkey',
    version: Object.values(PEER)[0]!,
    port,
    headers: headersFor(upstreamPort),
    slow: { headers: headersFor(slowPort) },
  }
}
