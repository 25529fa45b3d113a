import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandLineOf, type Given } from '../../../test/command-line.ts'
import { assert, before, test, testGateway } from '../../../test/gateway.ts'
import { runProgram } from '../../../test/sdk/cache.ts'
import { isDataEndpoint } from '../../catalog/endpoint.ts'
import { ENDPOINTS } from '../../catalog/index.ts'
import { chartOf, showAnswer } from './present.ts'

let key: string
const g = testGateway()
before(async () => {
  key = (await g.account({ credits: 1_000_000_000_000n })).key
})

const run = (args: string[], given: Given = {}) =>
  commandLineOf(() => g, { token: undefined, apiKey: key }).run(args, given)

test('every data endpoint can be called from the terminal, and says what it cost', async () => {
  const found = await (await g.call('/v1/social/users?username=walker137', key)).json()
  const { data: user } = found as { data: { id: string } }
  for (const spec of ENDPOINTS.filter(isDataEndpoint)) {
    const options = Object.entries(spec.params)
      .filter(([, field]) => field.required)
      .flatMap(([name, field]) => [`--${name}`, name === 'id' ? user.id : field.example])
    const name = spec.id.replace('siteanalytics/', '').replaceAll(/[{}]/g, '')
    const { code, out, err } = await run(['call', name, ...options])
    assert.equal(code, 0, `${name}: ${err}`)
    assert.match(out, /\n\n[\d.]+ credits\.\n$/, name)
    assert.doesNotMatch(out, /\[object Object\]|undefined/, name)
  }
})

test('a table has the rows, a chart has the bars, and JSON has everything', async () => {
  const ask = ['call', 'websites/geography', '--keys', 'example.com', '--pageSize', '4']
  const table = (await run(ask)).out.split('\n')
  assert.match(table[0] ?? '', /^Country +Share +/)
  assert.equal(table.indexOf(''), 5)
  const chart = (await run([...ask, '--by', 'Share'])).out.split('\n')
  assert.match(chart[0] ?? '', /█{40}$/)
  assert.match(chart[3] ?? '', /[█▏▎▍▌▋▊▉]$/)
  const json = JSON.parse((await run([...ask, '--json'])).out)
  assert.equal(json.Data.length, 4)
  const trend = (await run(['call', 'websites/visits/trend', '--keys', 'example.com', '--latest', '7d', '--chart'])).out
  assert.equal(trend.match(/^2026|^20\d\d-\d\d-\d\d +\d+ +█/gm)?.length, 7)
  const visits = (await run(['call', 'websites/visits', '--keys', 'example.com'])).out
  assert.match(visits, /^Data\.example\.com\.TotalVisits +\d+$/m)
  const wrong = await run([...ask, '--by', 'Nothing'])
  assert.match(wrong.err, /no column of numbers "Nothing". There are: Country, Share/)
})

test('a body is made of options, or given whole, in a file or by a pipe', async () => {
  const ask = ['call', 'chat', '--model', 'alpha-5.4', '--messages', '[{"role":"user","content":"hello"}]']
  const answer = JSON.parse((await run([...ask, '--max_tokens', '20', '--temperature', '0.5', '--json'])).out)
  assert.equal(answer.object, 'chat.completion')
  assert.equal((await run(['call', 'embeddings', '--model', 'alpha-embed-3-small', '--input', 'hello'])).code, 0)
  const two = await run(['call', 'embeddings', '--model', 'alpha-embed-3-small', '--input', '["a","b"]', '--json'])
  assert.equal(JSON.parse(two.out).data.length, 2)
  const body = JSON.stringify({ model: 'alpha-5.4', input: 'hello' })
  assert.equal((await run(['call', 'responses', '--body', '-'], { input: body })).code, 0)
  const file = join(await mkdtemp(join(tmpdir(), 'call-')), 'body.json')
  await writeFile(file, body)
  assert.equal((await run(['call', 'responses', '--body', `@${file}`])).code, 0)
  const quote = JSON.parse((await run(['call', 'quote', '--body', body, '--endpoint', 'responses', '--json'])).out)
  assert.equal(quote.data.endpoint, 'responses')
  const models = (await run(['call', 'models'])).out
  assert.match(models, /^MODEL +NAME +TYPE +CREDITS\n/)
  assert.match(models, /^alpha-5\.4 .* text +from 250 in · 1,500 out per million tokens$/m)
  assert.match((await run(['call', 'account'])).out, /^available +\d/m)
  assert.match((await run(['call', 'models/id', '--id', 'alpha-5.4'])).out, /^uid +alpha-5\.4$/m)
})

test('a text is enough: the model is chosen, and what it says is all that is printed', async () => {
  const said = await run(['call', 'chat', 'Hello!'])
  assert.equal(said.code, 0, said.err)
  assert.match(said.err, /^Model: alpha-5\.4\. Choose another with --model/)
  assert.match(said.out, /^Hello[\s\S]*\n\n[\d.]+ credits\.\n$/)
  assert.doesNotMatch(said.out, /choices|finish_reason/)
  for (const endpoint of ['responses', 'messages']) {
    const other = await run(['call', endpoint, 'Hello!'])
    assert.match(other.out, /^Hello/, `${endpoint}: ${other.err}`)
  }
  assert.equal(
    JSON.parse((await run(['call', 'chat', 'Hi', '--model', 'beta-sonnet-5', '--json'])).out).model,
    'beta-sonnet-5',
  )
  assert.match((await run(['call', 'websites/visits', 'example.com'])).out, /TotalVisits/)
  assert.match((await run(['call', 'batches', 'Hi'])).err, /"batches" takes no text as an argument/)
})

test('what is wrong is said in words, with the way out', async () => {
  const cases: [string[], RegExp, number][] = [
    [['call', 'visits'], /There is no endpoint "visits". There are: websites\/visits, .*websites\/history\/visits/, 2],
    [['call', 'websites/visits'], /--keys is required: exactly one ASCII domain/, 2],
    [['call', 'websites/visits', '--keys', 'x'], /keys must be exactly one ASCII domain.* \(req_/, 1],
    [['call', 'websites/visits', '--country', '1', '--nothing', 'x'], /Unknown option '--nothing'/, 2],
    [['call', 'chat', '--messages', 'hello'], /--messages takes JSON/, 2],
    [['call', 'chat', '--body', '{'], /--body is not JSON/, 2],
    [['call', 'account', '--chart'], /no numbers/, 1],
    [['call'], /tollgate call <endpoint> \[text\]/, 2],
    [['call', 'chta'], /There is no endpoint "chta". Did you mean "chat"\?/, 2],
  ]
  for (const [args, words, code] of cases) {
    const said = await run(args)
    assert.match(said.err, words, args.join(' '))
    assert.equal(said.code, code, args.join(' '))
  }
  assert.match((await run(['call', 'account'], { apiKey: undefined })).err, /set TOLLGATE_KEY/)
  assert.match((await run(['call', 'account', '--api-key', 'tg_live_nobody'])).err, /not valid/)
})

test('the help of an endpoint lists its parameters, their values and its rules', async () => {
  const { out } = await run(['call', 'websites/visits', '--help'])
  assert.match(
    out,
    /--webSource <word> +Which visits count\. Takes one of Total, Desktop, MobileWeb\. Default: Total\./,
  )
  assert.match(out, /`latest` does not go with `from` and `to`/)
})

test('strangers’ words cannot move the cursor, and empty answers are said to be empty', () => {
  const rows = [{ Domain: 'a\u001b[2J', Share: 0.5 }]
  assert.doesNotMatch(showAnswer({ Data: rows }) + chartOf({ Data: rows }), /\u001b/)
  assert.equal(showAnswer([]), 'Nothing was found.')
  assert.equal(
    chartOf({
      Data: [
        { Key: 'a', Value: -2 },
        { Key: 'b', Value: 0 },
      ],
    }),
    `a  -2  -${'█'.repeat(40)}\nb   0`,
  )
})

/** What a shell offers after these words. */
async function offered(shell: 'bash' | 'zsh' | 'fish', words: string[]): Promise<string[] | undefined> {
  const { out } = await run(['completion', shell])
  const scripts = {
    bash: `${out}\nCOMP_WORDS=(tollgate ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _tollgate; printf '%s\\n' "\${COMPREPLY[@]}"`,
    zsh: `compdef() { :; }; compadd() { shift; printf '%s\\n' "$@"; }\n${out}\nwords=(tollgate ${words.map((word) => `'${word}'`).join(' ')}); CURRENT=${words.length + 1}; _tollgate`,
    fish: `function commandline; printf '%s\\n' tollgate ${words.slice(0, -1).join(' ')}; end\n${out.replace(/^complete .*$/m, '')}\n__tollgate_words`,
  }
  const ran = await runProgram(shell, ['-c', scripts[shell]])
  if (ran.err === `spawn ${shell} ENOENT`) return undefined
  assert.equal(ran.code, 0, ran.err)
  return ran.out.split('\n').filter(Boolean)
}

for (const shell of ['bash', 'zsh', 'fish'] as const)
  test(`${shell} completes commands, endpoints, options and values`, async (t) => {
    const verbs = await offered(shell, [''])
    if (verbs === undefined) {
      console.log(`Completion for ${shell} was not run: there is no ${shell}.`)
      return t.skip(`there is no ${shell}`)
    }
    for (const verb of ['serve', 'call', 'accounts', 'completion']) assert.ok(verbs.includes(verb), verb)
    const includes = async (words: string[], ...expected: string[]) => {
      const found = (await offered(shell, words)) ?? []
      for (const word of expected)
        assert.ok(found.includes(word), `${words.join(' ')}: ${found.join(' ').slice(0, 200)}`)
    }
    await includes(['accounts', ''], 'list', 'create')
    await includes(['accounts', 'list', ''], '--json')
    await includes(['call', ''], 'websites/visits', 'chat')
    await includes(['call', 'websites/visits', ''], '--keys', '--webSource', '--chart')
    await includes(['call', 'websites/visits', '--webSource', ''], 'Total', 'Desktop', 'MobileWeb')
    await includes(['call', 'websites/visits', '--keys', 'x', '--webSource', ''], 'Total')
  })
