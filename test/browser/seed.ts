// Accounts, keys and calls such as a small company makes, so that pictures of the console show something.
import OpenAI, { toFile } from 'openai'
import { atOnce, until } from '../kit.ts'
import type { TestConsole } from './console.ts'

const BY = { actor: 'op@example.com', ip: '127.0.0.1', requestId: null }
const CALLS = 240
const USERS = ['ada', 'grace', 'linus']
const AT_ONCE = 6
const HISTORY_DAYS = 30

const QUESTIONS = [
  'Summarise this week’s support tickets in five lines.',
  'Write a product description for a rain jacket.',
  'Which of these two contracts is more favourable, and why?',
  'Translate the release notes into Portuguese.',
  'Draft a polite reminder for an unpaid invoice.',
]
const MODELS = ['alpha-5.4', 'beta-opus-5', 'beta-haiku-4-5', 'gamma-v4-pro', 'delta-3.8-flash', 'alpha-5.6-sol']
const DATA = [
  '/v1/siteanalytics/websites/visits/trend?keys=example.com',
  '/v1/siteanalytics/websites/geography?keys=example.com',
  '/v1/social/users?username=jack',
]

export interface Seed {
  readonly account: string
  /** Days before today, which only the overview shows: sums by the hour, without calls behind them. */
  addHistory(): Promise<void>
}

export async function seed(home: TestConsole): Promise<Seed> {
  const { accounts, keys, database } = home.gateway
  const account = await accounts.create({ name: 'Northwind Trading', credits: 5_000_000_000n }, BY)
  for (const [name, credits] of [
    ['Harbor Books', 250_000_000n],
    ['Juniper Clinic', 1_200_000_000n],
    ['Atlas Field Studio', 40_000_000n],
  ] as const)
    await accounts.create({ name, credits }, BY)
  const website = await keys.create(account, { name: 'website' }, BY)
  const nightly = await keys.create(account, { name: 'nightly reports', models: ['alpha-5.4', 'beta-haiku-4-5'] }, BY)
  const old = await keys.create(account, { name: 'prototype' }, BY)
  await keys.revoke(old.id, BY)

  let next = 0
  const call = async () => {
    const index = next++
    const content = QUESTIONS[index % QUESTIONS.length]!
    const { key } = index % 3 === 0 ? nightly : website
    if (index % 6 === 5) return home.call(DATA[index % DATA.length]!, website.key)
    if (index % 40 === 7)
      return home.call('/alpha/v1/images/generations', website.key, { model: 'alpha-image-2', prompt: content })
    const model = key === nightly.key ? ['alpha-5.4', 'beta-haiku-4-5'][index % 2] : MODELS[index % MODELS.length]
    return home.call('/v1/chat-completions', key, {
      model,
      stream: index % 2 === 0,
      // Some calls say who their end user is.
      ...(index % 4 === 1 ? { user: USERS[index % USERS.length] } : {}),
      messages: [{ role: 'user', content }],
    })
  }
  await atOnce(AT_ONCE, async () => {
    while (next < CALLS) await (await call()).text()
  })
  for (const prompt of ['Fog rolls over a pine forest at dawn', 'A paper boat drifts down a rain-soaked street'])
    await home.call('/v1/video/seedance', website.key, { model: 'videogen-2.0', prompt })
  await askInBatch(home, website.key)
  // Written once a minute, which no picture waits for.
  await database.query({ text: 'update api_key set last_used_at = now() where account_id = $1' }, [account])

  return {
    account,
    async addHistory() {
      // Sums of the same numbers at every run, so that a picture changes only with the console.
      await database.query(
        {
          text: `insert into usage_hour (account_id, hour, product, key_id, requests, errors, charged, input_tokens, output_tokens, duration_ms)
            select $1, date_trunc('hour', now(), 'UTC') - make_interval(hours => day * 24), product, $2, n, n * abs(hashint4(day)) % 7 / 4,
              n * rate, n * 410, n * 240, n * (1150 + abs(hashint4(day + 500)) % 500)
            from generate_series(1, $3::int) day
            cross join (values ('alpha-5.4', 90, 230000), ('beta-opus-5', 34, 610000), ('alpha-image-2', 9, 4200000), ('socialapi', 20, 200000)) p (product, base, rate)
            cross join lateral (select (base * (0.7 + day % 7 / 10.0 + abs(hashint4(day)) % 60 / 100.0))::bigint as n)
            on conflict do nothing`,
        },
        [account, website.id, String(HISTORY_DAYS)],
      )
      // The simulated vendors hurry; the days before did not.
      await database.query({ text: 'update usage_hour set duration_ms = requests * 1240 where hour > $1' }, [
        new Date(Date.now() - 3_600_000).toISOString(),
      ])
    },
  }
}

/** One of its lines fails. */
export async function askInBatch(home: Pick<TestConsole, 'url'>, key: string): Promise<void> {
  const client = new OpenAI({ apiKey: key, baseURL: `${home.url}/v1` })
  const lines = QUESTIONS.map((content, at) => ({
    custom_id: `question-${at + 1}`,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model: at === 3 ? 'alpha-4' : 'alpha-5.4', messages: [{ role: 'user', content }] },
  }))
  const content = Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n'))
  const file = await client.files.create({ file: await toFile(content, 'questions.jsonl'), purpose: 'batch' })
  const order = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' } as const
  const { id } = await client.batches.create(order)
  await until(async () => (await client.batches.retrieve(id)).status, 'completed')
}
