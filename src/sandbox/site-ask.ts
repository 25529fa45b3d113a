// What a question about a website asks for, and what answers it.
import type { Device, Site } from './site.ts'

/** One question, read. */
export interface SiteAsk {
  /** The site or the keyword, as it was written. */
  readonly name: string
  readonly site: Site | undefined
  readonly country: string
  readonly device: Device
  /** Days as numbers, both inclusive. */
  readonly from: number
  readonly to: number
  text(name: string, fallback: string): string
  number(name: string, fallback: number): number
}

/** The native answer to one question. */
export type Report = (ask: SiteAsk) => unknown
