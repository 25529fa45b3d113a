// Keycloak, unchanged, as the login provider: a person who did not exist comes in by their group, Keycloak signs them
// out, and an unverified address gets nowhere.

import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { SsoStep } from '../../src/extensions/directory/views.ts'
import type { WhoView } from '../../src/identity/views.ts'
import { assert, freePort, test, until } from '../kit.ts'
import { CLIENT_ID, CLIENT_SECRET } from '../login-provider.ts'
import { asBrowser, asOperator, startOperatorServer } from '../operator-server.ts'
import { mavenArchive } from '../sdk/cache.ts'

const VERSION = '26.4.0'
const PASSWORD = 'a password at keycloak'
/** It builds itself anew at the first start. */
const START_MS_MAX = 600_000

/** Runs it in memory; nothing is left behind but what it builds for itself in its own directory. */
async function startKeycloak(directory: string): Promise<{ url: string; stop: () => Promise<void> }> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const args = ['start-dev', `--http-port=${port}`, '--http-host=127.0.0.1']
  const child = spawn(join(directory, `keycloak-${VERSION}`, 'bin', 'kc.sh'), args, {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      KC_DB: 'dev-mem',
      JAVA_OPTS_KC_HEAP: '-Xms64m -Xmx512m',
      KC_BOOTSTRAP_ADMIN_USERNAME: 'admin',
      KC_BOOTSTRAP_ADMIN_PASSWORD: 'admin',
    },
    // The script starts Java as its own child; the group ends both.
    detached: true,
    stdio: 'ignore',
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const stop = async () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
    await ended
  }
  const answers = () =>
    fetch(`${url}/realms/master`).then(
      ({ ok }) => ok,
      () => false,
    )
  await until(answers, undefined, START_MS_MAX).catch(async (error: unknown) => {
    await stop()
    throw error
  })
  return { url, stop }
}

/** Its admin API. */
async function adminOf(url: string) {
  const form = { grant_type: 'password', client_id: 'admin-cli', username: 'admin', password: 'admin' }
  const token = await fetch(`${url}/realms/master/protocol/openid-connect/token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  })
  const { access_token: bearer } = (await token.json()) as { access_token: string }
  return async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`${url}/admin/realms${path}`, {
      method,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`)
    return text ? JSON.parse(text) : undefined
  }
}

const person = (username: string, emailVerified: boolean) => ({
  username,
  email: `${username}@corp.example`,
  emailVerified,
  enabled: true,
  groups: ['/platform'],
  firstName: username,
  lastName: 'Test',
  credentials: [{ type: 'password', value: PASSWORD, temporary: false }],
})

const realm = (gateway: string) => ({
  realm: 'corp',
  enabled: true,
  sslRequired: 'none',
  groups: [{ name: 'platform' }],
  users: [person('nora', true), person('nils', false)],
  clients: [
    {
      clientId: CLIENT_ID,
      secret: CLIENT_SECRET,
      protocol: 'openid-connect',
      publicClient: false,
      redirectUris: [`${gateway}/console/sso/corp`],
      attributes: {
        'pkce.code.challenge.method': 'S256',
        'backchannel.logout.url': `${gateway}/sso/corp/logout`,
        'backchannel.logout.session.required': 'true',
      },
      protocolMappers: [
        {
          name: 'groups',
          protocol: 'openid-connect',
          protocolMapper: 'oidc-group-membership-mapper',
          config: { 'claim.name': 'groups', 'full.path': 'false', 'id.token.claim': 'true' },
        },
      ],
    },
  ],
})

/** Fills in Keycloak's own form, as a browser does, and returns the query with which it sends the browser back. */
async function logInAt(address: string, username: string): Promise<string> {
  const form = await fetch(address, { redirect: 'manual' })
  const page = await form.text()
  const action = /<form[^>]*action="([^"]+)"/.exec(page)?.[1]?.replaceAll('&amp;', '&')
  assert.ok(action, page.slice(0, 500))
  const cookie = form.headers
    .getSetCookie()
    .map((set) => set.split(';')[0])
    .join('; ')
  const body = new URLSearchParams({ username, password: PASSWORD, credentialId: '' })
  const back = await fetch(action, { method: 'POST', redirect: 'manual', headers: { cookie }, body })
  const location = back.headers.get('location')
  assert.ok(location, `${back.status}: ${(await back.text()).slice(0, 500)}`)
  return new URL(location).search.slice(1)
}

test(`Keycloak ${VERSION} lets people in by their groups, and signs them out`, async (t) => {
  const found = await mavenArchive(`org.keycloak:keycloak-quarkus-dist:${VERSION}:zip`)
  if ('missing' in found) {
    console.log(`Keycloak was not tested: ${found.missing}`)
    return t.skip(found.missing)
  }
  const keycloak = await startKeycloak(found.directory)
  t.after(keycloak.stop)
  const server = await startOperatorServer({ outboundAllow: [new URL(keycloak.url).host] })
  t.after(() => server.close())
  const admin = await adminOf(keycloak.url)
  await admin('POST', '', realm(server.url))
  const account = (await asOperator(server)<{ id: string }>('POST', '/accounts', { name: 'Corp', credits: '1' })).data
    .id
  const stored = await asOperator(server)('PUT', '/login-providers/corp', {
    name: 'Keycloak',
    issuer: `${keycloak.url}/realms/corp`,
    clientId: CLIENT_ID,
    secret: CLIENT_SECRET,
    groups: [{ group: 'platform', account, role: 'admin' }],
  })
  assert.equal(stored.status, 200, stored.text)

  const come = async (username: string) => {
    const browser = asBrowser(server)
    const begun = await browser<{ redirect: string }>('POST', '/login/sso', { provider: 'corp' })
    const parameters = await logInAt(begun.data.redirect, username)
    return { browser, answer: await browser<SsoStep>('POST', '/login/sso/finish', { provider: 'corp', parameters }) }
  }
  const { browser, answer } = await come('nora')
  assert.equal(answer.data?.signedIn, true, answer.text)
  const { user, accounts } = (await browser<WhoView>('GET', '/session')).data
  assert.equal(user.email, 'nora@corp.example')
  assert.deepEqual(accounts, [{ id: account, name: 'Corp', role: 'admin' }])
  assert.equal((await come('nils')).answer.status, 403, 'an unverified address')

  const [nora] = await admin('GET', '/corp/users?username=nora')
  await admin('POST', `/corp/users/${nora.id}/logout`)
  await until(async () => (await browser('GET', '/session')).status, 401)
})
