// The first day with the console, in a real browser against a real gateway: from the printed link to a revoked key.
import { clip, RATIOS } from '../../sandbox/media.ts'
import { paint } from '../../sandbox/picture.ts'
import { formatCredits } from '../../src/kernel/credits.ts'
import { firstMinute } from '../../src/process/serve.ts'
import { assert, BY, OPERATOR_TOKEN, SECRET, started, test } from '../gateway.ts'
import { PASSWORD, pageOf, rowAction, startConsole } from './console.ts'
import { videoLoaded } from './pages.ts'
import { EXACT, enter, FIRST, goTo, inDialog, pick, press, see, seeRow, sight, steps, tick } from './steps.ts'

const EMAIL = 'op@example.com'

let account = ''
let key = ''

const home = started(startConsole)
const operator = started(() => home.visitor())
const page = pageOf(operator)

test('the link that the first start prints makes the operator’s login, once', async () => {
  const lines: string[] = []
  await firstMinute({
    gateway: home.gateway,
    config: home.config,
    url: home.url,
    store: 'a test',
    seconds: 0,
    directory: { secret: SECRET, operatorToken: OPERATOR_TOKEN, tokenIsNew: false },
    say: (line) => lines.push(line),
  })
  const link = lines.map((line) => line.trim()).find((line) => line.includes('/console/setup#token='))
  assert.ok(link, 'the first start prints a link')
  account = (await home.ask<{ items: { id: string }[] }>('GET', '/accounts')).items[0]!.id

  await page.goto(link)
  await page.getByLabel('Email').fill(EMAIL)
  await page.locator('input[name=password]').fill(PASSWORD)
  await steps(page, enter('Password again', PASSWORD), press('Create the operator’s login'), sight('heading', 'Home'))
  await steps(page, see('Connect a real vendor'), goTo('Accounts', { ...EXACT, ...FIRST }))
  await steps(page, sight('link', /First account/, FIRST))

  const late = await home.visitor()
  await late.page.goto(link)
  await late.page.getByLabel('Email').fill('thief@example.com')
  await late.page.locator('input[name=password]').fill(PASSWORD)
  await steps(late.page, enter('Password again', PASSWORD), press('Create the operator’s login'))
  await late.page.locator('.fault').waitFor()
  assert.match(late.page.url(), /\/setup/)
  await late.close()
})

test('signing out and in again leads back to the page that was asked for', async () => {
  await page.getByRole('button', { name: 'Sign out' }).locator('visible=true').first().click()
  await page.getByRole('heading', { name: /Sign in/ }).waitFor()
  await page.goto(`${home.url}/console/a/${account}/keys`)
  await steps(page, enter('Email', EMAIL), enter('Password', 'not the password at all'), press('Sign in'))
  await steps(page, see('The email address or the password is not right.'), enter('Password', PASSWORD))
  await steps(page, press('Sign in'), sight('heading', 'Keys'))
  assert.equal(new URL(page.url()).pathname, `/console/a/${account}/keys`)
})

test('a key is shown once and stays nowhere in the browser', async () => {
  const { page, context } = operator
  await operator.go(`/a/${account}/keys?new=1`)
  await steps(page, enter('Name', 'website'), inDialog(press('Create key')))
  key = (await page.getByTestId('key-value').textContent()) ?? ''
  assert.match(key, /^tg_live_\w{30,}$/)
  assert.equal((await home.call('/v1/models', key)).status, 200)

  await page.getByRole('button', { name: 'I have copied it' }).click()
  await page.getByTestId('key-value').waitFor({ state: 'detached' })
  await page.getByRole('row', { name: /website/ }).waitFor()
  const left = async () =>
    [
      await page.content(),
      JSON.stringify(await context.storageState({ indexedDB: true })),
      (await page.evaluate('JSON.stringify([{ ...sessionStorage }, history.state, location.href])')) as string,
    ].join('\n')
  assert.ok(!(await left()).includes(key), 'the value is gone when the dialog is')
  await page.reload()
  await page.getByRole('row', { name: /website/ }).waitFor()
  assert.ok(!(await left()).includes(key), 'and does not come back')
})

test('a key for a coding agent takes two clicks, and a coding agent can work with it', async () => {
  const team = await home.gateway.accounts.create({ name: 'Team', credits: 1_000_000_000n }, BY)
  await operator.go(`/a/${team}/keys`)
  await page.getByRole('button', { name: 'Key for an agent' }).click()
  assert.equal(await page.getByRole('radio', { name: /^A coding agent.*text models/ }).isChecked(), true)
  await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click()
  const value = (await page.getByTestId('key-value').textContent()) ?? ''
  const { data: offered } = (await (await home.call('/v1/models', value)).json()) as { data: { id: string }[] }
  assert.ok(offered.some(({ id }) => id === 'alpha-5.4'))
  await page.getByText('Use it with a coding agent').click()
  const settings = await page.getByRole('region', { name: '.claude/settings.json' }).textContent()
  const { env } = JSON.parse(settings ?? '') as { env: Record<string, string> }
  assert.equal(env.ANTHROPIC_DEFAULT_HAIKU_MODEL, 'beta-haiku-4-5')
  for (const model of [env.ANTHROPIC_MODEL, env.ANTHROPIC_DEFAULT_HAIKU_MODEL]) {
    assert.ok(
      offered.some(({ id }) => id === model),
      `${model} is among the models of the key`,
    )
    // As many tokens as Claude Code asks for: the reservation has to fit into the key's limit.
    const body = { model, max_tokens: 32_000, messages: [{ role: 'user', content: 'Hello' }] }
    assert.equal((await home.call('/beta/v1/messages', value, body)).status, 200)
  }
  await page.getByRole('tab', { name: 'Codex' }).click()
  await page.getByRole('region', { name: '.codex/config.toml' }).getByText(`${home.url}/mcp`).waitFor()
  await steps(page, press('I have copied it'), seeRow(/coding agent/))
})

test('a key for data tools says that it calls no model, and comes with the address of the tools alone', async () => {
  await operator.go(`/a/${account}/keys`)
  await page.getByRole('button', { name: 'Key for an agent' }).click()
  await page.getByRole('radio', { name: /^Data tools.*May not call any model/ }).check()
  await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click()
  const value = (await page.getByTestId('key-value').textContent()) ?? ''
  const mine = (await (await home.call('/v1/account', value)).json()) as any
  assert.deepEqual(mine.data.key.models, ['siteanalytics', 'socialapi'])
  assert.equal(mine.data.key.limits.spendPerDay, '5')
  await page.getByRole('region', { name: 'Claude Code' }).getByText(`${home.url}/mcp`).waitFor()
  assert.equal(await page.getByText('Use it with a coding agent').count(), 0)
  await steps(page, press('I have copied it'), seeRow(/data tools/))
})

test('a test key is made with a tick, and its balance refilled with a click', async () => {
  await operator.go(`/a/${account}/keys?new=1`)
  await steps(page, enter('Name', 'pipeline'), tick(/^Test key/), inDialog(press('Create key')))
  const value = (await page.getByTestId('key-value').textContent()) ?? ''
  assert.match(value, /^tg_test_\w{38}$/)
  const body = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello' }], max_completion_tokens: 20 }
  assert.equal((await home.call('/v1/chat/completions', value, body)).status, 200)
  await steps(page, press('I have copied it'), seeRow(/pipeline.*Test/))
  await page.getByTestId('test-balance').getByRole('button', { name: 'Refill' }).click()
  await page.getByTestId('test-balance').getByText('1,000 credits').waitFor()
  await operator.go(`/a/${account}/usage?test=true`)
  await page.getByRole('row', { name: /alpha-5\.4.*pipeline/ }).waitFor()
})

test('a chat streams into the playground, and its charge is in the usage, its cost breakdown and the overview', async () => {
  await operator.go(`/a/${account}/playground/chat`)
  // The heading of the page that is left may still be there when the new one's is waited for.
  await page.locator('.talk-log').waitFor({ state: 'attached' })
  await page.evaluate(
    `window.seen = []; new MutationObserver(() => window.seen.push(document.querySelector('.talk-log article:last-of-type')?.textContent.length))
      .observe(document.querySelector('.talk-log'), { subtree: true, childList: true, characterData: true })`,
  )
  const answered = page.waitForResponse((response) => response.url().includes('/play/v1/chat-completions'))
  // A pace at which a quick machine cannot bring the whole answer in one piece.
  await steps(page, enter('Message', 'What does a gateway do? [[slow=10]]', EXACT), press('Send'))
  assert.match((await answered).headers()['content-type'] ?? '', /^text\/event-stream/)
  await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
  const seen = (await page.evaluate('new Set(window.seen).size')) as number
  assert.ok(seen > 3, `the answer grew ${seen} times on the page`)
  assert.match((await page.getByRole('log').textContent()) ?? '', /What does a gateway do\?.*sandbox/s)
  const charged = /([\d.]+) credits/.exec((await page.locator('.receipt').textContent()) ?? '')?.[1]
  assert.ok(charged && Number(charged) > 0, 'the receipt names the charge')

  await steps(page, goTo('Cost breakdown'), see('How the charge was calculated'))
  assert.ok(((await page.locator('.sum').textContent()) ?? '').includes(charged))

  await operator.go(`/a/${account}/usage`)
  await page
    .getByRole('row', { name: /alpha-5\.4/ })
    .filter({ hasText: charged })
    .waitFor()

  await operator.go(`/a/${account}`)
  await page.getByText('Spend', { exact: true }).first().waitFor()
  const { available } = await home.ask<{ available: string }>('GET', `/accounts/${account}`)
  assert.equal(Number(available), 1000 - Number(charged))
  const stats = (await page.locator('main').textContent()) ?? ''
  assert.match(stats, new RegExp(`Spent${Number(charged).toFixed(2)}`))
  assert.match(stats, /Calls1/)
})

test('an image is made and shown', async () => {
  await operator.go(`/a/${account}/playground/image`)
  await steps(page, enter('Prompt', 'A lighthouse at dusk, watercolour'), press('Generate image'))
  const picture = page.locator('.picture img')
  await picture.waitFor()
  await picture.evaluate((image) => (image as unknown as { decode(): Promise<void> }).decode())
  assert.ok(await picture.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth > 100))
})

test('a video job runs to its player', async () => {
  await operator.go(`/a/${account}/playground/video`)
  await steps(page, enter('Prompt', 'A paper boat drifts down a stream'), press('Generate video'))
  await videoLoaded(page)
  assert.ok(((await page.evaluate('document.querySelector("video").duration')) as number) > 0)

  await operator.go(`/a/${account}/jobs`)
  await page.getByRole('link', { name: /A paper boat/ }).click()
  await page.locator('video').waitFor()
})

test('an analytics endpoint is a form, and its answer a chart', async () => {
  await operator.go(`/a/${account}/playground/analytics?endpoint=siteanalytics%2Fwebsites%2Fvisits%2Ftrend`)
  await page.getByRole('textbox', { name: 'keys' }).fill('example.com')
  await steps(page, press('Run'), sight('tab', 'Chart'))
  const drawn = page.getByRole('tabpanel').locator('svg path, svg polyline')
  await drawn.first().waitFor()
  assert.ok((await drawn.first().boundingBox())!.width > 100)
})

test('an operator sees a new price beside the old one, its cost and margin, applies it, and may undo it', async () => {
  await operator.go('/operator/catalog')
  await rowAction(page, 'Price', 'Alpha 5.4')
  await page.getByLabel('Input, per million tokens').first().fill('251')
  const version = home.gateway.catalog.current.version
  const dialog = page.getByRole('dialog', { name: 'What will change' })
  await page.getByRole('button', { name: 'Preview the change' }).click()
  await dialog.getByRole('row', { name: /Input, per million tokens \d+ 251/ }).waitFor()
  assert.deepEqual(await home.violations(page), [])
  assert.equal(home.gateway.catalog.current.version, version, 'nothing applies before it has been seen')
  await dialog.getByRole('button', { name: 'Apply' }).click()
  await steps(page, see('New prices for Alpha 5.4 apply now.'), press('Undo'), see(/^Version \d+ is undone/))
  const priceNow = () => home.gateway.catalog.current.document.models['alpha-5.4']?.pricing.tiers[0]?.input
  assert.notEqual(formatCredits(priceNow()!), '251')
  // A version opens, and shows the same table.
  await operator.go('/operator/catalog/versions')
  await steps(page, press(`Version ${version + 1}`, EXACT), inDialog(seeRow(/Input, per million tokens \d+ 251/)))
  assert.deepEqual(await home.violations(page), [])
  await operator.go('/operator/catalog')
  await rowAction(page, 'Price', 'Alpha 5.4')
  await steps(page, enter('Input, per million tokens', '251', FIRST), press('Preview the change'))
  await dialog.getByRole('button', { name: 'Apply' }).click()
  await page.getByText('New prices for Alpha 5.4 apply now.').waitFor()
  await operator.go(`/a/${account}/models/alpha-5.4`)
  await page.getByRole('cell', { name: '251', exact: true }).waitFor()
  const models = (await (await home.call('/v1/models', key)).json()) as {
    data: { uid: string; pricing: { tiers: { input: string }[] } }[]
  }
  assert.equal(Number(models.data.find(({ uid }) => uid === 'alpha-5.4')!.pricing.tiers[0]!.input), 251)
})

test('a revoked key is refused at once', async () => {
  await operator.go(`/a/${account}/keys`)
  await steps(page, press('Actions for website'), pick('Revoke'), inDialog(press('Revoke')))
  await page
    .getByRole('row', { name: /website/ })
    .getByText('Revoked')
    .waitFor()
  assert.equal((await home.call('/v1/models', key)).status, 401)
})

test('a browser shows simulated pictures of every format and plays simulated films of every shape', async () => {
  const run = (bytes: Buffer, script: string) =>
    operator.page.evaluate(
      `(async (bytes) => { ${script} })(Uint8Array.from(atob('${bytes.toString('base64')}'), (char) => char.charCodeAt(0)))`,
    )
  const order = { prompt: 'A fox', model: 'alpha-image-2', quality: 'low', seed: 7, references: [], note: '' }
  for (const size of [
    { width: 256, height: 256 },
    { width: 1024, height: 1536 },
    { width: 3840, height: 2160 },
  ])
    for (const format of ['png', 'jpeg', 'webp'] as const) {
      const script = `const bitmap = await createImageBitmap(new Blob([bytes]))
        const { width, height } = bitmap
        const canvas = new OffscreenCanvas(width, height).getContext('2d')
        canvas.drawImage(bitmap, 0, 0)
        return { size: { width, height }, corner: [...canvas.getImageData(width - 1, height - 1, 1, 1).data] }`
      const drawn = await run(await paint({ ...order, ...size, format }), script)
      const { corner, ...rest } = drawn as { size: typeof size; corner: number[] }
      assert.deepEqual(rest, { size }, format)
      // A decoder that ran out of data would leave the last corner grey.
      const teal = [15, 118, 110].every((level, i) => Math.abs(level - (corner[i] ?? 0)) <= 2)
      assert.ok(format === 'png' || teal, `the last corner of a ${format} is ${corner}`)
    }
  for (const ratio of RATIOS) {
    const script = `const video = document.createElement('video')
      video.src = URL.createObjectURL(new Blob([bytes], { type: 'video/mp4' }))
      Object.assign(video, { muted: true, playbackRate: 16 })
      await video.play()
      await new Promise((resolve) => video.addEventListener('ended', resolve))
      return { seconds: video.duration, shape: video.videoWidth / video.videoHeight }`
    const { seconds, shape } = (await run(clip(ratio, 6), script)) as { seconds: number; shape: number }
    const [across = 0, down = 1] = ratio.split(':').map(Number)
    assert.equal(seconds, 6)
    assert.ok(Math.abs(shape - across / down) < 0.02, `${ratio} is shown as ${shape}`)
  }
})
