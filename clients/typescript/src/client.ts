// The client itself: one object, everything below it.

import {
  type AccountAnswer,
  analyticsOf,
  type CountTokensRequest,
  type Model,
  PATHS,
  type PaidEndpoint,
  type QuoteAnswer,
} from './generated.ts'
import { imagesOf } from './images.ts'
import { pursesOf } from './purses.ts'
import { queryOf } from './query.ts'
import { socialOf } from './social.ts'
import { textOf } from './text.ts'
import { type CallOptions, type ClientOptions, createTransport, type Transport } from './transport.ts'
import { jobsOf, videosOf } from './videos.ts'
import { verifyWebhook } from './webhooks.ts'

type Text = ReturnType<typeof textOf>
/** A class of an SDK: `new OpenAI({ apiKey, baseURL })`. */
type Sdk<T> = new (options: { apiKey: string; baseURL: string }) => T

// biome-ignore lint/suspicious/noTsIgnore: where the package is installed there is nothing to expect.
/** @ts-ignore Only where the package is installed is there a type. */
type OpenAI = import('openai').OpenAI
// biome-ignore lint/suspicious/noTsIgnore: where the package is installed there is nothing to expect.
/** @ts-ignore Only where the package is installed is there a type. */
type Anthropic = import('@anthropic-ai/sdk').Anthropic

export class Tollgate {
  readonly analytics: ReturnType<typeof analyticsOf>
  readonly social: ReturnType<typeof socialOf>
  readonly images: ReturnType<typeof imagesOf>
  readonly videos: ReturnType<typeof videosOf>
  readonly jobs: ReturnType<typeof jobsOf>
  readonly purses: ReturnType<typeof pursesOf>
  readonly chat: Text['chat']
  readonly responses: Text['responses']
  readonly messages: Text['messages']
  readonly embeddings: Text['embeddings']
  readonly webhooks = { verify: verifyWebhook }
  readonly #transport: Transport

  constructor(options: ClientOptions = {}) {
    const transport = createTransport(options)
    this.#transport = transport
    this.analytics = analyticsOf((path, params, given) =>
      transport.json({ method: 'GET', path: `${PATHS.analytics}/${path}`, query: queryOf(params), paid: true }, given),
    )
    this.social = socialOf(transport)
    this.images = imagesOf(transport)
    this.videos = videosOf(transport)
    this.jobs = jobsOf(transport)
    this.purses = pursesOf(transport)
    const text = textOf(transport)
    this.chat = text.chat
    this.responses = text.responses
    this.messages = text.messages
    this.embeddings = text.embeddings
  }

  /** Balance, held credits, limits and restrictions. */
  account(options?: CallOptions) {
    return this.#transport.data<AccountAnswer['data']>({ method: 'GET', path: PATHS.account }, options)
  }

  /** The models that this key may use, with their prices. */
  models(options?: CallOptions) {
    return this.#transport.data<Model[]>({ method: 'GET', path: PATHS.models }, options)
  }

  model(id: string, options?: CallOptions) {
    return this.#transport.data<Model>({ method: 'GET', path: `${PATHS.models}/${encodeURIComponent(id)}` }, options)
  }

  /**
   * What a request would hold and cost, without running it: the body of a paid request, or the parameters of a data
   * endpoint with its id. `client.quote({ keys: 'example.com' }, { endpoint: 'siteanalytics/websites/visits' })`
   */
  quote(body: object, { endpoint, ...options }: CallOptions & { endpoint?: PaidEndpoint } = {}) {
    const isData = endpoint !== undefined && /^(?:social|siteanalytics)\//.test(endpoint)
    return this.#transport.data<QuoteAnswer['data']>(
      {
        method: 'POST',
        path: PATHS.quote,
        query: endpoint === undefined ? {} : { endpoint },
        body: isData ? queryOf(body) : body,
      },
      options,
    )
  }

  /** How many input tokens a Messages request has. Free of charge. */
  countTokens(body: CountTokensRequest, options?: CallOptions) {
    return this.#transport.json<{ input_tokens: number }>({ method: 'POST', path: PATHS.countTokens, body }, options)
  }

  /** The official SDK of OpenAI, set to this gateway. With a bundler, give its class: `client.openai(OpenAI)`. */
  openai(): Promise<OpenAI>
  openai<T>(sdk: Sdk<T>): T
  openai<T>(sdk?: Sdk<T>): unknown {
    return this.#sdk(sdk, 'openai', `${this.#transport.baseUrl}/v1`)
  }

  /** The official SDK of Anthropic, set to this gateway. With a bundler, give its class. */
  anthropic(): Promise<Anthropic>
  anthropic<T>(sdk: Sdk<T>): T
  anthropic<T>(sdk?: Sdk<T>): unknown {
    return this.#sdk(sdk, '@anthropic-ai/sdk', `${this.#transport.baseUrl}/beta`)
  }

  #sdk<T>(sdk: Sdk<T> | undefined, name: string, baseURL: string): unknown {
    const options = { apiKey: this.#transport.apiKey, baseURL }
    if (sdk) return new sdk(options)
    // A name that is not written out, so that bundlers do not demand the package.
    return import(/* @vite-ignore */ /* webpackIgnore: true */ name).then(
      ({ default: Found }: { default: Sdk<T> }) => new Found(options),
    )
  }
}
