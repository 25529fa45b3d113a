// How a conversation is held: the model, its instructions, its parameters and its tools.
import type { ReactNode } from 'react'
import { Button } from '../../ui/button.tsx'
import { SelectField, TextArea, TextField } from '../../ui/field.tsx'
import type { PublicModel } from '../../wire.ts'
import type { ChatSettings } from './chat-stream.ts'
import { ModelPicker } from './model-picker.tsx'

const EFFORTS = [['', 'Default'], 'minimal', 'low', 'medium', 'high'] as const

export function Settings({
  models,
  settings,
  fault,
  onSettings,
  children,
}: {
  models: readonly PublicModel[]
  settings: ChatSettings
  fault: string | undefined
  onSettings: (change: (old: ChatSettings) => ChatSettings) => void
  children?: ReactNode
}) {
  const set = (name: keyof ChatSettings) => (text: string) => onSettings((old) => ({ ...old, [name]: text }))
  const model = models.find((one) => one.uid === settings.model)
  return (
    <aside className="bench-side talk-side" aria-label="Settings">
      <ModelPicker models={models} chosen={model} onPick={set('model')} />
      <details className="fold" open={Boolean(settings.system)}>
        <summary>System prompt</summary>
        <TextArea
          label="System prompt"
          quiet
          value={settings.system}
          onText={set('system')}
          placeholder="How the model should behave"
          rows={3}
        />
      </details>
      <details
        className="fold"
        open={Boolean(settings.temperature || settings.topP || settings.maxTokens || settings.effort)}
      >
        <summary>Parameters</summary>
        <Parameters settings={settings} set={set} />
      </details>
      <details className="fold" open={Boolean(settings.tools)}>
        <summary>Tools</summary>
        <div className="stack-tight">
          <TextArea
            label="Tools, as a JSON array"
            mono
            value={settings.tools}
            onText={set('tools')}
            fault={fault}
            rows={5}
            spellCheck={false}
          />
          <div>
            <Button small onClick={() => set('tools')(EXAMPLE_TOOLS)}>
              Insert an example
            </Button>
          </div>
        </div>
      </details>
      {children}
    </aside>
  )
}

function Parameters({
  settings,
  set,
}: {
  settings: ChatSettings
  set: (name: keyof ChatSettings) => (text: string) => void
}) {
  return (
    <div className="stack">
      <p className="field-hint">Empty fields are not sent; the model then uses its own defaults.</p>
      <div className="pair">
        <TextField
          label="Temperature"
          inputMode="decimal"
          type="number"
          step="0.1"
          min={0}
          max={2}
          value={settings.temperature}
          onText={set('temperature')}
        />
        <TextField
          label="Top p"
          inputMode="decimal"
          type="number"
          step="0.05"
          min={0}
          max={1}
          value={settings.topP}
          onText={set('topP')}
        />
      </div>
      <div className="pair">
        <TextField
          label="Max tokens"
          inputMode="numeric"
          type="number"
          min={1}
          value={settings.maxTokens}
          onText={set('maxTokens')}
        />
        <SelectField label="Reasoning effort" value={settings.effort} onText={set('effort')} options={EFFORTS} />
      </div>
    </div>
  )
}

const EXAMPLE_TOOLS = JSON.stringify(
  [
    {
      type: 'function',
      function: {
        name: 'get_weather',
        description: 'The current weather in a city.',
        parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
      },
    },
  ],
  null,
  2,
)
