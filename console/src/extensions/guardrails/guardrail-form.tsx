// One guardrail as a form: what it checks, for which calls, and what happens if the check fails. Nothing changes before
// it was previewed.
import { useState } from 'react'
import { api } from '../../api.ts'
import { Review, requireFit, toastSaved } from '../../pages/operator/review.tsx'
import { AccountPick, KeyPick, ModelPick } from '../../pages/pickers.tsx'
import { useQuery } from '../../query.ts'
import { navigate } from '../../router.tsx'
import { useSubmit } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Checkbox, RadioCards, Segments, TextField } from '../../ui/field.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import type { Applied, Catalog, CatalogCheck } from '../../wire.ts'
import { HookCard, ModerationCard, RedactionCard } from './guardrail-checks.tsx'
import { draftOf, EMPTY_RULE, type Kind, type RuleDraft, ruleOf, withRule } from './guardrail-draft.ts'

const HOME = '/operator/guardrails'

export function NewGuardrailPage() {
  const catalog = useQuery('catalog', api.catalog)
  return (
    <Page
      title="New guardrail"
      lead="A rule makes one check, for all calls or for those that you choose."
      back={{ to: HOME, label: 'Guardrails' }}
    >
      <Loaded query={catalog}>{(data) => <RuleForm catalog={data} start={EMPTY_RULE} />}</Loaded>
    </Page>
  )
}

export function GuardrailPage({ rule: name }: { rule: string }) {
  const catalog = useQuery('catalog', api.catalog)
  const [removing, setRemoving] = useState(false)
  return (
    <Page
      title={name}
      back={{ to: HOME, label: 'Guardrails' }}
      actions={
        <Button right="catalog:write" look="danger" onClick={() => setRemoving(true)}>
          Remove
        </Button>
      }
    >
      <Loaded query={catalog}>
        {(data) => {
          const rule = data.document.guardrails?.[name]
          if (!rule) return <Empty icon="search" title={`There is no guardrail ${name}`} />
          return (
            <>
              {/* A form that opened on what is being read again would save over it. */}
              <RuleForm key={data.version} catalog={data} start={draftOf(name, rule)} isKnown />
              {removing ? <RemoveDialog name={name} catalog={data} onClose={() => setRemoving(false)} /> : null}
            </>
          )
        }}
      </Loaded>
    </Page>
  )
}

const applied = (saved: Applied) => {
  toastSaved(saved)
  navigate(HOME)
}

function RemoveDialog({ name, catalog, onClose }: { name: string; catalog: Catalog; onClose: () => void }) {
  return (
    <Confirm
      right="catalog:write"
      title={`Remove ${name}?`}
      danger
      action="Remove"
      run={async () => {
        const next = withRule(catalog.document, name, undefined)
        applied(await api.applyCatalog(next, `guardrail ${name} removed`, catalog.version))
      }}
      onClose={onClose}
    >
      <p>Calls are no longer checked by it. You can roll back to the previous version of the catalog.</p>
    </Confirm>
  )
}

function RuleForm({ catalog, start, isKnown = false }: { catalog: Catalog; start: RuleDraft; isKnown?: boolean }) {
  const [draft, setDraft] = useState(start)
  const [check, setCheck] = useState<CatalogCheck>()
  const name = draft.name.trim()
  const after = withRule(catalog.document, name, ruleOf(draft))
  const set = (next: Partial<RuleDraft>) => {
    setDraft((old) => ({ ...old, ...next }))
    setCheck(undefined)
  }
  const isTaken = !isKnown && catalog.document.guardrails?.[name] !== undefined
  const { busy, error, onSubmit } = useSubmit(async () => setCheck(requireFit(await api.checkCatalog(after), after)))
  const Fields = CHECKS[draft.kind]
  return (
    <>
      <form className="stack" onSubmit={onSubmit}>
        <RuleCard draft={draft} isKnown={isKnown} isTaken={isTaken} onChange={set} />
        <Fields draft={draft} catalog={catalog} onChange={set} />
        <ScopeCard draft={draft} onChange={set} />
        {error ? <Fault error={error} /> : null}
        <div className="row">
          <Button type="submit" right="catalog:write" look="primary" disabled={draft.on.length === 0} busy={busy}>
            Preview the change
          </Button>
        </div>
      </form>
      {check ? (
        <Review
          before={catalog.document}
          after={after}
          apply={async (note) => applied(await api.applyCatalog(after, note || `guardrail ${name}`, catalog.version))}
          onClose={() => setCheck(undefined)}
        />
      ) : null}
    </>
  )
}

const CHECKS = { redact: RedactionCard, hook: HookCard, moderate: ModerationCard } as const

const KINDS: readonly { value: Kind; label: string; hint: string }[] = [
  {
    value: 'redact',
    label: 'Redaction',
    hint: 'Replaces what patterns match. Vendors see placeholders; callers see their own text.',
  },
  {
    value: 'hook',
    label: 'HTTP hook',
    hint: 'Sends the texts to a service of yours, which allows, blocks or replaces them.',
  },
  { value: 'moderate', label: 'Moderation model', hint: 'Asks a moderation model of your catalog, at your cost.' },
]

interface FieldsProps {
  draft: RuleDraft
  onChange: (next: Partial<RuleDraft>) => void
}

type On = 'request' | 'answer' | 'both'

function RuleCard({ draft, isKnown, isTaken, onChange }: FieldsProps & { isKnown: boolean; isTaken: boolean }) {
  const on: On = draft.on.length === 2 ? 'both' : (draft.on[0] ?? 'request')
  return (
    <Card right="catalog:write" title="Rule">
      <TextField
        label="Name"
        mono
        required
        disabled={isKnown}
        value={draft.name}
        placeholder="no-personal-data"
        fault={isTaken ? 'Another guardrail has this name.' : undefined}
        hint="Callers see it when the rule blocks their call. Lower-case letters, digits, “.”, “_” and “-”."
        onText={(name) => onChange({ name })}
      />
      <RadioCards label="What it does" value={draft.kind} options={KINDS} onPick={(kind) => onChange({ kind })} />
      <div className="stack-tight">
        <p className="field-label">What is checked</p>
        <div className="row">
          <Segments<On>
            label="What is checked"
            value={on}
            options={[
              { value: 'request', label: 'Requests' },
              { value: 'answer', label: 'Answers' },
              { value: 'both', label: 'Both' },
            ]}
            onPick={(next) => onChange({ on: next === 'both' ? ['request', 'answer'] : [next] })}
          />
        </div>
      </div>
      <Checkbox label="This rule is on" checked={draft.enabled} onCheck={(enabled) => onChange({ enabled })} />
    </Card>
  )
}

function ScopeCard({ draft, onChange }: FieldsProps) {
  return (
    <Card
      right="catalog:write"
      title="For which calls"
      lead="Leave a field empty for all. A call must match every field that you fill in."
    >
      <div className="grid-2">
        <ModelPick
          label="Models"
          value={draft.models}
          placeholder="All models"
          hint="A name that ends in * means all names that begin like this. Data endpoints and tools are checked only if you name them."
          onText={(models) => onChange({ models })}
        />
        <KeyPick
          label="Keys"
          accounts={draft.accounts.split(/[\s,]+/).filter(Boolean)}
          value={draft.keys}
          placeholder="All keys"
          hint="Keys that replace one of these by rotation are included."
          onText={(keys) => onChange({ keys })}
        />
        <AccountPick
          label="Accounts"
          value={draft.accounts}
          placeholder="All accounts"
          onText={(accounts) => onChange({ accounts })}
        />
        <TextField
          label="Labels"
          mono
          value={draft.labels}
          placeholder="team=support"
          hint="Labels that the call must have, as name=value."
          onText={(labels) => onChange({ labels })}
        />
      </div>
    </Card>
  )
}
