// Which models and which endpoints a key may use: all of them, or those that are ticked.
import { useState } from 'react'
import { api } from '../api.ts'
import { plural } from '../format.ts'
import { useQuery } from '../query.ts'
import { Button } from '../ui/button.tsx'
import { Checkbox, SearchField } from '../ui/field.tsx'
import { Loaded } from '../ui/state.tsx'
import type { PublicCatalog } from '../wire.ts'

type Names = readonly string[] | null

interface Props {
  models: Names
  onModels: (models: Names) => void
  endpoints: Names
  onEndpoints: (endpoints: Names) => void
}

export function Permissions({ models, onModels, endpoints, onEndpoints }: Props) {
  return (
    <div className="grid-2">
      <Choice
        title="Models"
        every="All models and data endpoints, also those added later"
        optionsOf={modelOptions}
        chosen={models}
        onChoose={onModels}
      />
      <Choice
        title="Endpoints"
        every="All endpoints, also those added later"
        optionsOf={endpointOptions}
        chosen={endpoints}
        onChoose={onEndpoints}
      />
    </div>
  )
}

interface Option {
  readonly name: string
  readonly about: string
  /** What it is found by, besides. */
  readonly words: string
}

function Choice({
  title,
  every,
  optionsOf,
  chosen,
  onChoose,
}: {
  title: string
  every: string
  optionsOf: (catalog: PublicCatalog) => Option[]
  chosen: Names
  onChoose: (names: Names) => void
}) {
  const catalog = useQuery('public-catalog', api.publicCatalog)
  return (
    <fieldset className="stack-tight">
      <legend className="field-label">{title}</legend>
      <Checkbox label={every} checked={chosen === null} onCheck={(all) => onChoose(all ? null : [])} />
      {chosen === null ? null : (
        <Loaded query={catalog}>
          {(data) => <Ticks title={title} options={optionsOf(data)} chosen={chosen} onChoose={onChoose} />}
        </Loaded>
      )}
    </fieldset>
  )
}

function Ticks({
  title,
  options,
  chosen,
  onChoose,
}: {
  title: string
  options: readonly Option[]
  chosen: readonly string[]
  onChoose: (names: readonly string[]) => void
}) {
  const [text, setText] = useState('')
  const sought = text.trim().toLowerCase()
  const shown = options.filter(({ name, about, words }) => `${name} ${about} ${words}`.toLowerCase().includes(sought))
  const names = shown.map(({ name }) => name)
  const isAll = names.every((name) => chosen.includes(name))
  return (
    <>
      <div className="row-spread">
        <SearchField label={`Search ${title.toLowerCase()}`} text={text} onText={setText} />
        <span className="row">
          <span className="muted small" role="status">
            {chosen.length === 0
              ? 'Choose at least one.'
              : `${chosen.length} of ${plural(options.length, title.toLowerCase().replace(/s$/, ''))} chosen`}
          </span>
          {sought && names.length > 1 ? (
            <Button
              small
              onClick={() =>
                onChoose(isAll ? chosen.filter((name) => !names.includes(name)) : [...new Set([...chosen, ...names])])
              }
            >
              {isAll ? `Untick these ${names.length}` : `Tick these ${names.length}`}
            </Button>
          ) : null}
        </span>
      </div>
      <div className="choice-list">
        {shown.map(({ name, about }) => (
          <Checkbox
            key={name}
            label={name}
            hint={about || undefined}
            checked={chosen.includes(name)}
            onCheck={(on) => onChoose(on ? [...chosen, name] : chosen.filter((other) => other !== name))}
          />
        ))}
        {shown.length ? null : <p className="muted small">No results.</p>}
      </div>
    </>
  )
}

/** The endpoints of one kind of data are allowed together, by a name that stands beside the models. */
const DATA = [
  { name: 'siteanalytics', about: 'All site analytics', words: '' },
  { name: 'socialapi', about: 'All social data', words: '' },
]

function modelOptions({ models }: PublicCatalog): Option[] {
  const known = models.map(({ uid, name, type }) => ({ name: uid, about: '', words: `${name} ${type}` }))
  return [...known, ...DATA.filter(({ name }) => !known.some((one) => one.name === name))]
}

function endpointOptions({ access }: PublicCatalog): Option[] {
  return access.map(({ name, title, paths }) => ({ name, about: title, words: paths.join(' ') }))
}
