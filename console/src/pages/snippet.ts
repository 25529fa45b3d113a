// Ready-to-run examples for a model or an endpoint, as the documentation has them, with the address of this page. The
// key is always a variable: its value is never written into a page after its dialog closed.
import {
  type Language,
  type PostKind,
  type Subject,
  snippet as snippetAt,
  type Tables,
} from '../../../src/extensions/docs/snippet.ts'

export { endpointUrl, LANGUAGE_NAMES, LANGUAGES, type Subject } from '../../../src/extensions/docs/snippet.ts'

/** Put in by the build, from the table of endpoints. */
declare const POST_ENDPOINTS: Record<PostKind, { id: string; path: string; example: Record<string, unknown> }>
declare const CLIENT_CALLS: Tables['calls']
export const POSTS = POST_ENDPOINTS

export const snippet = (language: Language, subject: Subject) =>
  snippetAt(language, subject, { origin: window.location.origin, posts: POSTS, calls: CLIENT_CALLS })
