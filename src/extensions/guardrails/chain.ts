// Which rules a call is checked by, and what they did. The rules of a catalog are prepared once.

import type { CatalogDocument } from '../../catalog/document.ts'
import type { Credits } from '../../kernel/credits.ts'
import { type JsonText, readJson } from '../../kernel/json.ts'
import { type Secrets, sign } from '../../kernel/secret.ts'
import { ownAccountOf } from '../../kernel/test-account.ts'
import type { GuardrailReport } from '../../ledger/views.ts'
import type { Answered, Arrived, Held, PathDeps } from '../../pipeline/call.ts'
import type { Forward, Gate, Guard, GuardedCall, Phase } from '../../pipeline/hooks.ts'
import type { Answer, StreamRelay } from '../../protocols/protocol.ts'
import { GuardedRelay, wantsJson, wholeAnswer } from './answer.ts'
import {
  type Check,
  type Checking,
  checkAnswer,
  checkRequest,
  gateOf,
  isChecked,
  replacementReserve,
} from './checks.ts'
import type { Hooks } from './hook.ts'
import { namedPattern, ownPattern, type Pattern } from './patterns.ts'
import { editSaid, editTexts, forLabels, Redacted } from './redaction.ts'
import type { GuardrailRule } from './rules.ts'

interface PreparedRule extends Check {
  readonly patterns: readonly Pattern[]
}

const prepared = new WeakMap<object, readonly PreparedRule[]>()

function rulesOf({ guardrails }: Pick<CatalogDocument, 'guardrails'>): readonly PreparedRule[] {
  if (!guardrails) return []
  let rules = prepared.get(guardrails)
  if (!rules) {
    rules = Object.entries(guardrails)
      .filter(([, { enabled }]) => enabled)
      .map(([name, rule]) => ({ name, rule, patterns: patternsOf(name, rule) }))
    prepared.set(guardrails, rules)
  }
  return rules
}

function patternsOf(rule: string, { redact }: GuardrailRule): Pattern[] {
  const own = Object.entries(redact?.own ?? {}).map(([label, source]) => ownPattern(rule, label, source))
  return [...(redact?.patterns ?? []).map((name) => namedPattern(rule, name)), ...own]
}

export type RuleGuards = ReturnType<typeof createGuardrails>

export function createGuardrails({ secrets, hooks }: { readonly secrets: Secrets; readonly hooks: Hooks }) {
  /** Nobody without our secret can tell what it stands for, nor whether two accounts have sent the same. */
  const placeholdersFor = (account: string) => (label: string, secret: string, turn: number) => {
    const hash = sign(secrets.key('guardrail'), `${account} ${turn} ${label} ${secret}`).toString('hex')
    return `[${label}_${hash.slice(0, 12).toUpperCase()}]`
  }
  return {
    find(document: CatalogDocument, call: GuardedCall): (Guard & Checking) | undefined {
      const rules = rulesOf(document).filter(({ rule }) => isFor(rule, call))
      if (rules.length === 0) return undefined
      return new RuleGuard(rules, placeholdersFor(ownAccountOf(call.account)), !call.isModel, hooks)
    },
    /**
     * The text of a request or an answer as it may be stored: without what any rule for this account takes out of it.
     */
    withoutSecrets(document: CatalogDocument, account: string, text: string): string {
      const own = ownAccountOf(account)
      const rules = rulesOf(document).filter(({ rule }) => rule.accounts?.includes(own) ?? true)
      const patterns = rules.flatMap((one) => one.patterns)
      if (patterns.length === 0) return text
      const redacted = new Redacted(placeholdersFor(own))
      const hide = (said: string) => redacted.hide(said, patterns)
      return hide(editTexts(text, hide))
    },
  }
}

function isFor({ accounts, keys, models, labels }: GuardrailRule, call: GuardedCall): boolean {
  if (accounts && !accounts.includes(ownAccountOf(call.account))) return false
  if (keys && !call.keys.some((key) => key !== undefined && keys.includes(key))) return false
  if (models ? !call.products.some((one) => models.some((name) => isNamed(name, one))) : !call.isModel) return false
  return Object.entries(labels ?? {}).every(([name, value]) => call.labels?.[name] === value)
}

const isNamed = (name: string, product: string) =>
  name.endsWith('*') ? product.startsWith(name.slice(0, -1)) : name === product

class RuleGuard implements Guard, Checking {
  readonly hooks: Hooks
  readonly rules: ReadonlySet<string>
  readonly #rules: readonly PreparedRule[]
  readonly #redacted: Redacted
  readonly #isTool: boolean
  readonly #did = new Map<string, GuardrailReport>()
  #wantsJson = false
  #said = ''

  constructor(
    rules: readonly PreparedRule[],
    placeholderOf: ConstructorParameters<typeof Redacted>[0],
    isTool: boolean,
    hooks: Hooks,
  ) {
    this.hooks = hooks
    this.#isTool = isTool
    this.#rules = rules
    this.rules = new Set(rules.map(({ name }) => name))
    this.#redacted = new Redacted(placeholderOf)
  }

  redact(json: JsonText): JsonText {
    this.#wantsJson = wantsJson(json.value)
    const patterns = this.#patterns('request')
    if (patterns.length === 0) return json
    const found = ({ rule }: Pattern) => this.note(rule, 'request', 'redacted')
    const inLabels = forLabels(patterns)
    const hide = (said: string, isLabel?: boolean) => this.#redacted.hide(said, isLabel ? inLabels : patterns, found)
    const text = editTexts(json.text, hide, this.#isTool)
    return text === json.text ? json : readJson(Buffer.from(text))
  }

  get cacheKey(): string {
    return JSON.stringify([this.#rules.map(({ name, rule }) => [name, rule]), [...this.#redacted.secrets]])
  }

  checks(phase: Phase): readonly Check[] {
    return this.#rules.filter(({ rule }) => (rule.hook ?? rule.moderate)?.on.includes(phase))
  }

  asks(phase: Phase): boolean {
    return this.checks(phase).length > 0
  }

  readonly textsOf = (json: string): string[] => {
    const texts: string[] = []
    const take = (text: string) => {
      texts.push(text)
      return text
    }
    editSaid(json, take, this.#isTool)
    return texts
  }

  readonly withTexts = (json: string, texts: readonly string[]): string => {
    let at = 0
    return editSaid(json, (text) => texts[at++] ?? text, this.#isTool)
  }

  takeSaid(): string {
    const said = this.#said
    this.#said = ''
    return said
  }

  get isIdle(): boolean {
    return !this.asks('answer') && this.#redacted.secrets.size === 0 && this.#patterns('answer').length === 0
  }

  answer(body: string): string {
    return this.isIdle ? body : wholeAnswer(body, this.#rewriting())
  }

  reserve(arrived: Arrived): Credits {
    return replacementReserve(this, arrived)
  }

  checkRequest<Call extends Held>(held: Call, deps: PathDeps): Promise<Call> {
    return checkRequest(this, held, deps)
  }

  isChecked(answered: Answered): boolean {
    return isChecked(this, answered)
  }

  checkAnswer(answered: Answered, answer: Answer, deps: PathDeps): Promise<Answer> {
    return checkAnswer(this, answered, answer, deps)
  }

  gate(answered: Answered, forward: Forward, deps: PathDeps): Gate | undefined {
    return gateOf(this, answered, forward, deps)
  }

  relay(inner: StreamRelay): StreamRelay {
    return this.isIdle ? inner : new GuardedRelay(inner, this.#rewriting())
  }

  note(rule: string, on: Phase, did: GuardrailReport['did']): void {
    const key = `${rule} ${on} ${did}`
    this.#did.set(key, { rule, on, did, times: (this.#did.get(key)?.times ?? 0) + 1 })
  }

  get report(): readonly GuardrailReport[] {
    return [...this.#did.values()]
  }

  #patterns(phase: Phase): Pattern[] {
    return this.#rules.flatMap(({ rule, patterns }) => (rule.redact?.on.includes(phase) ? patterns : []))
  }

  #rewriting() {
    return {
      redacted: this.#redacted,
      patterns: this.#patterns('answer'),
      wantsJson: this.#wantsJson,
      isTool: this.#isTool,
      found: ({ rule }: Pattern) => this.note(rule, 'answer', 'redacted'),
      said: (text: string) => {
        this.#said += text
      },
    }
  }
}
