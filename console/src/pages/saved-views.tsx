// Filters with a name: a person's own, kept by the server.
import { useState } from 'react'
import { api } from '../api.ts'
import { refresh, useQuery } from '../query.ts'
import { BASE, navigate } from '../router.tsx'
import { Button, IconButton } from '../ui/button.tsx'
import { FormDialog } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { toastError } from '../ui/toast.tsx'

const NAME_CHARS_MAX = 60

export function SavedViews({ page, query, filtered }: { page: string; query: URLSearchParams; filtered: boolean }) {
  const views = useQuery(`views/${page}`, (signal) => api.views(page, signal))
  const [naming, setNaming] = useState(false)
  const items = views.data?.items ?? []
  const current = query.toString()
  const open = (saved: string) =>
    navigate(`${window.location.pathname.slice(BASE.length)}${saved ? `?${saved}` : ''}`, { replace: true })
  const forget = (name: string) => api.deleteView(page, name).then(() => refresh(`views/${page}`), toastError)
  if (items.length === 0 && !filtered) return null
  return (
    <section className="row" aria-label="Saved views">
      {items.map(({ name, query: saved }) => (
        <span key={name} className="chip">
          <button type="button" className="text-button" aria-pressed={saved === current} onClick={() => open(saved)}>
            {name}
          </button>
          <IconButton icon="close" label={`Delete the view ${name}`} onClick={() => void forget(name)} />
        </span>
      ))}
      {filtered && !items.some(({ query: saved }) => saved === current) ? (
        <Button small icon="plus" onClick={() => setNaming(true)}>
          Save view
        </Button>
      ) : null}
      {naming ? <NameView page={page} query={current} onClose={() => setNaming(false)} /> : null}
    </section>
  )
}

function NameView({ page, query, onClose }: { page: string; query: string; onClose: () => void }) {
  const [name, setName] = useState('')
  const save = async () => {
    await api.saveView({ page, name, query })
    refresh(`views/${page}`)
  }
  return (
    <FormDialog title="Save this view" action="Save view" disabled={!name.trim()} run={save} onClose={onClose}>
      <TextField
        label="Name"
        required
        maxLength={NAME_CHARS_MAX}
        value={name}
        onText={setName}
        hint="Filters, sorting and chart, for you alone. A view of the same name is replaced."
      />
    </FormDialog>
  )
}
