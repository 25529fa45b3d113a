// Profiles and timelines.
import {
  PATHS,
  type SocialUsersAnswer,
  type SocialUsersIdParams,
  type SocialUsersIdTweetsAnswer,
  type SocialUsersIdTweetsParams,
  type SocialUsersParams,
  type Tweet,
} from './generated.ts'
import { queryOf } from './query.ts'
import type { Answer, CallOptions, Transport } from './transport.ts'

/** `max` ends the walk; `max_results` is the size of a page, each of which is paid for. */
export type TimelineParams = Omit<SocialUsersIdTweetsParams, 'pagination_token'> & { max?: number }

export function socialOf(transport: Transport) {
  const get = <T>(path: string, params: object, options?: CallOptions) =>
    transport.json<T>({ method: 'GET', path, query: queryOf(params), paid: true }, options)

  const page = (id: string, params: SocialUsersIdTweetsParams = {}, options?: CallOptions) =>
    get<SocialUsersIdTweetsAnswer>(`${PATHS.social}/${encodeURIComponent(id)}/tweets`, params, options)

  async function* pages(id: string, { max: _, ...params }: TimelineParams = {}, options?: CallOptions) {
    for (let token: string | undefined; ; ) {
      const found: Answer<SocialUsersIdTweetsAnswer> = await page(
        id,
        { ...params, ...(token === undefined ? {} : { pagination_token: token }) },
        options,
      )
      yield found
      token = found.meta.next_token
      if (token === undefined) return
    }
  }

  return {
    users: {
      /** With or without a leading @. */
      byUsername: (username: string, params: Omit<SocialUsersParams, 'username'> = {}, options?: CallOptions) =>
        get<SocialUsersAnswer>(PATHS.social, { username, ...params }, options),
      byId: (id: string, params: SocialUsersIdParams = {}, options?: CallOptions) =>
        get<SocialUsersAnswer>(`${PATHS.social}/${encodeURIComponent(id)}`, params, options),
    },
    /** `for await (const tweet of client.social.timeline(id)) …`, newest first, page after page. */
    async *timeline(id: string, params: TimelineParams = {}, options?: CallOptions): AsyncGenerator<Tweet> {
      let left = params.max ?? Number.POSITIVE_INFINITY
      for await (const { data } of pages(id, params, options))
        for (const tweet of data) {
          if (left-- <= 0) return
          yield tweet
          if (left === 0) return
        }
    },
    /** The same with `includes` and `meta`, a page at a time. */
    pages,
    page,
  }
}
