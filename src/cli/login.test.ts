// Login providers, ways back in and the export of the audit log from the command line.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { commandLineOf } from '../../test/command-line.ts'
import { assert, started, temporary, test } from '../../test/kit.ts'
import { startScriptedProvider } from '../../test/login-provider.ts'
import { asOperator, startOperatorServer } from '../../test/operator-server.ts'
import type { AuditExportView } from '../extensions/finance/audit/views.ts'

const provider = started(startScriptedProvider)
const server = started(() => startOperatorServer({ outboundAllow: [provider.hostAndPort], anyReceiver: true }))
const folder = temporary('tollgate-cli-')

const SECRET = 'client-secret-of-corp'
const { run, json } = commandLineOf(() => server, {
  secrets: { CORP_SECRET: SECRET, S3_SECRET: 'secret-of-the-bucket' },
})

test('a login provider is set from a file, tested, listed and removed; its secret is never shown', async () => {
  const { id: account } = await json<{ id: string }>(['accounts', 'create', 'Corp'])
  const file = join(folder, 'corp.json')
  const fields = {
    name: 'Corp',
    issuer: provider.issuer,
    clientId: 'tollgate',
    domains: [{ domain: 'corp.example', account, role: 'member', ssoOnly: true }],
    groups: [{ group: 'desk', role: 'support' }],
  }
  assert.match((await run(['login-providers', 'list'])).out, /None yet/)
  assert.match((await run(['login-providers', 'set', 'corp', file])).err, /could not be read/)
  await writeFile(file, '{')
  assert.match((await run(['login-providers', 'set', 'corp', file])).err, /is not JSON/)
  await writeFile(file, JSON.stringify(fields))
  assert.match((await run(['login-providers', 'set', 'corp', file, '--secret-env', 'NONE'])).err, /no value/)
  const set = await run(['login-providers', 'set', 'corp', file, '--secret-env', 'CORP_SECRET'])
  assert.equal(set.code, 0, set.err)
  assert.match(set.out, new RegExp(`corp\\.example +${account} +member +yes`))
  assert.match(set.out, /desk +– +support/)
  const tested = await run(['login-providers', 'test', 'corp'])
  assert.deepEqual(
    [tested.code, tested.out.trim()],
    [0, 'It answers, and its metadata has everything that is needed.'],
    tested.err,
  )
  const again = await run(['login-providers', 'set', 'corp', file])
  assert.match(again.out, /Has secret +(yes|true)/i, 'a stored secret stays')
  const list = await run(['login-providers', 'list'])
  assert.match(list.out, /corp +Corp +http:.+corp\.example/)
  for (const { out, err } of [set, again, list, await run(['login-providers', 'list', '--json'])])
    assert.ok(!`${out}${err}`.includes(SECRET))
  await writeFile(file, JSON.stringify({ ...fields, domains: [{ domain: 'gmail.com', account, role: 'member' }] }))
  assert.match((await run(['login-providers', 'set', 'corp', file])).err, /shared by many organizations/)
  assert.equal((await run(['login-providers', 'remove', 'corp'])).out.trim(), 'Removed.')
  assert.equal((await run(['login-providers', 'test', 'corp'])).code, 1)
})

test('roles that need a second factor, and ways back in', async () => {
  assert.match((await run(['login-policy', 'show'])).out, /factor: none/)
  assert.match((await run(['login-policy', 'change', 'owner,operator'])).out, /: owner, operator\./)
  assert.equal((await run(['login-policy', 'change', 'king'])).code, 1)
  assert.match((await run(['login-policy', 'change', 'none'])).out, /factor: none/)
  assert.equal((await run(['login-link', 'nobody@example.com'])).code, 1)
  await server.sql(`insert into person (id, email) values ('usr_1', 'a@example.com')`)
  assert.match((await run(['login-link', 'a@example.com'])).out, /\/console\/login#token=/)
  assert.match((await run(['second-factor-reset', 'a@example.com'])).out, /no second factor any more/)
})

test('the last operator is not taken away from the command line', async () => {
  await server.sql(`insert into person (id, email, operator_role) values ('usr_op', 'op@example.com', 'operator')`)
  const refused = await run(['operators', 'role', 'usr_op', 'support'])
  assert.deepEqual([refused.code, /last operator/.test(refused.err)], [1, true], refused.err)
})

test('the export of the audit log is set up, shown and ended', async () => {
  assert.match((await run(['audit-export', 'show'])).out, /^Target +–$/m)
  const hook = await run(['audit-export', 'webhook', 'https://siem.example/secret-path', '--from', 'now'])
  assert.match(hook.out, /webhook.*siem\.example/s, hook.err)
  assert.match(hook.out, /whsec_/)
  assert.ok(!hook.out.includes('secret-path'))
  const bucket = ['audit-export', 's3', 'https://s3.example', 'logs', '--access-key', 'AKID', '--wait', '60']
  assert.match((await run(bucket)).err, /secretAccessKey/)
  const s3 = await run([...bucket, '--secret-env', 'S3_SECRET'])
  assert.match(s3.out, /s3.*logs/s, s3.err)
  assert.ok(!s3.out.includes('secret-of-the-bucket'))
  const view = await json<AuditExportView>(['audit-export', 'show'])
  assert.deepEqual([view.target?.kind, view.waitSeconds, view.failures], ['s3', 60, 0])
  assert.match((await run([...bucket, '--wait', 'soon'])).err, /--wait takes a whole number/)
  assert.match((await run(['audit-export', 'off'])).out, /has ended/)
  assert.equal((await run(['audit-export', 'off'])).code, 1)
  const { data } = await asOperator(server)<{ items: Array<{ sentence: string }> }>('GET', '/audit?action=audit.export')
  assert.match(String(data.items[0]?.sentence), /changed where the audit log is exported to: kind was s3/)
})
