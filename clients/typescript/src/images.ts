// Pictures: asked for, saved, and followed as they are made.
import { asAddress, type Reference, save } from './files.ts'
import { type ImagesAnswer, type ImagesRequest, PATHS } from './generated.ts'
import { readJsonEvents } from './sse.ts'
import type { Answer, CallOptions, Transport } from './transport.ts'

/** `image_urls` may be addresses, data URIs, paths of local files, blobs or bytes. */
export type ImageParams = Omit<ImagesRequest, 'model' | 'image_urls' | 'stream'> & {
  /** alpha-image-2 unless given. */
  model?: string
  image_urls?: readonly Reference[]
}

export interface ImageEvent {
  readonly type: string
  readonly data?: readonly { readonly index: number; readonly url: string }[]
  readonly usage?: ImagesAnswer['usage']
}

/** A picture that is being made: wait for its answer, or go on at once. */
export class PendingImage implements PromiseLike<Answer<ImagesAnswer>> {
  readonly #answer: Promise<Answer<ImagesAnswer>>
  readonly #transport: Transport

  constructor(answer: Promise<Answer<ImagesAnswer>>, transport: Transport) {
    this.#answer = answer
    this.#transport = transport
  }

  // biome-ignore lint/suspicious/noThenProperty: it is to be awaited.
  then<A = Answer<ImagesAnswer>, B = never>(
    done?: ((answer: Answer<ImagesAnswer>) => A | PromiseLike<A>) | null,
    failed?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#answer.then(done, failed)
  }

  /** The bytes of the picture. */
  async bytes(): Promise<Uint8Array> {
    return download(this.#transport, (await this.#answer).data[0]?.url ?? '')
  }

  /** Writes the picture into a file, and gives the answer. */
  async save(path: string): Promise<Answer<ImagesAnswer>> {
    await save(path, await this.bytes())
    return this.#answer
  }
}

export async function download({ send, baseUrl, fetch }: Transport, url: string): Promise<Uint8Array> {
  const path = url.startsWith(`${baseUrl}/`) ? url.slice(baseUrl.length) : undefined
  // Its own files are fetched with all the patience of a call; a key goes nowhere else.
  if (path !== undefined)
    return send({ method: 'GET', path }, {}, async (file) => new Uint8Array(await file.arrayBuffer()))
  return new Uint8Array(await (await fetch(url)).arrayBuffer())
}

export function imagesOf(transport: Transport) {
  const bodyOf = async (params: ImageParams) => ({
    model: 'alpha-image-2',
    ...params,
    ...(params.image_urls ? { image_urls: await Promise.all(params.image_urls.map(asAddress)) } : {}),
  })
  return {
    /** Makes a picture, or edits and fuses those in `image_urls`. `await client.images.generate({…}).save('a.png')` */
    generate(params: ImageParams, options?: CallOptions): PendingImage {
      const answer = bodyOf(params).then((body) =>
        transport.json<ImagesAnswer>({ method: 'POST', path: PATHS.images, body, paid: true }, options),
      )
      return new PendingImage(answer, transport)
    },
    /** The same as events, up to `image_generation.completed`. */
    async *stream(params: ImageParams, options?: CallOptions): AsyncGenerator<ImageEvent> {
      const body = { ...(await bodyOf(params)), stream: true }
      const ask = { method: 'POST', path: PATHS.images, body, paid: true } as const
      yield* transport.events(ask, options, readJsonEvents<ImageEvent>)
    },
    /** The bytes of a picture or video at an address that the gateway gave. */
    download: (url: string) => download(transport, url),
  }
}
