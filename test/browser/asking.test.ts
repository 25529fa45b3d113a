// What is asked from the console itself. Batches: a file is checked by its lines before anything is begun, worked off,
// looked at, cancelled and deleted. The playground beyond its first answer: prices, errors, tools, pictures, several
// models.
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { paint } from '../../sandbox/picture.ts'
import { wavFile } from '../../sandbox/wav.ts'
import { guardrails as extension } from '../../src/extensions/guardrails/extension.ts'
import { assert, BY, before, started, test, until } from '../gateway.ts'
import { pageOf, rowAction, startConsole } from './console.ts'
import { EXACT, enter, FIRST, goTo, inDialog, pick, press, see, seeRow, sight, steps, touch } from './steps.ts'

let account = ''
/** Its limits are changed. */
let batcher = ''

const home = started(startConsole)
const operator = started(() => home.signedIn())
const page = pageOf(operator)
before(async () => {
  account = await home.gateway.accounts.create({ name: 'Harbor Books', credits: 100_000_000n }, BY)
  batcher = await home.gateway.accounts.create({ name: 'Quill Works', credits: 100_000_000n }, BY)
})

const line = (custom_id: string, { model = 'alpha-5.4', content = `Hello ${custom_id}.` } = {}) =>
  JSON.stringify({
    custom_id,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model, max_tokens: 20, messages: [{ role: 'user', content }] },
  })

async function choose(text: string, name = 'lines.jsonl'): Promise<void> {
  const file = { name, mimeType: 'application/jsonl', buffer: Buffer.from(text) }
  await operator.page.locator('input[type=file]').setInputFiles(file)
  await operator.page.getByRole('button', { name: 'Upload and check' }).click()
}

test('a file is checked by its lines before it is begun; then its lines are worked off and lead to their calls', async () => {
  await operator.go(`/a/${batcher}/batches`)
  await steps(page, see('No batches yet'), press('New batch', FIRST))
  await choose(`${line('one')}\n${line('one')}\n{"custom_id":`)
  const problems = page.getByRole('table', { name: 'Problems' })
  await steps(problems, seeRow(/2.*same "custom_id"/), seeRow(/Line 3 is not a JSON object/))
  assert.deepEqual(await home.violations(page), [])
  const { database } = home.gateway
  const [none] = await database.query<{ count: number }>({
    text: 'select (select count(*) from stored_file)::int + (select count(*) from batch)::int as count',
  })
  assert.equal(none?.count, 0, 'what is wrong leaves nothing behind')

  const first = ['one', 'two', 'three', 'four'].map((id) => line(id))
  await choose([...first, line('five', { model: 'alpha-5.44' })].join('\n'))
  await problems.getByRole('row', { name: /5.*"alpha-5\.44" does not exist.*Did you mean "alpha-5\.4"\?/ }).waitFor()
  assert.equal(await page.getByText('Nothing is wrong').count(), 0)

  await choose(`${line('one')}\n${line('two', { content: '[[400]]' })}`)
  await steps(page, see(/^ ?Costs (about [\d.]+, )?at most [\d.]+ credits/), press('Start 2 requests'))
  await page.getByText('Completed').waitFor()
  await page
    .getByRole('table', { name: 'Failed lines' })
    .getByRole('row', { name: /two.*400/ })
    .waitFor()
  await until(async () => {
    const text = `select from usage where endpoint = 'batch:chat' and charged > 0`
    return (await database.query({ text })).length === 1
  })
  assert.deepEqual(await home.violations(page), [])
  const downloading = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Answers' }).click()
  const saved = await (await downloading).path()
  assert.equal(JSON.parse(await readFile(saved, 'utf8')).custom_id, 'one')
  await page.getByRole('table', { name: 'Answered lines' }).getByRole('link').click()
  await page.getByText('How the charge was calculated').waitFor()
})

test('a batch that waits for a limit is cancelled at once, and files are deleted', async () => {
  await home.gateway.accounts.change(batcher, { limits: { requestsPerMinute: 1 } }, BY)
  await operator.go(`/a/${batcher}/batches`)
  await page.getByRole('button', { name: 'New batch' }).first().click()
  await choose([1, 2, 3].map((at) => line(`slow ${at}`)).join('\n'), 'slow.jsonl')
  await steps(page, press('Start 3 requests'), see('In progress'), press('Cancel'), press('Cancel the batch'))
  await steps(page, see('Cancelled', EXACT), seeRow(/slow \d.*not started.*cancelled before/, FIRST))
  await operator.go(`/a/${batcher}/batches`)
  await page
    .getByRole('table', { name: 'Files' })
    .getByRole('row', { name: /slow\.jsonl/ })
    .getByRole('button')
    .click()
  await steps(page, pick('Delete'), inDialog(press('Delete')), sight('link', 'File deleted'))
})

test('an operator gives a model a price in batches, for a tier and for an extra, and its page says so', async () => {
  await operator.go('/operator/catalog')
  await page.getByLabel('Search models').fill('alpha-5.4')
  await rowAction(page, 'Price', 'Alpha 5.4')
  const dialog = page.getByRole('dialog')
  for (const extras of await dialog.getByText('Extras: tools').all()) await extras.click()
  for (const search of await dialog.getByLabel('Per web search').all()) await search.fill('1.5')
  await steps(dialog, press('Add a multiplier'), press('Preview the change'))
  const times = dialog.getByLabel('Times', { exact: true })
  assert.equal(await times.getAttribute('aria-invalid'), 'true')
  await times.fill('2')
  await dialog.getByLabel('Batch multiplier').fill('0.5')
  assert.deepEqual(await home.violations(page), [])
  await steps(dialog, press('Preview the change'), seeRow(/Per web search – 1\.5/, FIRST), press('Apply'))
  await page.getByText(/^New prices for/).waitFor()
  await operator.go(`/a/${batcher}/models/alpha-5.4`)
  const multipliers = page.getByRole('table', { name: 'Multipliers' })
  await steps(multipliers, seeRow('service_tier priority 2'), seeRow('in batches 0.5'))
  await page.getByRole('columnheader', { name: 'Per web search' }).waitFor()
  assert.deepEqual(await home.violations(page), [])
  await page.setViewportSize({ width: 390, height: 844 })
  await operator.go(`/a/${batcher}/usage`)
  await steps(page, sight('button', /^Batch …/, FIRST))
  assert.ok(((await page.evaluate('document.documentElement.scrollWidth')) as number) <= 390)
  await page.setViewportSize({ width: 1280, height: 720 })
})

/** Whether it can be seen without scrolling the conversation. */
async function inSight(page: Page, selector: string): Promise<void> {
  await page.waitForFunction((wanted) => {
    interface Box {
      querySelector(path: string): Box | null
      getBoundingClientRect(): { top: number; bottom: number }
    }
    const { document } = globalThis as unknown as { document: Box }
    const [log, found] = [document.querySelector('.talk-log'), document.querySelector(wanted)]
    if (!log || !found) return false
    return found.getBoundingClientRect().bottom <= log.getBoundingClientRect().bottom + 1
  }, selector)
}

test('the playground finds a model by a word, says the price that the gateway quotes, and shows what goes wrong', async () => {
  await operator.go(`/a/${account}/playground/chat`)
  await steps(page, press(/^Model/), enter('Search models', 'haiku'))
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: /^Model.*Haiku/ }).waitFor()

  const quoted = page.waitForResponse((response) => response.url().endsWith('/play/v1/quote'))
  await page.getByLabel('Message', { exact: true }).fill('A long story [[error-in-stream=60]] [[tokens=3000]]')
  const quote = (await (await quoted).json()) as { data: { product: string; costAtMost: string } }
  assert.equal(quote.data.product, 'beta-haiku-4-5')
  await page.locator('.cost-hint').getByText(Number(quote.data.costAtMost).toFixed(4).replace(/0+$/, '')).waitFor()
  await page.getByRole('button', { name: 'Send' }).click()
  await page.locator('.talk-log .fault').waitFor()
  await inSight(page, '.talk-log .fault')
  const said = (await page.locator('.talk-log .markdown').last().textContent()) ?? ''
  assert.ok(said.length > 100, 'the answer broke in the middle')

  await page.getByRole('button', { name: 'Code', exact: true }).click()
  const code = (await page.getByRole('dialog').locator('pre').first().textContent()) ?? ''
  assert.ok(code.includes('A long story') && !code.includes(said.slice(0, 40)), 'a failed answer is not exported')
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()

  await steps(page, press('New chat'), touch('Tools', EXACT), press('Insert an example'))
  await steps(page, enter('Message', 'How is the weather in Oslo?', EXACT), press('Send'))
  await page.getByRole('button', { name: 'Send the result' }).waitFor()
  await inSight(page, '.tool-results')

  await steps(page, touch('History (1)'), press(/^A long story/))
  await page.locator('.talk-log .turn-user').getByText('A long story').waitFor()
})

test('a picture goes to a model that sees', async () => {
  await operator.go(`/a/${account}/playground/chat?model=alpha-5.4&message=What+is+this%3F`)
  await page.getByText('Files', { exact: true }).click()
  const picture = await paint({
    prompt: 'A fox',
    model: 'alpha-image-2',
    quality: 'low',
    seed: 7,
    references: [],
    note: '',
    width: 256,
    height: 256,
    format: 'png',
  })
  await page.locator('input[type=file]').setInputFiles({ name: 'fox.png', mimeType: 'image/png', buffer: picture })
  await page.getByText('Files (1)').waitFor()
  const sent = page.waitForRequest((request) => request.url().endsWith('/play/v1/chat-completions'))
  await page.getByRole('button', { name: 'Send' }).click()
  const { messages } = (await sent).postDataJSON() as { messages: { content: { image_url?: { url: string } }[] }[] }
  assert.equal(messages.at(-1)!.content[1]!.image_url!.url, `data:image/png;base64,${picture.toString('base64')}`)
  // The conversation before may have one, too.
  const answer = page.getByRole('article', { name: /^Answer of alpha-5\.4/ })
  await answer.getByRole('link', { name: 'Cost breakdown' }).waitFor()
  await page.locator('.turn-image').waitFor()
})

test('a prompt is saved by name, found in another browser, and deleted', async () => {
  await operator.go(`/a/${account}/playground/chat?model=alpha-5.4&message=Summarize+in+one+line`)
  await page.locator('summary', { hasText: 'System prompt' }).click()
  await steps(page, enter('System prompt', 'You write like a clerk.'), press('Save prompt'))
  await steps(page, inDialog(enter('Name', 'Clerk'), press('Save prompt')))
  await page
    .getByRole('region', { name: 'Saved prompts' })
    .getByRole('button', { name: 'Clerk', exact: true })
    .waitFor()
  const elsewhere = await home.visitor()
  await home.logIn(elsewhere, 'op@example.com')
  await elsewhere.go(`/a/${account}/playground/chat?model=beta-opus-5`)
  await elsewhere.page.getByRole('button', { name: 'Clerk', exact: true }).click()
  const message = elsewhere.page.getByLabel('Message', { exact: true })
  assert.equal(await message.inputValue(), 'Summarize in one line')
  assert.equal(await elsewhere.page.getByLabel('System prompt').inputValue(), 'You write like a clerk.')
  await steps(elsewhere.page, sight('button', /^Model.*Alpha 5\.4/), press('Delete the prompt Clerk'))
  await elsewhere.page.getByRole('button', { name: 'Clerk', exact: true }).waitFor({ state: 'detached' })
  await elsewhere.close()
})

test('an example of the documentation is filled in for whoever has chosen no account yet', async () => {
  const fresh = await home.visitor()
  await home.logIn(fresh, 'op@example.com')
  await fresh.page.goto(`${home.url}/console/try/chat?model=beta-opus-5&message=Say+hello`)
  const message = fresh.page.getByLabel('Message', { exact: true })
  const name = fresh.page.getByRole('link', { name: 'Harbor Books' })
  await message.or(name).first().waitFor()
  if (await name.isVisible()) await name.click()
  await message.waitFor()
  assert.equal(await message.inputValue(), 'Say hello')
  await fresh.page.getByRole('button', { name: /^Model.*Opus 5/ }).waitFor()
  await fresh.close()
})

const PDF = Buffer.from('%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\ntrailer << /Root 1 0 R >>\n%%EOF')

test('three models answer the same question about a file side by side, with what each and all of them cost', async () => {
  await operator.go(`/a/${account}/playground/compare`)
  await steps(page, press('Add a model'), enter('Search models', 'opus'))
  await page.keyboard.press('Enter')
  await steps(page, enter('Question', 'What is a hold?'), touch('Files', EXACT))
  const upload = page.locator('input[type=file]')
  await upload.setInputFiles({ name: 'virus.exe', mimeType: 'application/x-msdownload', buffer: Buffer.from('MZ') })
  await page.getByText(/Only images and PDFs/).waitFor()
  await upload.setInputFiles([
    { name: 'terms.pdf', mimeType: 'application/pdf', buffer: PDF },
    { name: 'notes.md', mimeType: '', buffer: Buffer.from('# Höld') },
  ])
  await page.getByText('Files (2)').waitFor()
  await page
    .getByText(/^Costs .* credits\.$/)
    .nth(3)
    .waitFor()
  const bodies: { messages: { content: Record<string, any>[] }[] }[] = []
  page.on('request', (request) => {
    if (request.url().endsWith('/play/v1/chat-completions')) bodies.push(request.postDataJSON())
  })
  await page.getByRole('button', { name: 'Ask all 3' }).click()
  // The last of them to answer decides.
  await page.getByRole('link', { name: 'Cost breakdown' }).nth(2).waitFor()
  await steps(page, see(/ credits, cheapest/), see(/, fastest/))
  assert.equal(await page.getByRole('link', { name: 'Cost breakdown' }).count(), 3)
  for (const { messages } of bodies) {
    const [, file, text] = messages.at(-1)!.content
    assert.equal(file!.file.file_data, `data:application/pdf;base64,${PDF.toString('base64')}`)
    assert.match(text!.text, /^notes\.md:\n# Höld$/)
  }
  const said = (await page.getByText(/^This comparison cost /).textContent()) ?? ''
  const receipts = await page.locator('.receipt > span').allTextContents()
  const cost = (text: string) => Number(/([\d.]+) credits/.exec(text)?.[1])
  assert.ok(Math.abs(cost(said) - receipts.map(cost).reduce((a, b) => a + b, 0)) < 0.0001, `${said}: ${receipts}`)
  await steps(page, press('Add a model'), enter('Search models', 'haiku'))
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Ask all 4' }).waitFor()
  assert.equal(await page.getByRole('button', { name: 'Add a model' }).count(), 0, 'four fit a screen')
})

test('what a failed call sent is kept when its owner wants it, read on its page, opened in the playground and deleted', async () => {
  const id = await home.gateway.accounts.create({ name: 'Keeper', credits: 10_000_000n, limits: {} }, BY)
  const { key } = await home.gateway.keys.create(id, { name: 'kept' }, BY)
  await operator.go(`/a/${id}/keys`)
  await steps(page, goTo('Content logging'), see('Nothing is stored.'), press('Turn on logging'))
  const dialog = page.getByRole('dialog')
  await dialog.getByText('All keys and the playground are stored, up to 64 KB of each, for 7 days').waitFor()
  await dialog.getByText('Members of Keeper and operators of the gateway can read them.').waitFor()
  const before = await home.operator<{ account: null }>('GET', `/accounts/${id}/content`)
  assert.equal(before.data.account, null, 'nothing is stored before it was agreed to')
  await dialog.getByRole('button', { name: 'Turn on logging' }).click()
  await page.getByRole('row', { name: 'All keys and the playground 7 days 64 KB' }).waitFor()
  const answer = await home.call('/v1/chat/completions', key, {
    model: 'alpha-5.4',
    temperature: 0.5,
    messages: [
      { role: 'system', content: 'You are a toll keeper.' },
      { role: 'user', content: 'Why did it fail? [[500]]' },
    ],
  })
  await answer.text()
  await home.gateway.opened(extension).contents.flush()
  await operator.go(`/a/${id}/usage/${answer.headers.get('x-request-id')}`)
  await page.getByRole('button', { name: 'Show request and answer' }).click()
  await page
    .getByRole('region', { name: /^Request: POST/ })
    .getByText('You are a toll keeper.')
    .waitFor()
  await steps(page, sight('region', `Answer: ${answer.status}`), press('Open in playground'))
  const message = page.getByLabel('Message')
  await message.waitFor()
  assert.equal(await message.inputValue(), 'Why did it fail? [[500]]')
  assert.equal(await page.getByLabel('Temperature').inputValue(), '0.5')
  await page.goBack()
  await steps(page, press('Delete'), inDialog(press('Delete')), see('The recording of this call was deleted.'))
  await page.getByRole('heading', { name: 'Content' }).waitFor({ state: 'detached' })
  await operator.go('/operator/audit?action=content.read')
  await steps(page, sight('button', /read the recorded content of the call req_/, FIRST))

  await operator.go(`/a/${id}/playground/social?endpoint=social%2Fusers%2F%7Bid%7D&id=2244994945`)
  const played = page.waitForResponse((response) => response.url().includes('/play/v1/social/users/2244994945'))
  await page.getByRole('button', { name: 'Run' }).click()
  const playedId = (await played).headers()['x-request-id']
  await home.gateway.opened(extension).contents.flush()
  await page.evaluate('sessionStorage.clear()')
  await operator.go(`/a/${id}/usage/${playedId}`)
  await steps(page, press('Show request and answer'), press('Open in playground'))
  await page.getByText('GET /v1/social/users/{id}', { exact: true }).waitFor()
  assert.equal(
    await page.getByRole('textbox', { name: 'id' }).inputValue(),
    '2244994945',
    'also what stood in the path',
  )
  await operator.go(`/a/${id}/content-logging`)
  await steps(page, see('1 call can be read now.'), press('Turn off: All keys and the playground'))
  await steps(page, press('Turn off and delete'), see('Nothing is stored.'))
})

test('a recording is uploaded, quoted by its length and written down, and a text is heard', async () => {
  await operator.go(`/a/${account}/playground/transcription`)
  const quoted = page.waitForResponse((response) => response.url().endsWith('/play/v1/quote'))
  const file = { name: 'a.wav', mimeType: 'audio/wav', buffer: wavFile(Buffer.alloc(48_000)) }
  await page.getByLabel('Recording').setInputFiles(file)
  const quote = (await (await quoted).json()) as { data: { costAtMost: string } }
  assert.equal(quote.data.costAtMost, '0.03', 'three seconds')
  await steps(page, press('Transcribe', EXACT), see(/"seconds":\s*3/))
  await operator.go(`/a/${account}/playground/speech`)
  await steps(page, enter('Text', 'The gate is open.', EXACT), press('Speak'))
  await page.getByLabel('Speech', { exact: true }).and(page.locator('audio')).waitFor()
  await page.waitForFunction(() => {
    const { document } = globalThis as unknown as {
      document: { querySelector(path: string): { duration: number } | null }
    }
    return (document.querySelector('audio')?.duration ?? 0) > 0.5
  })
})
