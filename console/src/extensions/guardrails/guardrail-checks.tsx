// The three checks of guardrails, each with its fields: patterns that are tried while they are typed, a hook with its
// secret, a moderation model.
import { useState } from 'react'
import { api } from '../../api.ts'
import { useQuery, useSettled } from '../../query.ts'
import { useAction } from '../../ui/action.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { Code } from '../../ui/code.tsx'
import { Checkbox, RadioCards, SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Card, Note } from '../../ui/page.tsx'
import { Fault } from '../../ui/state.tsx'
import type { Catalog, RedactionSample } from '../../wire.ts'
import { ownOf, PATTERNS, type PatternName, type RuleDraft } from './guardrail-draft.ts'

interface Props {
  draft: RuleDraft
  catalog: Catalog
  onChange: (next: Partial<RuleDraft>) => void
}

const SAMPLE = 'Please write to jo@example.org or call +49 30 901820. My card is 4111 1111 1111 1111.'

export function RedactionCard({ draft, onChange }: Props) {
  const [sample, setSample] = useState(SAMPLE)
  const tried = useSample(draft, sample)
  const tick = (name: PatternName, isOn: boolean) =>
    onChange({
      patterns: PATTERNS.map(([one]) => one).filter((one) => (one === name ? isOn : draft.patterns.includes(one))),
    })
  return (
    <>
      <Card right="catalog:write" title="What to redact">
        <div className="grid-2">
          {PATTERNS.map(([name, label, hint]) => (
            <Checkbox
              key={name}
              label={label}
              hint={hint}
              checked={draft.patterns.includes(name)}
              onCheck={(isOn) => tick(name, isOn)}
            />
          ))}
        </div>
        <OwnPatterns draft={draft} problems={tried.data?.problems ?? []} onChange={onChange} />
      </Card>
      <Card title="Try it" lead="Nothing of this is stored or sent to a vendor.">
        <TextArea label="Sample text" rows={4} maxLength={2000} value={sample} onText={setSample} />
        <Tried draft={draft} sample={tried.data} error={tried.error} />
      </Card>
    </>
  )
}

function useSample(draft: RuleDraft, text: string) {
  const redact = { patterns: [...draft.patterns], own: ownOf(draft) }
  const isEmpty = redact.patterns.length === 0 && Object.keys(redact.own).length === 0
  const asked = useSettled(isEmpty ? '' : JSON.stringify({ redact, text }))
  return useQuery(asked === '' ? undefined : `guardrail-try ${asked}`, () => {
    const { redact, text } = JSON.parse(asked) as { redact: Parameters<typeof api.tryRedaction>[0]; text: string } // Written above.
    return api.tryRedaction(redact, text)
  })
}

function Tried({
  draft,
  sample,
  error,
}: {
  draft: RuleDraft
  sample: RedactionSample | undefined
  error: Error | undefined
}) {
  if (error) return <Fault error={error} />
  if (!sample) return <p className="muted">Choose a pattern to see what it finds.</p>
  const words = sample.found.map(({ pattern, times }) => {
    const label = PATTERNS.find(([name]) => name === pattern)?.[1] ?? pattern
    return `${label}: ${times}`
  })
  return (
    <div className="stack-tight">
      <p role="status">{words.length > 0 ? `Found: ${words.join(', ')}.` : 'Nothing was found in this text.'}</p>
      <Code
        label={draft.on.includes('request') ? 'What the vendor sees' : 'What the caller sees'}
        text={sample.text}
        wrap
      />
    </div>
  )
}

function OwnPatterns({
  draft: { own },
  problems,
  onChange,
}: {
  draft: RuleDraft
  problems: RedactionSample['problems']
  onChange: Props['onChange']
}) {
  const put = (at: number, next?: Partial<RuleDraft['own'][number]>) =>
    onChange({ own: own.flatMap((one, index) => (index !== at ? [one] : next ? [{ ...one, ...next }] : [])) })
  return (
    <fieldset className="stack-tight">
      <legend className="field-label">Patterns of your own</legend>
      {own.map((one, at) => (
        // Patterns have no other name while they are typed.
        <OwnPattern
          key={at}
          {...one}
          number={at + 1}
          problem={problems.find(({ pattern }) => pattern === one.word.trim())?.message}
          onPut={(next) => put(at, next)}
        />
      ))}
      <p className="field-hint">
        The word is part of the placeholder, such as [TICKET_5F0C2A91B7D3]. Patterns are regular expressions in the
        syntax of RE2.
      </p>
      <div className="row">
        <Button
          right="catalog:write"
          small
          icon="plus"
          onClick={() => onChange({ own: [...own, { word: '', source: '' }] })}
        >
          Add a pattern
        </Button>
      </div>
    </fieldset>
  )
}

interface OwnProps {
  word: string
  source: string
  number: number
  problem: string | undefined
  /** Without anything: it is removed. */
  onPut: (next?: Partial<RuleDraft['own'][number]>) => void
}

function OwnPattern({ word, source, number, problem, onPut }: OwnProps) {
  return (
    <>
      <div className="own-pattern">
        <TextField
          label={`Word ${number}`}
          mono
          value={word}
          placeholder="ticket"
          onText={(text) => onPut({ word: text })}
        />
        <TextField
          label={`Pattern ${number}`}
          mono
          value={source}
          placeholder="TCK-[0-9]{6}"
          aria-invalid={problem ? true : undefined}
          onText={(text) => onPut({ source: text })}
        />
        <IconButton icon="trash" label={`Remove pattern ${number}`} onClick={() => onPut()} />
      </div>
      {problem ? (
        <p className="field-fault" role="status">
          <Icon name="warning" size={14} /> “{word}” {problem}
        </p>
      ) : null}
    </>
  )
}

/** Of a hook and a model alike. */
function FailureFields({ draft, onChange, defaultMs }: Omit<Props, 'catalog'> & { defaultMs: number }) {
  return (
    <>
      <TextField
        label="Deadline (milliseconds)"
        type="number"
        min={50}
        max={30_000}
        value={draft.deadlineMs}
        placeholder={String(defaultMs)}
        hint="How long a call waits for this check, 50 to 30,000. After that the check has failed."
        onText={(deadlineMs) => onChange({ deadlineMs })}
      />
      <RadioCards
        label="If the check fails or is late"
        value={draft.onFailure}
        options={[
          { value: 'block', label: 'Block the call', hint: 'Callers get error 503 until it works again.' },
          {
            value: 'allow',
            label: 'Let the call through',
            hint: 'The call continues without this check, and its page says so.',
          },
        ]}
        onPick={(onFailure) => onChange({ onFailure })}
      />
    </>
  )
}

export function HookCard({ draft, onChange }: Props) {
  return (
    <Card right="catalog:write" title="Your service">
      <TextField
        label="Address"
        mono
        type="url"
        required
        value={draft.url}
        placeholder="https://checks.example.com/tollgate"
        hint="It gets a POST with the texts, and answers with “allow”, “block” or “replace”. Private addresses must be listed in TOLLGATE_OUTBOUND_ALLOW."
        onText={(url) => onChange({ url })}
      />
      <FailureFields draft={draft} onChange={onChange} defaultMs={2000} />
      <HookSecret />
    </Card>
  )
}

/** The same for all webhooks of the gateway. */
function HookSecret() {
  const [secret, setSecret] = useState<string>()
  const show = useAction(async () => setSecret((await api.gatewayWebhookSecret()).secret))
  return (
    <div className="stack-tight">
      <p className="field-label">Secret</p>
      {secret ? <Code label="Secret of the signatures" text={secret} wrap /> : null}
      <p className="field-hint">
        Each request is signed with the gateway’s webhook secret, as Standard Webhooks describes, so that your service
        can tell it is from here.
      </p>
      {show.error ? <Fault error={show.error} /> : null}
      {secret ? null : (
        <div className="row">
          <Button right="exports:write" small busy={show.busy} onClick={() => show.go()}>
            Show the secret
          </Button>
        </div>
      )}
    </div>
  )
}

export function ModerationCard({ draft, catalog, onChange }: Props) {
  const models = Object.entries(catalog.document.models).flatMap(([uid, { type, name }]) =>
    type === 'moderation' ? [[uid, name] as const] : [],
  )
  if (models.length === 0)
    return <Note tone="warn">The catalog has no moderation model. Connect a vendor that offers one first.</Note>
  return (
    <Card right="catalog:write" title="Moderation model" lead="Accounts are not charged for these calls.">
      <div className="grid-2">
        <SelectField
          label="Model"
          required
          value={draft.model}
          options={models}
          onText={(model) => onChange({ model })}
        >
          <option value="">Choose a model</option>
        </SelectField>
        <TextField
          label="Categories"
          value={draft.categories}
          placeholder="hate, violence"
          hint="Only these categories block. Leave empty for everything that the model flags."
          onText={(categories) => onChange({ categories })}
        />
      </div>
      <FailureFields draft={draft} onChange={onChange} defaultMs={5000} />
    </Card>
  )
}
