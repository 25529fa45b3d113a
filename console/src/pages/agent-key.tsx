// A key for a program that decides by itself what to call: what it is for is said in words, and decides what it may
// use.
import { useState } from 'react'
import { api } from '../api.ts'
import { useQuery } from '../query.ts'
import { Dialog, DialogBody } from '../ui/dialog.tsx'
import { RadioCards } from '../ui/field.tsx'
import { Loaded } from '../ui/state.tsx'
import type { NewKey, PublicCatalog } from '../wire.ts'
import { KeyForm, type KeyPreset } from './key-form.tsx'

type Purpose = 'coding' | 'data'

interface Props {
  account: string
  onClose: () => void
  onMade: (made: NewKey) => void
}

export function AgentKeyForm(props: Props) {
  const catalog = useQuery('public-catalog', api.publicCatalog)
  if (catalog.data) return <Choice {...props} catalog={catalog.data} />
  return (
    <Dialog title="Create a key" wide onClose={props.onClose}>
      <DialogBody>
        <Loaded query={catalog}>{() => null}</Loaded>
      </DialogBody>
    </Dialog>
  )
}

function Choice({ catalog, ...props }: Props & { catalog: PublicCatalog }) {
  const [purpose, setPurpose] = useState<Purpose>('coding')
  const presets = presetsOf(catalog)
  const { coding, data } = presets
  return (
    // The fields begin anew with each choice.
    <KeyForm key={purpose} {...props} preset={presets[purpose]}>
      <RadioCards
        label="What is the key for?"
        value={purpose}
        onPick={setPurpose}
        options={[
          {
            value: 'coding',
            label: 'A coding agent',
            hint: `Claude Code, Codex, aider and others. May call the ${coding.models.length} text models and nothing else, for at most ${coding.limits.spendPerDay} credits a day.`,
          },
          {
            value: 'data',
            label: 'Data tools for an agent',
            hint: `Site analytics and social data over MCP or HTTP, for at most ${data.limits.spendPerDay} credits a day. May not call any model.`,
          },
        ]}
      />
    </KeyForm>
  )
}

/** A coding agent's single call reserves up to 100 credits, a data call one: each gets room for a day's work. */
function presetsOf({ models }: PublicCatalog): Record<Purpose, KeyPreset> {
  const text = models.filter(({ type }) => type === 'text').map(({ uid }) => uid)
  return {
    coding: { name: 'coding agent', models: text, limits: { spendPerDay: '500' } },
    data: { name: 'data tools', models: DATA_NAMES, limits: { spendPerDay: '5' } },
  }
}

/** What a key is held to that may call data endpoints and no model. */
export const DATA_NAMES = ['siteanalytics', 'socialapi']
