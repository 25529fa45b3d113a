import { type FormEvent, type ReactNode, useId } from 'react'
import { Button } from '../../ui/button.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import type { Param, PublicEndpoint } from '../../wire.ts'
import { exampleValues } from '../snippet.ts'

export function pathParams(endpoint: PublicEndpoint): string[] {
  return [...endpoint.path.matchAll(/\{(\w+)\}|:(\w+)/g)].map((found) => found[1] ?? found[2] ?? '')
}

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
  const examples = exampleValues(endpoint)
  const inPath = pathParams(endpoint)
  const needed = (param: Param) => Boolean(param.required) || inPath.includes(param.name)
  const first = endpoint.params.filter(needed)
  const rest = endpoint.params.filter((param) => !needed(param))
  const field = (param: Param) => (
    <ParamField
      key={param.name}
      param={param}
      required={needed(param)}
      value={values[param.name] ?? ''}
      example={examples[param.name]}
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
        <details className="fold" open={rest.some((param) => values[param.name]) || first.length === 0}>
          <summary>{first.length ? `Options (${rest.length})` : 'Parameters'}</summary>
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

/** The kind of field follows from what the endpoint says of its parameter. */
function ParamField({
  param,
  required,
  value,
  example,
  onValue,
}: {
  param: Param
  required: boolean
  value: string
  example: string | undefined
  onValue: (value: string) => void
}) {
  const id = useId()
  const fallback = param.default == null ? '' : String(param.default)
  const common = { label: <code>{param.name}</code>, hint: param.description, value, onText: onValue, required }
  const values = /bool/.test(param.type ?? '') ? ['true', 'false'] : param.values
  if (values?.length)
    return (
      <SelectField {...common}>
        {required ? null : <option value="">{fallback ? `default: ${fallback}` : 'default'}</option>}
        {required && value === '' ? <option value="">choose</option> : null}
        {values.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </SelectField>
    )
  const kind = param.type ?? ''
  const date = /date/.test(kind)
  const number = /int|number|page|count/.test(kind)
  return (
    <TextField
      key={id}
      {...common}
      type={date ? 'date' : number ? 'number' : 'text'}
      inputMode={number ? 'numeric' : undefined}
      min={number ? param.min : undefined}
      max={number ? param.max : undefined}
      placeholder={fallback ? `default: ${fallback}` : (example ?? param.example ?? '')}
      spellCheck={false}
      autoCapitalize="none"
    />
  )
}
