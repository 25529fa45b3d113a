// Sections of the catalog document that extensions contribute. The core keeps them as they are and reads none; that of
// an extension which is switched off stays in the document and does nothing.
import type * as z from 'zod'
import type { Review, Reviews } from './change-sentences.ts'
import type { CatalogDocument } from './document.ts'
import type { EndpointSpec } from './endpoint.ts'

/** What extensions declare for theirs: as it is used, and as it is given. */
// biome-ignore lint/suspicious/noEmptyInterface: extensions declare its members.
export interface Sections {}
// biome-ignore lint/suspicious/noEmptyInterface: extensions declare its members.
export interface SectionInputs {}

export interface Problem {
  readonly path: readonly (string | number)[]
  readonly message: string
}

export interface CatalogSection {
  readonly name: keyof SectionInputs & string
  /** Also of a document without it. */
  readonly schema: z.ZodType
  /** What its schema does not find. */
  readonly check?: (document: CatalogDocument) => readonly Problem[]
  /**
   * What a stored document may lack: `packs.*`, `packs.*.products.*`. What is wrong elsewhere in it keeps the gateway
   * from starting.
   */
  readonly parts?: readonly string[]
  /** What has changed, in sentences. */
  readonly review?: Review
  /** Endpoints that it defines. */
  readonly endpoints?: (document: CatalogDocument) => readonly EndpointSpec[]
  /** Who changes it decides about credits. */
  readonly sells?: true
  /** It checks calls: where it cannot, they do not go out unchecked. */
  readonly guards?: true
}

const known = new Map<string, CatalogSection>()

/** Those of all extensions, also of the ones that are switched off. */
export function addSections(sections: readonly CatalogSection[]): void {
  for (const one of sections) known.set(one.name, one)
}

export const allSections = (): readonly CatalogSection[] => [...known.values()]

export const sectionReviews = (): Reviews =>
  Object.fromEntries(allSections().flatMap(({ name, review }) => (review ? [[name, review]] : [])))
