// What a person does and sees on a page, or on a part of it, one step after the other.
import type { Locator, Page } from 'playwright-core'

type Scope = Page | Locator
type Words = string | RegExp
type Role = Parameters<Page['getByRole']>[0]
type Step = (scope: Scope) => Promise<unknown>
interface Which {
  readonly exact?: boolean
  readonly first?: boolean
}

export const EXACT: Which = { exact: true }
/** Of several. */
export const FIRST: Which = { first: true }
const of = (found: Locator, { first = false }: Which) => (first ? found.first() : found)

export async function steps(scope: Scope, ...all: Step[]): Promise<void> {
  for (const step of all) await step(scope)
}

export const hit =
  (role: Role, name: Words, which: Which = {}): Step =>
  (scope) =>
    of(scope.getByRole(role, { name, ...which }), which).click()
export const press = (name: Words, which?: Which) => hit('button', name, which)
export const goTo = (name: Words, which?: Which) => hit('link', name, which)
export const pick = (name: Words, which?: Which) => hit('menuitem', name, which)

export const sight =
  (role: Role, name: Words, which: Which = {}): Step =>
  (scope) =>
    of(scope.getByRole(role, { name, ...which }), which).waitFor()
export const seeRow = (name: Words, which?: Which) => sight('row', name, which)

const text = (words: Words, which: Which) => (scope: Scope) => of(scope.getByText(words, which), which)
const labelled = (label: Words, which: Which) => (scope: Scope) => of(scope.getByLabel(label, which), which)
type OnText = (words: Words, which?: Which) => Step
export const see: OnText =
  (words, which = {}) =>
  (scope) =>
    text(words, which)(scope).waitFor()
export const touch: OnText =
  (words, which = {}) =>
  (scope) =>
    text(words, which)(scope).click()
export const tick: OnText =
  (label, which = {}) =>
  (scope) =>
    labelled(label, which)(scope).check()
export const untick: OnText =
  (label, which = {}) =>
  (scope) =>
    labelled(label, which)(scope).uncheck()
type OnField = (label: Words, value: string, which?: Which) => Step
export const enter: OnField =
  (label, value, which = {}) =>
  (scope) =>
    labelled(label, which)(scope).fill(value)
export const select: OnField =
  (label, value, which = {}) =>
  (scope) =>
    labelled(label, which)(scope).selectOption(value)

export const inDialog =
  (...all: Step[]): Step =>
  (scope) =>
    steps(scope.getByRole('dialog'), ...all)
