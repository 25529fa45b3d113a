// Images and files for a model: uploaded ones become data URIs in the page, images may also be named by their address,
// which the gateway fetches.
import { useId, useRef, useState } from 'react'
import { formatBytes } from '../../format.ts'
import { randomId } from '../../random.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'

const EACH_MAX = 20_000_000
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']
const TEXT_TYPES = ['text/plain', 'text/markdown', 'text/csv', 'application/json']
/** A longer text costs more than somebody who drops a file expects. */
const TEXT_MAX = 500_000

/** What a model takes: images for all of these forms, PDFs where it sees, text everywhere. */
type Accepted = 'images' | 'text' | 'files'

const ACCEPTED: Record<Accepted, { types: readonly string[]; what: string; fault: string }> = {
  images: { types: IMAGE_TYPES, what: 'images', fault: 'Only PNG, JPEG, WebP or GIF images of up to 20 MB each.' },
  text: {
    types: TEXT_TYPES,
    what: 'text files',
    fault: 'This model takes text files (TXT, Markdown, CSV, JSON) of up to 500 KB each.',
  },
  files: {
    types: [...IMAGE_TYPES, 'application/pdf', ...TEXT_TYPES],
    what: 'files',
    fault: 'Only images and PDFs of up to 20 MB each, and text files (TXT, Markdown, CSV, JSON) of up to 500 KB.',
  },
}

/** Browsers do not know every text file by its type. */
const typeOf = ({ name, type }: File) => (/\.(?:md|markdown)$/i.test(name) ? 'text/markdown' : type)
const fits = (file: File, types: readonly string[]) =>
  types.includes(typeOf(file)) && file.size <= (TEXT_TYPES.includes(typeOf(file)) ? TEXT_MAX : EACH_MAX)

/** The content of a text file. */
export function textOf({ source }: Reference): string | undefined {
  const [, type = '', data = ''] = /^data:([^;,]+);base64,(.*)$/s.exec(source) ?? []
  if (!TEXT_TYPES.includes(type)) return undefined
  return new TextDecoder().decode(Uint8Array.from(atob(data), (char) => char.charCodeAt(0)))
}

/** Which of these a model without eyes cannot take. */
export const needsEyes = (file: Reference) => textOf(file) === undefined

export interface Reference {
  id: string
  name: string
  /** In bytes, of a file. */
  size?: number
  /** A data URI or an http(s) address. */
  source: string
}

interface ReferencesProps {
  label: string
  hint?: string
  accept?: Accepted
  most: number
  chosen: readonly Reference[]
  onChosen: (references: Reference[]) => void
}

export function References({ label, hint, accept = 'images', most, chosen, onChosen }: ReferencesProps) {
  const [url, setUrl] = useState('')
  const [fault, setFault] = useState<string>()
  const picker = useRef<HTMLInputElement>(null)
  const latest = useRef(chosen)
  latest.current = chosen
  const id = useId()
  const full = chosen.length >= most
  const { types, what } = ACCEPTED[accept]

  const addFiles = async (files: readonly File[]) => {
    const good = files.filter((file) => fits(file, types))
    setFault(good.length < files.length ? ACCEPTED[accept].fault : undefined)
    const read = await Promise.all(
      good
        .slice(0, most - chosen.length)
        .map(async (file) => ({
          id: randomId(),
          name: file.name,
          size: file.size,
          source: await asDataUri(new Blob([file], { type: typeOf(file) })),
        })),
    )
    // More may have been chosen while these were read.
    if (read.length) onChosen([...latest.current, ...read].slice(0, most))
  }

  const addUrl = () => {
    const text = url.trim()
    if (!/^https?:\/\/\S+\.\S+/.test(text)) {
      setFault('An address starts with https:// and is reachable from the internet.')
      return
    }
    setFault(undefined)
    onChosen([...chosen, { id: randomId(), name: text, source: text }])
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
      <ChosenFiles chosen={chosen} onChosen={onChosen} />
      {full ? null : (
        <div className="reference-add">
          <input
            ref={picker}
            id={id}
            type="file"
            accept={[...types, ...(types.includes('text/markdown') ? ['.md'] : [])].join(',')}
            multiple={most > 1}
            className="sr-only"
            tabIndex={-1}
            aria-label={`Upload: ${label}`}
            onChange={(event) => {
              void addFiles([...(event.target.files ?? [])])
              event.target.value = ''
            }}
          />
          {accept === 'text' ? null : (
            <>
              <TextField
                label="Address of an image"
                quiet
                placeholder="https://…"
                value={url}
                onText={setUrl}
                onKeyDown={(event) => {
                  if (event.key !== 'Enter') return
                  event.preventDefault()
                  addUrl()
                }}
              />
              <Button onClick={addUrl} disabled={!url.trim()}>
                Add
              </Button>
            </>
          )}
          <Button icon={accept === 'images' ? 'image' : 'plus'} onClick={() => picker.current?.click()}>
            Upload or drop {most > 1 ? what : 'an image'}
          </Button>
        </div>
      )}
      {fault ? (
        <p className="field-fault" role="alert">
          {fault}
        </p>
      ) : null}
    </fieldset>
  )
}

function ChosenFiles(props: { chosen: readonly Reference[]; onChosen: (references: Reference[]) => void }) {
  const { chosen, onChosen } = props
  if (chosen.length === 0) return null
  return (
    <ul className="reference-list">
      {chosen.map(({ id, name, size, source }) => (
        <li key={id}>
          {source.startsWith('data:image/') ? (
            <img src={source} alt="" />
          ) : (
            <span className="reference-link">
              <Icon name={source.startsWith('data:') ? 'docs' : 'external'} />
            </span>
          )}
          <span className="reference-name">
            {name}
            {size === undefined ? '' : ` (${formatBytes(size)})`}
          </span>
          <IconButton
            icon="close"
            label={`Remove ${name}`}
            onClick={() => onChosen(chosen.filter((other) => other.id !== id))}
          />
        </li>
      ))}
    </ul>
  )
}

function asDataUri(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })
}
