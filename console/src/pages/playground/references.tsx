// Reference images: uploaded ones become data URIs in the page, others are named by their address and fetched by the
// gateway.
import { useId, useRef, useState } from 'react'
import { formatBytes } from '../../format.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'

const EACH_MAX = 20_000_000
const TYPES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']

export interface Reference {
  id: string
  name: string
  /** A data URI or an http(s) address. */
  source: string
}

export function References({
  label,
  hint,
  most,
  chosen,
  onChosen,
}: {
  label: string
  hint?: string
  most: number
  chosen: readonly Reference[]
  onChosen: (references: Reference[]) => void
}) {
  const [url, setUrl] = useState('')
  const [fault, setFault] = useState<string>()
  const picker = useRef<HTMLInputElement>(null)
  const id = useId()
  const full = chosen.length >= most

  const addFiles = async (files: readonly File[]) => {
    const good = files.filter((file) => TYPES.includes(file.type) && file.size <= EACH_MAX)
    setFault(good.length < files.length ? 'Only PNG, JPEG, WebP or GIF images of up to 20 MB each.' : undefined)
    const read = await Promise.all(
      good.slice(0, most - chosen.length).map(async (file) => ({
        id: crypto.randomUUID(),
        name: `${file.name} (${formatBytes(file.size)})`,
        source: await asDataUri(file),
      })),
    )
    if (read.length) onChosen([...chosen, ...read])
  }

  const addUrl = () => {
    const text = url.trim()
    if (!/^https?:\/\/\S+\.\S+/.test(text)) {
      setFault('An address starts with https:// and is reachable from the internet.')
      return
    }
    setFault(undefined)
    onChosen([...chosen, { id: crypto.randomUUID(), name: text, source: text }])
    setUrl('')
  }

  return (
    <fieldset
      className="references"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        void addFiles([...event.dataTransfer.files])
      }}
    >
      <legend className="field-label">{label}</legend>
      {hint ? <p className="field-hint">{hint}</p> : null}
      {chosen.length ? (
        <ul className="reference-list">
          {chosen.map((reference) => (
            <li key={reference.id}>
              {reference.source.startsWith('data:image/') ? (
                <img src={reference.source} alt="" />
              ) : (
                <span className="reference-link">
                  <Icon name="external" />
                </span>
              )}
              <span className="reference-name">{reference.name}</span>
              <IconButton
                icon="close"
                label={`Remove ${reference.name}`}
                onClick={() => onChosen(chosen.filter((other) => other.id !== reference.id))}
              />
            </li>
          ))}
        </ul>
      ) : null}
      {full ? null : (
        <div className="reference-add">
          <input
            ref={picker}
            id={id}
            type="file"
            accept={TYPES.join(',')}
            multiple={most > 1}
            className="sr-only"
            tabIndex={-1}
            aria-label={`Upload: ${label}`}
            onChange={(event) => {
              void addFiles([...(event.target.files ?? [])])
              event.target.value = ''
            }}
          />
          <TextField
            label="Address of an image"
            quiet
            placeholder="https://…"
            value={url}
            onText={setUrl}
            fault={fault}
            onKeyDown={(event) => {
              if (event.key !== 'Enter') return
              event.preventDefault()
              addUrl()
            }}
          />
          <Button onClick={addUrl} disabled={!url.trim()}>
            Add
          </Button>
          <Button icon="image" onClick={() => picker.current?.click()}>
            Upload or drop {most > 1 ? 'images' : 'an image'}
          </Button>
        </div>
      )}
    </fieldset>
  )
}

function asDataUri(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })
}
