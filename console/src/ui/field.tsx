// Form controls whose label, hint and error message are tied to the control, also for screen readers.
import { type ComponentProps, type FormEvent, type ReactNode, useId, useState } from 'react'
import { countries } from '../countries.ts'
import { type Needs, useAllowed } from '../session.tsx'
import { DateInput } from './date-input.tsx'
import { Icon } from './icon.tsx'

interface Around {
  label: ReactNode
  hint?: ReactNode
  fault?: string | undefined
  /** The same, as the server found it in what was typed before: it does not keep the form from being sent again. */
  said?: string | undefined
  /** The label is for screen readers only, where the context makes it clear. */
  quiet?: boolean
}

interface Wiring {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': true | undefined
  /** The page itself has found something, without which the form is not sent (ui/action.ts). */
  'data-wrong': true | undefined
  onChange: (event: { target: { value: string } }) => void
  onInvalid: (event: FormEvent<Control>) => void
}

export type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement

type Plain<Tag extends 'input' | 'select' | 'textarea'> = Omit<ComponentProps<Tag>, 'id' | 'className' | 'onChange'>
type Text<Tag extends 'input' | 'select' | 'textarea'> = Around & { onText?: (text: string) => void } & Plain<Tag>

const INVALID = 'input:invalid, select:invalid, textarea:invalid'

/** `control` gets what is left of the field's properties, tied to its label, hint and fault. */
export function Field<Props extends Around & { onText?: (text: string) => void; required?: boolean | undefined }>({
  props,
  control,
}: {
  props: Props
  control: (wired: Omit<Props, keyof Around | 'onText'> & Wiring) => ReactNode
}) {
  const { label, hint, fault: given, said, quiet, onText, ...rest } = props
  // What the browser finds, or the server said of this field (ui/action.ts), until something else is typed.
  const [found, setFound] = useState('')
  const fault = given ?? said ?? (found || undefined)
  const id = useId()
  const described = [hint ? `${id}h` : '', fault ? `${id}f` : ''].filter(Boolean).join(' ')
  const named = rest.required ? 'field-label field-required' : 'field-label'
  return (
    <div className="field">
      <label htmlFor={id} className={quiet ? 'sr-only' : named}>
        {label}
      </label>
      {control({
        ...rest,
        id,
        'aria-describedby': described || undefined,
        'aria-invalid': fault ? true : undefined,
        'data-wrong': given ? true : undefined,
        onChange: (event) => {
          setFound('')
          onText?.(event.target.value)
        },
        onInvalid: (event) => {
          event.preventDefault()
          const { currentTarget: control } = event
          setFound((control.validity.patternMismatch && control.title) || control.validationMessage)
          control.closest('details')?.setAttribute('open', '')
          if (control.form?.querySelector(INVALID) === control) control.focus()
        },
      })}
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

const inputClass = (mono: boolean | undefined) => (mono ? 'input mono' : 'input')

export function TextField({ mono, ...props }: Text<'input'> & { mono?: boolean }) {
  const control = (wired: Omit<typeof props, keyof Around | 'onText'> & Wiring) =>
    wired.type === 'date' ? (
      <DateInput {...wired} value={wired.value?.toString()} />
    ) : (
      <input className={inputClass(mono)} autoComplete="off" {...wired} />
    )
  return <Field props={props} control={control} />
}

export function TextArea({ mono, ...props }: Text<'textarea'> & { mono?: boolean }) {
  return <Field props={props} control={(wired) => <textarea className={inputClass(mono)} {...wired} />} />
}

/** An option's value, or its value and what is shown. */
type Option = string | readonly [value: string, label: string]

export function SelectField({ options = [], children, ...props }: Text<'select'> & { options?: readonly Option[] }) {
  return (
    <Field
      props={props}
      control={(wired) => (
        <span className="select">
          <select className="input" {...wired}>
            {children}
            {options.map((option) => {
              const [value, label] = typeof option === 'string' ? [option, option] : option
              return (
                <option key={value} value={value}>
                  {label}
                </option>
              )
            })}
          </select>
          <Icon name="down" size={14} />
        </span>
      )}
    />
  )
}

/** Options under the names of their groups, in the order in which they come; a single group needs no name. */
export function GroupedOptions({ choices }: { choices: readonly { value: string; label: string; group: string }[] }) {
  const groups = Map.groupBy(choices, ({ group }) => group)
  return [...groups].map(([group, members]) => {
    const options = members.map(({ value, label }) => (
      <option key={value} value={value}>
        {label}
      </option>
    ))
    if (groups.size < 2) return options
    return (
      <optgroup key={group} label={group.charAt(0).toUpperCase() + group.slice(1)}>
        {options}
      </optgroup>
    )
  })
}

export function SearchField({ label, text, onText }: { label: string; text: string; onText: (text: string) => void }) {
  return (
    <div className="search">
      <Icon name="search" size={16} />
      <input
        className="input"
        type="search"
        aria-label={label}
        placeholder="Search by name or id"
        value={text}
        onChange={(event) => onText(event.target.value)}
      />
    </div>
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

/** A part of a long form, under a heading of its own. */
export function Section({ title, children }: { title: string; children: ReactNode }) {
  const id = useId()
  return (
    <section className="form-section" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {children}
    </section>
  )
}

/** A switch, for what takes effect without a save button. */
export function Switch({
  label,
  on,
  onSwitch,
  disabled,
  right,
  account,
}: { label: string; on: boolean; onSwitch: (on: boolean) => void; disabled?: boolean } & Needs) {
  const allowed = useAllowed({ right, account })
  return (
    <button
      type="button"
      role="switch"
      data-right={right}
      className="switch"
      aria-checked={on}
      aria-label={label}
      disabled={disabled || !allowed}
      title={allowed ? undefined : 'Your role may not change this.'}
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

/** One of a few choices that need a sentence each. */
export function RadioCards<Value extends string>({
  label,
  value,
  options,
  onPick,
}: {
  label: string
  value: Value
  options: readonly { value: Value; label: string; hint: string; disabled?: boolean }[]
  onPick: (value: Value) => void
}) {
  const name = useId()
  return (
    <fieldset className="stack-tight">
      <legend className="field-label">{label}</legend>
      <div className="grid-2">
        {options.map((option) => (
          <label key={option.value} className="checkbox radio-card">
            <input
              type="radio"
              name={name}
              checked={option.value === value}
              disabled={option.disabled}
              onChange={() => onPick(option.value)}
            />
            <span>
              {option.label}
              <span className="field-hint">{option.hint}</span>
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}

/** One of several fields in a list, of which that of the country is chosen from all there are. */
export function CountryOrText({ name, maxLength, type, ...props }: Text<'input'>) {
  if (name !== 'country') return <TextField {...props} name={name} maxLength={maxLength} type={type} />
  const { label, hint, fault, said, value, required, disabled, onText } = props
  const given = { label, hint, fault, said, value, required, disabled, onText: onText ?? (() => undefined) }
  return <SelectField {...given} name={name} options={[['', 'Choose…'], ...countries()]} />
}
