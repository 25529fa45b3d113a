// Everything that the signed-in person may change, each with a plain form. It is made from what the server reads, so
// that what has no page of its own can be done here too.
import { useState } from 'react'
import { actionId, useActions } from '../actions.ts'
import { api } from '../api.ts'
import { refresh } from '../query.ts'
import { setQuery, useLocation } from '../router.tsx'
import { fieldsOf, inputOf, labelOf, type Schema, type SchemaField } from '../schema-fields.ts'
import { lastAccount } from '../session.tsx'
import { Code } from '../ui/code.tsx'
import { FormDialog, Notice } from '../ui/dialog.tsx'
import { SearchField, SelectField, TextArea, TextField } from '../ui/field.tsx'
import { Card, Page } from '../ui/page.tsx'
import { Empty, Loaded } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import type { Action } from '../wire.ts'

export function ActionsPage() {
  const [text, setText] = useState('')
  const actions = useActions()
  const { query } = useLocation()
  const open = actions.data?.find((one) => actionId(one) === query.get('do'))
  const words = text.toLowerCase().split(/\s+/)
  const has = ({ title, path }: Action) => words.every((word) => `${title} ${path}`.toLowerCase().includes(word))
  return (
    <Page title="All actions" lead="Everything that you may change, with a plain form for each.">
      <SearchField label="Search actions" text={text} onText={setText} />
      <Loaded query={actions}>
        {(all) => (
          <Card flush>
            {all.some(has) ? null : (
              <Empty icon="search" title="No action is called so">
                <p>Try another word.</p>
              </Empty>
            )}
            <Table
              label="Actions"
              rows={all.filter(has)}
              rowKey={actionId}
              onOpen={(one) => setQuery({ do: actionId(one) })}
              columns={[
                { head: 'Action', main: true, cell: ({ title }) => title },
                { head: 'Of the API', wideOnly: true, cell: (one) => <code>{actionId(one)}</code> },
              ]}
            />
          </Card>
        )}
      </Loaded>
      {open ? <ActionForm key={actionId(open)} action={open} onClose={() => setQuery({ do: undefined })} /> : null}
    </Page>
  )
}

function ActionForm({ action, onClose }: { action: Action; onClose: () => void }) {
  const { method, path, title, query, body, right } = action
  const [answer, setAnswer] = useState<unknown>()
  const [inPath, inQuery, inBody] = [pathFields(path), query ? fieldsOf(query) : [], body ? fieldsOf(body) : []]
  const run = async (form: FormData) => {
    const texts = Object.fromEntries([...form].map(([name, value]) => [name, String(value)]))
    const at = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(texts[`{${name}}`] ?? ''))
    // Parameters of the address are texts.
    const asked = inputOf(inQuery, texts) as Readonly<Record<string, string>>
    setAnswer((await api.act(method, at, asked, body ? inputOf(inBody, texts) : undefined)) ?? null)
    refresh('')
  }
  if (answer !== undefined)
    return (
      <Notice title={title} wide onClose={onClose}>
        <p>Done. This is what the gateway answered.</p>
        <Code label="Answer" text={JSON.stringify(answer, null, 2)} />
      </Notice>
    )
  return (
    <FormDialog
      title={title}
      wide
      stay
      action={method === 'DELETE' ? 'Delete' : 'Send'}
      look={method === 'DELETE' ? 'danger' : 'primary'}
      {...(right ? { right, account: lastAccount() } : {})}
      run={run}
      onClose={onClose}
    >
      {[...inPath, ...inQuery, ...inBody].map((field) => (
        <PlainField key={field.name} field={field} />
      ))}
      {inPath.length + inQuery.length + inBody.length === 0 ? <p>It needs nothing else.</p> : null}
    </FormDialog>
  )
}

/** The names in its address; the account is the one that was open last, until another is typed. */
const pathFields = (path: string): SchemaField[] =>
  path.split('/').flatMap((step, at, steps) => {
    if (!step.startsWith('{')) return []
    const word = step.slice(1, -1)
    const of = steps[at - 1]?.replace(/s$/, '') ?? ''
    const schema: Schema = of === 'account' ? { default: lastAccount() } : {}
    const label = labelOf(word === 'id' ? `${of}_id` : word)
    return {
      name: `{${word}}`,
      steps: [],
      label,
      hint: undefined,
      kind: 'text',
      required: true,
      nullable: false,
      options: [],
      schema,
    }
  })

const FORMS: Partial<Record<SchemaField['kind'], string>> = { lines: 'One in a line.', json: 'As JSON.' }
const YES_NO: Readonly<Record<string, string>> = { true: 'Yes', false: 'No' }

function PlainField({ field }: { field: SchemaField }) {
  const { name, label, hint: said, kind, required, nullable, options, schema } = field
  const [text, setText] = useState(textOf(schema.default, kind))
  const sentences = [said?.replace(/[^.?!]$/, '$&.'), nullable ? 'Type “none” to take it away.' : '', FORMS[kind]]
  const hint = sentences.filter(Boolean).join(' ') || undefined
  const wired = { name, label, hint, required, value: text, onText: setText }
  if (kind === 'choice' || kind === 'yes-no') {
    const words = options.map((value) => [value, (kind === 'yes-no' && YES_NO[value]) || value] as const)
    return <SelectField {...wired} options={[['', required ? 'Choose' : 'As it is'], ...words]} />
  }
  if (kind === 'lines') return <TextArea {...wired} rows={3} />
  if (kind === 'json') return <TextArea {...wired} rows={6} mono />
  const type = kind === 'secret' ? 'password' : 'text'
  return <TextField {...wired} type={type} inputMode={kind === 'number' && !nullable ? 'decimal' : undefined} />
}

const textOf = (value: unknown, kind: SchemaField['kind']): string => {
  if (value === undefined || value === null) return ''
  if (kind === 'lines' && Array.isArray(value)) return value.join('\n')
  return typeof value === 'object' ? JSON.stringify(value, null, 2) : String(value)
}
