// Filters and prompts with a name: a person's own, stored by the server.
import { useState } from 'react'
import { api } from '../api.ts'
import { refresh, useQuery } from '../query.ts'
import { BASE, navigate } from '../router.tsx'
import { Button, IconButton } from '../ui/button.tsx'
import { FormDialog } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { toastError } from '../ui/toast.tsx'

const NAME_CHARS_MAX = 60

interface SavedProps {
  page: string
  /** What is saved, in a word. */
  what: 'view' | 'prompt'
  /** What would be saved now; undefined while there is nothing worth it. */
  current: string | undefined
  hint: string
  onOpen: (saved: string) => void
}

export function SavedViews({ page, query, filtered }: { page: string; query: URLSearchParams; filtered: boolean }) {
  const current = query.toString()
  return (
    <Saved
      page={page}
      what="view"
      hint="Filters, sorting and chart, for you alone. A view of the same name is replaced."
      current={filtered ? current : undefined}
      onOpen={(saved) =>
        navigate(`${window.location.pathname.slice(BASE.length)}${saved ? `?${saved}` : ''}`, { replace: true })
      }
    />
  )
}

export function Saved({ page, what, current, hint, onOpen }: SavedProps) {
  const views = useQuery(`views/${page}`, (signal) => api.views(page, signal))
  const [naming, setNaming] = useState(false)
  const items = views.data?.items ?? []
  const forget = (name: string) => api.deleteView(page, name).then(() => refresh(`views/${page}`), toastError)
  if (items.length === 0 && current === undefined) return null
  return (
    <section className="row saved" aria-label={`Saved ${what}s`}>
      {items.map(({ name, query: saved }) => (
        <span key={name} className="chip">
          <button type="button" className="text-button" aria-pressed={saved === current} onClick={() => onOpen(saved)}>
            {name}
          </button>
          <IconButton icon="close" label={`Delete the ${what} ${name}`} onClick={() => void forget(name)} />
        </span>
      ))}
      {current !== undefined && !items.some(({ query: saved }) => saved === current) ? (
        <Button small icon="plus" onClick={() => setNaming(true)}>
          Save {what}
        </Button>
      ) : null}
      {naming && current !== undefined ? (
        <NameDialog page={page} what={what} hint={hint} current={current} onClose={() => setNaming(false)} />
      ) : null}
    </section>
  )
}

function NameDialog(props: Omit<SavedProps, 'onOpen' | 'current'> & { current: string; onClose: () => void }) {
  const { page, what, hint, current, onClose } = props
  const [name, setName] = useState('')
  const save = async () => {
    await api.saveView({ page, name, query: current })
    refresh(`views/${page}`)
  }
  return (
    <FormDialog title={`Save this ${what}`} action={`Save ${what}`} run={save} onClose={onClose}>
      <TextField label="Name" required maxLength={NAME_CHARS_MAX} value={name} onText={setName} hint={hint} />
    </FormDialog>
  )
}
