// What a key's restriction lets it use and see. One that is not restricted sees everything of its account; a restricted one what it may
// use, and what it made: applications that share an account do not read each other's files and prompts.
import type { Principal } from './api-key.ts'

export type Viewer = Pick<Principal, 'keyId' | 'models'>

/** The one place that knows a key's restriction. */
export function mayUse({ models }: Pick<Principal, 'models'>, name: string): boolean {
  return models === null || models.has(name)
}

/** What has no product of its own, such as a file, is only for the key that made it, and for those without a restriction. */
export function maySee(viewer: Viewer, made: { readonly key_id: string | null; readonly product?: string }): boolean {
  const { product } = made
  return viewer.models === null || made.key_id === viewer.keyId || (product !== undefined && mayUse(viewer, product))
}

/** The same for a statement that lists: the key, and the products; nulls where there is no restriction. */
export function sightOf({ keyId, models }: Viewer): readonly [key: string | null, products: readonly string[] | null] {
  return models === null ? [null, null] : [keyId, [...models]]
}
