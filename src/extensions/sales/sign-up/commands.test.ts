import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { commandLineOf } from '../../../../test/command-line.ts'
import { assert, started, temporary, test } from '../../../../test/kit.ts'
import { startOperatorServer } from '../../../../test/operator-server.ts'

const server = started(startOperatorServer)
const folder = temporary('tollgate-cli-')

const { run, json } = commandLineOf(() => server)

test('sign-up and branding are shown and changed from the command line', async () => {
  assert.match((await run(['sign-up', 'show'])).out, /^Sign-up +off$/m)
  assert.match((await run(['sign-up', 'change'])).err, /Nothing to change/)
  assert.match((await run(['sign-up', 'change', '--mode', 'open'])).err, /No mail server is set up/)
  const list = join(folder, 'refused.txt')
  await writeFile(list, 'one.example\ntwo.example\n')
  const terms = ['--terms-version', '1', '--terms-url', 'https://example.com/terms']
  const set = await run([
    'sign-up',
    'change',
    '--mode',
    'invitation',
    '--blocked',
    `@${list}`,
    '--credits',
    '5',
    ...terms,
  ])
  assert.match(set.out, /invitation.*Blocked domains +2.*Starting credits +5.*Terms +version 1, url https:/s, set.err)
  assert.match((await run(['sign-up', 'invite', 'new@example.com'])).out, /\/console\/sign-up#token=/)
  const [{ id }] = await json<[{ id: string }]>(['sign-up', 'invites'])
  assert.match((await run(['sign-up', 'withdraw', id])).out, /does not work any more/)
  assert.match((await run(['sign-up', 'change', '--blocked', 'none', '--mode', 'off'])).out, /Blocked domains +0/)
  const sender = ['--sender', 'a@b.example', '--sender-name', 'Acme']
  const named = await run(['branding', 'change', '--name', 'Acme', '--color', '#7a1fa2', ...sender])
  assert.match(named.out, /Name +Acme.*#7a1fa2.*name Acme, address a@b\.example/s, named.err)
  const logo = join(folder, 'logo.png')
  await writeFile(logo, 'no picture')
  assert.match((await run(['branding', 'logo', logo])).err, /PNG or JPEG/)
  assert.match((await run(['branding', 'change', '--color', 'none', '--name', 'Tollgate'])).out, /Color +none/)
})
