import type { FormEvent, ReactNode } from 'react'
import { Button } from '../../ui/button.tsx'
import { Checkbox, SelectField, TextField } from '../../ui/field.tsx'
import type { Param, PublicEndpoint } from '../../wire.ts'

export function EndpointForm({
  endpoint,
  values,
  busy,
  hint,
  onValue,
  onRun,
}: {
  endpoint: PublicEndpoint
  values: Record<string, string>
  busy: boolean
  hint: ReactNode
  onValue: (name: string, value: string) => void
  onRun: () => void
}) {
  const first = endpoint.params.filter((param) => param.required)
  const rest = endpoint.params.filter((param) => !param.required)
  const given = rest.filter((param) => values[param.name]).length
  const field = (param: Param) => (
    <ParamField
      key={param.name}
      param={param}
      value={values[param.name] ?? ''}
      onValue={(value) => onValue(param.name, value)}
    />
  )
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onRun()
  }
  return (
    <form className="stack" onSubmit={submit} aria-label={endpoint.title}>
      {first.map(field)}
      {rest.length ? (
        <details className="fold">
          <summary>
            Options ({rest.length}
            {given ? `, ${given} given` : ''})
          </summary>
          <div className="stack">{rest.map(field)}</div>
        </details>
      ) : null}
      {hint}
      <Button type="submit" look="primary" icon="send" busy={busy}>
        Run
      </Button>
    </form>
  )
}

/** Descriptions are written for the reference, with code marked by backticks. */
const plain = (text: string) => text.replaceAll('`', '')

interface FieldProps<P> {
  param: P
  value: string
  onValue: (value: string) => void
}

/** The kind of field follows from what the endpoint says of its parameter. */
function ParamField({ param, value, onValue }: FieldProps<Param>) {
  const required = param.required ?? false
  const common = { label: <code>{param.name}</code>, hint: plain(param.description), value, onText: onValue, required }
  if (param.kind === 'list') return <ListField param={param} value={value} onValue={onValue} />
  if ('allowed' in param)
    return (
      <SelectField {...common} options={param.allowed}>
        {required ? null : <option value="">{param.default ? `default: ${param.default}` : 'not given'}</option>}
        {required && value === '' ? <option value="">choose</option> : null}
      </SelectField>
    )
  const number = param.kind === 'integer'
  return (
    <TextField
      {...common}
      type={param.kind === 'date' ? 'date' : number ? 'number' : 'text'}
      inputMode={number ? 'numeric' : undefined}
      {...(number ? { min: param.min, max: param.max } : {})}
      placeholder={param.default ? `default: ${param.default}` : `such as ${param.example}`}
      spellCheck={false}
      autoCapitalize="none"
    />
  )
}

/** Several of many names: few are ticked one by one, many stand in a box that scrolls. */
function ListField({ param, value, onValue }: FieldProps<Extract<Param, { kind: 'list' }>>) {
  const chosen = value.split(',').filter(Boolean)
  return (
    <details className="fold">
      <summary>
        <code>{param.name}</code> {chosen.length ? `(${chosen.length})` : ''}
      </summary>
      <fieldset className="stack-tight">
        <legend className="sr-only">{param.name}</legend>
        <p className="field-hint">{plain(param.description)}</p>
        <div className="choice-list">
          {param.allowed.map((name) => (
            <Checkbox
              key={name}
              label={name}
              checked={chosen.includes(name)}
              onCheck={(on) => onValue((on ? [...chosen, name] : chosen.filter((other) => other !== name)).join(','))}
            />
          ))}
        </div>
      </fieldset>
    </details>
  )
}
