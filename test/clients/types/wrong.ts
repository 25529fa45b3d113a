// What must not compile, and what must: each marked line is an error, which the compiler is told to expect.
import { type Answer, InsufficientCreditsError, Tollgate, type WebsitesVisitsParams } from 'tollgate-client'

const client = new Tollgate({ apiKey: 'x' })
const { websites, keywords } = client.analytics

export async function right(): Promise<void> {
  const answer = await websites.visits({ keys: 'example.com', country: 'us', webSource: 'Desktop', latest: '28d' })
  const visits: number | null | undefined = answer.Data?.['example.com']?.TotalVisits
  const charge: string | undefined = answer.cost?.charge
  const params: WebsitesVisitsParams = { keys: 'example.com', from: new Date(), to: '2026-10-31' }
  const again: Answer<typeof answer> = await websites.visits(params)
  for await (const tweet of client.social.timeline('1', { exclude: ['replies'] })) console.log(tweet.text)
  const picture = await client.images.generate({ prompt: 'x', size: '16:9', image_urls: [new Uint8Array()] })
  console.log(visits, charge, again.requestId, picture.data[0]?.url)
  await (await client.videos.create({ prompt: 'x', first_frame: new URL('https://example.com/a.png') })).wait()
  await client.quote({ keys: 'example.com' }, { endpoint: 'siteanalytics/websites/visits' })
  await client.chat.create({
    model: 'm',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }],
    tools: [],
  })
  class Sdk {
    readonly url: string
    constructor(options: { apiKey: string; baseURL: string }) {
      this.url = options.baseURL
    }
  }
  const sdk: Sdk = client.openai(Sdk)
  const error = new InsufficientCreditsError('x', {})
  console.log(sdk.url, error.required?.length, error.retryAfter)
}

export async function wrong(): Promise<void> {
  // @ts-expect-error no such source
  await websites.visits({ keys: 'example.com', webSource: 'Phone' })
  // @ts-expect-error a website is required
  await websites.visits({ country: 840 })
  // @ts-expect-error no such country
  await websites.visits({ keys: 'example.com', country: 'xx' })
  // @ts-expect-error a step that this endpoint does not take
  await websites.visits({ keys: 'example.com', timeGranularity: 'Weekly' })
  // @ts-expect-error five months are none of its choices
  await websites.visits({ keys: 'example.com', latest: '5m' })
  // @ts-expect-error days are not taken here
  await websites.historyVisits({ keys: 'example.com', latest: '28d' })
  // @ts-expect-error only complete months
  await websites.historyVisits({ keys: 'example.com', isWindow: true })
  // @ts-expect-error names are case-sensitive
  await websites.backlinks({ key: 'example.com' })
  // @ts-expect-error not a kind of match
  await keywords.suggestions({ keyword: 'x', type: 'Near' })
  // @ts-expect-error a number is wanted
  await websites.geography({ keys: 'example.com', pageSize: '5' })
  // @ts-expect-error no such field of a user
  await client.social.users.byUsername('x', { 'user.fields': ['height'] })
  // @ts-expect-error nothing that can be left out
  client.social.timeline('1', { exclude: ['likes'] })
  // @ts-expect-error no such size
  await client.images.generate({ prompt: 'x', size: '10x10' })
  // @ts-expect-error only one picture
  await client.images.generate({ prompt: 'x', n: '1' })
  // @ts-expect-error no such ratio
  await client.videos.create({ prompt: 'x', ratio: '5:4' })
  // @ts-expect-error a misspelt member
  await client.images.generate({ prompt: 'x', qualty: 'low' })
  // @ts-expect-error no such role
  await client.chat.create({ model: 'm', messages: [{ role: 'robot', content: 'x' }] })
  // @ts-expect-error nothing that is paid for
  await client.quote({}, { endpoint: 'models' })
  const question = { model: 'm', messages: [{ role: 'user' as const, content: 'x' }] }
  for await (const chunk of client.chat.stream(question)) {
    const said: string = chunk.choices[0]?.delta.content ?? ''
    console.log(said)
    // @ts-expect-error the piece of a text is no number
    console.log((chunk.choices[0]?.delta.content ?? 0) * 2)
  }
  for await (const event of client.responses.stream({ model: 'm', input: 'x' })) console.log(event.delta?.length)
  for await (const event of client.messages.stream({ ...question, max_tokens: 9 }))
    console.log(event.delta?.text?.length)
  // @ts-expect-error no such member of an account
  console.log((await client.account()).fortune.length)
}
