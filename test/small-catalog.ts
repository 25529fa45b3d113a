// A catalog of three products for tests that need prices but no vendors.
import type { CatalogInput } from '../src/catalog/document.ts'
import { fixtureOf } from './fixture.ts'

export const SMALL_CATALOG = fixtureOf<CatalogInput>('small-catalog.yaml')
