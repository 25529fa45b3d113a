// What a question about a website asks for, and what answers it.
import type { Site, Span } from './site.ts'

/** One question, read. */
export interface SiteAsk extends Span {
  /** The site or the keyword, as it was written. */
  readonly name: string
  readonly site: Site | undefined
  text(name: string, fallback: string): string
  number(name: string, fallback: number): number
}

/** The native answer to one question. */
export type Report = (ask: SiteAsk) => unknown
