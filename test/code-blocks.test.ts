// Every code block of README, guides and reference runs, in its language, against one gateway.

import { chmod, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parse as parseYaml } from 'yaml'
import defaultCatalog from '../src/catalog/default.json' with { type: 'json' }
import { checkDocument } from '../src/catalog/document.ts'
import { ALL_ENDPOINTS } from '../src/entries.ts'
import { blocksOf, pages, programsOf, ROOT } from './code-blocks.ts'
import { commandLineOf } from './command-line.ts'
import { after, assert, BY, OPERATOR_TOKEN, test, testGateway } from './gateway.ts'
import { runProgram } from './sdk/cache.ts'
import { wav } from './sound.ts'

const RUN_MS_MAX = 120_000
let room: string
let key: string
let placeholders: ReadonlyArray<readonly [RegExp, string]>

/** The commands run in this process: some fifty of them, each in one of its own, would take minutes. */
const ASK = `for word; do set -- "$@" --data-urlencode "word=$word"; shift; done
code=$(PATH="$OUTER_PATH" curl -sS --unix-socket commands "$@" --data-urlencode input@- http://tollgate/)
cat out; cat err >&2; exit "$code"`
const commands = createServer(async (request, response) => {
  const given = new URLSearchParams(await text(request))
  const { TOLLGATE_DATA: dataDirectory } = g.config
  const commandLine = commandLineOf(() => g, { apiKey: key, dataDirectory, codexHome: join(dataDirectory, 'codex') })
  const said = await commandLine.run(given.getAll('word'), { input: given.get('input') ?? '' })
  await Promise.all([writeFile(join(room, 'out'), said.out), writeFile(join(room, 'err'), said.err)])
  response.end(String(said.code))
})

const g = testGateway({ env: { TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN } }, async () => {
  const made = await g.account({ credits: 1_000_000_000_000n })
  key = made.key
  const { id: keyId } = await g.gateway.keys.create(made.id, { name: 'of the guides' }, BY)
  // What a reader puts in.
  placeholders = [
    [/http:\/\/127\.0\.0\.1:8080/g, g.url],
    [/tg_live_…/g, key],
    [/acc_(?:01)?…|acc_01jd0\b|acc_1\b|<account>|\bACCOUNT\b(?!")/g, made.id],
    [/key_01…|\bKEY\b/g, keyId],
  ]
  room = await mkdtemp(join(tmpdir(), 'blocks-'))
  await mkdir(join(room, 'bin'))
  await symlink(join(ROOT, 'node_modules'), join(room, 'node_modules'))
  const shim = (name: string, text: string) => writeFile(join(room, 'bin', name), `#!/bin/sh\n${text}\n`)
  process.chdir(room)
  await new Promise<void>((resolve) => commands.listen(join(room, 'commands'), resolve))
  await shim('tollgate', ASK)
  await shim('npx', `[ "$1" = tollgate ] || { echo "npx $1 is not run here" >&2; exit 1; }\nshift\n${ASK}`)
  // A refusal is a failure of the block.
  await shim('curl', 'PATH="$OUTER_PATH" exec curl --fail-with-body "$@"')
  for (const name of ['tollgate', 'npx', 'curl']) await chmod(join(room, 'bin', name), 0o755)
  await writeFile(join(room, 'recording.wav'), wav(3))
  await writeFile(join(room, 'key.txt'), 'sk-of-the-guides-0123456789')
  await cp(join(ROOT, 'test/clients/types/harbour.png'), join(room, 'harbour.png'))
})
after(async () => {
  commands.close()
  process.chdir(ROOT)
  await rm(room, { recursive: true, force: true })
})

const filled = (code: string) => placeholders.reduce((said, [what, by]) => said.replaceAll(what, () => by), code)
const environment = () => ({
  PATH: `${join(room, 'bin')}:${process.env.PATH}`,
  OUTER_PATH: process.env.PATH,
  HOME: room,
  TOLLGATE: g.url,
  GATEWAY: g.url,
  TOLLGATE_URL: g.url,
  TOLLGATE_KEY: key,
  TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN,
  OPERATOR_TOKEN,
  ACCOUNT: placeholders[2]?.[1],
})

for (const page of pages) {
  const shell = blocksOf(page).filter(({ language, notRun }) => language === 'sh' && !notRun)
  if (shell.length > 0)
    test(`the shell blocks of ${page} run`, async () => {
      const script = shell.map(({ line, code }) => `echo "@@ ${page}:${line}" >&2\n${filled(code)}`).join('\n')
      const { code, out, err } = await runProgram('bash', ['-euo', 'pipefail', '-c', script], {
        cwd: room,
        env: environment(),
        timeoutMs: RUN_MS_MAX,
      })
      // Each page finds the catalog as it is shipped.
      await g.gateway.catalog.rollback(1, BY)
      assert.equal(code, 0, `${err.slice(err.lastIndexOf('@@'))}\n${out.slice(-1000)}`)
    })

  const programs = programsOf(page, ['ts', 'js'], /^import /m)
  if (programs.length > 0)
    test(`the TypeScript of ${page} runs`, async () => {
      if (page.includes('05-text')) await g.gateway.catalog.amend((now) => ({ ...now, allClientFormats: true }), BY, '')
      const known = page.startsWith('docs/reference/') // Its pages say that "client" is one of the clients.
      const imports = `import { Tollgate } from '${join(ROOT, 'clients/typescript/src/index.ts')}'\nconst client = new Tollgate()\n`
      for (const [index, { code }] of programs.entries())
        await writeFile(join(room, `block-${index}.mts`), `${known ? imports : ''}${filled(code)}`)
      const all = programs.map(({ at }, index) => `console.error('@@ ${at}')\nawait import('./block-${index}.mts')`)
      await writeFile(join(room, 'blocks.mts'), all.join('\n'))
      const ran = await runProgram(process.execPath, ['--no-warnings', 'blocks.mts'], {
        cwd: room,
        env: environment(),
        timeoutMs: RUN_MS_MAX,
      })
      await g.gateway.catalog.rollback(1, BY)
      assert.equal(ran.code, 0, ran.err.slice(ran.err.lastIndexOf('@@')))
    })
}

/** "…" stands for what is left out. */
const whole = (code: string) => code.replaceAll(/,\s*…(?=\s*[}\]])/g, '').replaceAll('[…]', '[]')

test('JSON blocks are JSON, fit the answer that they show, and make a catalog that is valid', async () => {
  // The named shapes that answers refer to.
  const { components } = (await (await fetch(`${g.url}/openapi.json`)).json()) as { components: object }
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  for (const page of pages)
    for (const { language, code, line, answer, notRun } of blocksOf(page)) {
      if (language !== 'json' || notRun) continue
      const at = `${page}:${line}`
      let value: Record<string, object>
      try {
        value = JSON.parse(whole(code))
      } catch (error) {
        assert.fail(`${at}: ${(error as Error).message}`)
      }
      if (answer) {
        const spec = ALL_ENDPOINTS.find(({ id }) => id === answer)
        assert.ok(spec?.answer, `${at}: there is no endpoint "${answer}" with a schema`)
        const fits = ajv.compile({ ...spec.answer, components })
        assert.ok(fits(value), `${at}: ${ajv.errorsText(fits.errors)}`)
      }
      if (!('models' in value || 'vendors' in value)) continue
      const checked = checkDocument(merged(defaultCatalog, value))
      assert.ok(checked.ok, checked.ok ? '' : `${at}: ${checked.problems.join('; ')}`)
    }
})

/** Objects member by member; what is no object is replaced. */
function merged(into: unknown, value: unknown): unknown {
  const isObject = (one: unknown): one is Record<string, unknown> =>
    typeof one === 'object' && one !== null && !Array.isArray(one)
  if (!isObject(into) || !isObject(value)) return value
  const members = Object.entries(value).map(([name, one]) => [name, merged(into[name], one)])
  return { ...into, ...Object.fromEntries(members) }
}

test('YAML blocks can be read', () => {
  for (const page of pages)
    for (const { language, code, notRun } of blocksOf(page))
      if (/^ya?ml$/.test(language) && !notRun) assert.ok(parseYaml(code))
})

test('the Python of every page compiles; the long tests run it', async (t) => {
  const found = await runProgram('python3', ['--version'])
  if (found.code !== 0) {
    console.log('The Python of the pages was not compiled: there is no python3')
    return t.skip('there is no python3')
  }
  const blocks = pages.flatMap((page) => blocksOf(page).filter(({ language }) => /^py(thon)?$/.test(language)))
  assert.ok(blocks.length > 40)
  const file = join(room, 'blocks.json')
  await writeFile(file, JSON.stringify(blocks))
  const program = `import json, sys
for block in json.load(open(sys.argv[1])): compile(block["code"], f'{block["page"]}:{block["line"]}', "exec")`
  const { code, err } = await runProgram('python3', ['-c', program, file])
  assert.equal(code, 0, err)
})

/** Of outputs and settings there is nothing to run. */
const LANGUAGES = ['', 'sh', 'ts', 'js', 'json', 'yaml', 'yml', 'py', 'python']

test('a block that is not run says why', (t) => {
  for (const page of pages)
    for (const { language, line, notRun } of blocksOf(page)) {
      if (notRun) t.diagnostic(`${page}:${line} (${language}) is not run: ${notRun}`)
      else
        assert.ok(LANGUAGES.includes(language), `${page}:${line}: nobody runs "${language}", and it does not say why`)
    }
})
