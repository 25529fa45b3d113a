// Form controls whose label, hint and error message are tied to the control, also for screen readers.
import { type ComponentProps, type ReactNode, useId } from 'react'
import { Icon } from './icon.tsx'

interface Around {
  label: ReactNode
  hint?: ReactNode
  fault?: string | undefined
  /** The label is for screen readers only, where the context makes it clear. */
  quiet?: boolean
}

interface Wiring {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': true | undefined
}

function Field({
  label,
  hint,
  fault,
  quiet,
  required,
  children,
}: Around & { required?: boolean | undefined; children: (wiring: Wiring) => ReactNode }) {
  const id = useId()
  const described = [hint ? `${id}h` : '', fault ? `${id}f` : ''].filter(Boolean).join(' ')
  return (
    <div className="field">
      <label htmlFor={id} className={quiet ? 'sr-only' : required ? 'field-label field-required' : 'field-label'}>
        {label}
      </label>
      {children({ id, 'aria-describedby': described || undefined, 'aria-invalid': fault ? true : undefined })}
      {hint ? (
        <p className="field-hint" id={`${id}h`}>
          {hint}
        </p>
      ) : null}
      {fault ? (
        <p className="field-fault" id={`${id}f`}>
          <Icon name="warning" size={14} /> {fault}
        </p>
      ) : null}
    </div>
  )
}

type Plain<Tag extends 'input' | 'select' | 'textarea'> = Omit<ComponentProps<Tag>, 'id' | 'className' | 'onChange'>

export function TextField({
  label,
  hint,
  fault,
  quiet,
  onText,
  mono,
  ...rest
}: Around & { onText?: (text: string) => void; mono?: boolean } & Plain<'input'>) {
  return (
    <Field {...around(label, hint, fault, quiet)} required={rest.required}>
      {(wiring) => (
        <input
          className={mono ? 'input mono' : 'input'}
          autoComplete="off"
          {...rest}
          {...wiring}
          onChange={(event) => onText?.(event.target.value)}
        />
      )}
    </Field>
  )
}

export function TextArea({
  label,
  hint,
  fault,
  quiet,
  onText,
  mono,
  ...rest
}: Around & { onText?: (text: string) => void; mono?: boolean } & Plain<'textarea'>) {
  return (
    <Field {...around(label, hint, fault, quiet)} required={rest.required}>
      {(wiring) => (
        <textarea
          className={mono ? 'input mono' : 'input'}
          {...rest}
          {...wiring}
          onChange={(event) => onText?.(event.target.value)}
        />
      )}
    </Field>
  )
}

export function SelectField({
  label,
  hint,
  fault,
  quiet,
  onText,
  children,
  ...rest
}: Around & { onText?: (text: string) => void; children: ReactNode } & Plain<'select'>) {
  return (
    <Field {...around(label, hint, fault, quiet)} required={rest.required}>
      {(wiring) => (
        <span className="select">
          <select className="input" {...rest} {...wiring} onChange={(event) => onText?.(event.target.value)}>
            {children}
          </select>
          <Icon name="down" size={14} />
        </span>
      )}
    </Field>
  )
}

export function Checkbox({
  label,
  hint,
  onCheck,
  ...rest
}: { label: ReactNode; hint?: ReactNode; onCheck: (checked: boolean) => void } & Plain<'input'>) {
  return (
    <label className="checkbox">
      <input type="checkbox" {...rest} onChange={(event) => onCheck(event.target.checked)} />
      <span>
        {label}
        {hint ? <span className="field-hint">{hint}</span> : null}
      </span>
    </label>
  )
}

/** A switch, for what takes effect without a save button. */
export function Switch({
  label,
  on,
  onSwitch,
  disabled,
}: {
  label: string
  on: boolean
  onSwitch: (on: boolean) => void
  disabled?: boolean
}) {
  return (
    <button
      type="button"
      role="switch"
      className="switch"
      aria-checked={on}
      aria-label={label}
      disabled={disabled}
      onClick={() => onSwitch(!on)}
    />
  )
}

/** A segmented control: a few choices side by side, one of them selected. */
export function Segments<Value extends string>({
  label,
  value,
  options,
  onPick,
}: {
  label: string
  value: Value
  options: readonly { value: Value; label: ReactNode }[]
  onPick: (value: Value) => void
}) {
  const name = useId()
  return (
    <fieldset className="segments">
      <legend className="sr-only">{label}</legend>
      {options.map((option) => (
        <label key={option.value}>
          <input
            type="radio"
            name={name}
            checked={option.value === value}
            onChange={() => onPick(option.value)}
            className="sr-only"
          />
          <span>{option.label}</span>
        </label>
      ))}
    </fieldset>
  )
}

/** Spreading undefined properties is not the same as leaving them out, for the type checker's strictest setting. */
function around(label: ReactNode, hint: ReactNode, fault: string | undefined, quiet: boolean | undefined): Around {
  return { label, hint, fault, ...(quiet === undefined ? {} : { quiet }) }
}
