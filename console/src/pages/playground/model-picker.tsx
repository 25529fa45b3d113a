// Chooses a model from many: opened by a button that names the present one, searched by name, family, price or ability.
import { type FormEvent, useId, useState } from 'react'
import { formatCompact } from '../../format.ts'
import { priceSummary } from '../../pricing.ts'
import { Dialog, DialogBody } from '../../ui/dialog.tsx'
import { SearchField } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Empty } from '../../ui/state.tsx'
import type { PublicModel } from '../../wire.ts'
import { SimulatedBadge } from '../models.tsx'

interface Props {
  models: readonly PublicModel[]
  chosen: PublicModel | undefined
  onPick: (uid: string) => void
}

export function ModelPicker({ models, chosen, onPick }: Props) {
  const [open, setOpen] = useState(false)
  const id = useId()
  return (
    <div className="field">
      <span className="field-label" id={`${id}l`}>
        Model
      </span>
      <button
        type="button"
        id={id}
        className="input picker"
        aria-haspopup="dialog"
        aria-labelledby={`${id}l ${id}`}
        onClick={() => setOpen(true)}
      >
        {chosen?.name ?? 'Choose a model'}
        <Icon name="down" size={14} />
      </button>
      {chosen ? (
        <p className="field-hint">
          {priceSummary(chosen.pricing)}, in credits{chosen.simulated ? '; simulated: its answers are made up' : null}
        </p>
      ) : null}
      {open ? (
        <ModelDialog
          models={models}
          chosen={chosen}
          onPick={(uid) => {
            setOpen(false)
            onPick(uid)
          }}
          onClose={() => setOpen(false)}
        />
      ) : null}
    </div>
  )
}

export function ModelDialog({ models, chosen, onPick, onClose }: Props & { onClose: () => void }) {
  const [text, setText] = useState('')
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const found = models.filter((model) => {
    const known = [model.uid, model.name, model.family, ...model.capabilities].join(' ').toLowerCase()
    return words.every((word) => known.includes(word))
  })
  const takeFirst = (event: FormEvent) => {
    event.preventDefault()
    if (found[0]) onPick(found[0].uid)
  }
  return (
    <Dialog title="Choose a model" onClose={onClose}>
      <DialogBody>
        <form onSubmit={takeFirst}>
          <SearchField label="Search models" text={text} onText={setText} />
        </form>
        {found.length === 0 ? (
          <Empty icon="models" title="No model found">
            <p>Try a part of its name, its family, or an ability such as vision.</p>
          </Empty>
        ) : (
          <ul className="pick-list">
            {found.map((model) => (
              <li key={model.uid}>
                <button
                  type="button"
                  className="pick"
                  aria-current={model.uid === chosen?.uid ? 'true' : undefined}
                  onClick={() => onPick(model.uid)}
                >
                  <span>
                    <b>{model.name}</b> {model.simulated ? <SimulatedBadge /> : null}
                    <code className="cell-sub">{model.uid}</code>
                  </span>
                  <span className="pick-end small">
                    {priceSummary(model.pricing)}
                    {model.limits.contextTokens ? ` · ${formatCompact(model.limits.contextTokens)} context` : ''}
                    {model.uid === chosen?.uid ? <Icon name="check" size={16} /> : null}
                  </span>
                </button>
              </li>
            ))}
          </ul>
        )}
      </DialogBody>
    </Dialog>
  )
}
