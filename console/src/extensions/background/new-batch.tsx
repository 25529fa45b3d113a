// A file becomes a batch in two steps: it is uploaded and checked line by line, and begun only when nothing is wrong
// with it.
import { useState } from 'react'
import { api } from '../../api.ts'
import { formatWhole } from '../../format.ts'
import { BatchCost } from '../../pages/playground/cost.tsx'
import { refresh } from '../../query.ts'
import { navigate } from '../../router.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Note } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import type { FileCheck, StoredFile } from '../../wire.ts'
import { removeFile } from './files-card.tsx'

interface Checked {
  file: StoredFile
  endpoint: string
  check: FileCheck
  /** Of the first requests. */
  bodies: readonly Record<string, unknown>[]
}

const FIRST_BYTES = 65_536
const USUAL = '/v1/chat/completions'

/** Every line names the endpoint; what the others say must be the same. */
async function endpointOf(file: File): Promise<string> {
  const [first = ''] = (await file.slice(0, FIRST_BYTES).text()).trimStart().split('\n')
  return /"url"\s*:\s*"(\/v1\/[\w/-]{1,60})"/.exec(first)?.[1] ?? USUAL
}

const QUOTED_MAX = 5

/** By which the cost is judged; the file was found to be valid. */
async function firstBodies(file: File): Promise<Checked['bodies']> {
  const lines = (await file.slice(0, FIRST_BYTES).text()).split('\n')
  // The last one may have been cut.
  const whole = file.size > FIRST_BYTES ? lines.slice(0, -1) : lines
  const requests = whole.filter((line) => line.trim()).slice(0, QUOTED_MAX)
  // The check has found a body in each.
  return requests.map((line) => (JSON.parse(line) as { body: Record<string, unknown> }).body)
}

async function upload(account: string, file: File): Promise<StoredFile> {
  const body = new FormData()
  body.set('purpose', 'batch')
  body.set('file', file)
  const response = await api.play(account, 'POST', '/v1/files', { body })
  return (await response.json()) as StoredFile // As the public API says it.
}

async function begin(account: string, { file, endpoint }: Checked): Promise<string> {
  const body = { input_file_id: file.id, endpoint, completion_window: '24h' }
  const response = await api.play(account, 'POST', '/v1/batches', { body })
  const made = (await response.json()) as { id: string } // As the public API says it.
  return made.id
}

export function NewBatch({ account, onClose }: { account: string; onClose: () => void }) {
  const [checked, setChecked] = useState<Checked>()
  const ready = checked !== undefined && checked.check.errors.length === 0

  /** What is not begun is not kept. */
  const drop = () => {
    if (ready) void removeFile(account, checked.file).catch(() => undefined)
    setChecked(undefined)
  }

  async function check(form: FormData): Promise<void> {
    const chosen = form.get('file')
    if (!(chosen instanceof File) || chosen.size === 0) throw new Error('file: Choose a file that has lines in it.')
    const endpoint = await endpointOf(chosen)
    const file = await upload(account, chosen)
    try {
      const found = await api.checkFile(account, file.id, endpoint)
      const isValid = found.errors.length === 0
      if (!isValid) await removeFile(account, file)
      setChecked({ file, endpoint, check: found, bodies: isValid ? await firstBodies(chosen) : [] })
    } catch (error) {
      await removeFile(account, file)
      throw error
    }
  }

  async function run(form: FormData): Promise<void> {
    if (!ready) return check(form)
    const id = await begin(account, checked)
    refresh(`batches/${account}`, `files/${account}`)
    onClose()
    navigate(`/a/${encodeURIComponent(account)}/batches/${encodeURIComponent(id)}`)
  }

  return (
    <FormDialog
      title="New batch"
      action={ready ? `Start ${requests(checked.check.total)}` : 'Upload and check'}
      wide
      stay
      run={run}
      onClose={() => {
        drop()
        onClose()
      }}
    >
      <TextField
        label="File"
        type="file"
        name="file"
        accept=".jsonl,.ndjson,application/jsonl,text/plain"
        required
        hint="A request in each line, as JSON: up to 50,000 lines and 100 MB. The file is checked before the batch starts."
        onText={drop}
      />
      {ready ? (
        <>
          <Note>
            <b>{checked.file.filename}</b> is valid: {requests(checked.check.total)} to <code>{checked.endpoint}</code>.
            Each is charged when it is answered, at the price that its model has in batches.
          </Note>
          <BatchCost account={account} bodies={checked.bodies} total={checked.check.total} />
        </>
      ) : null}
      {checked && !ready ? <Problems check={checked.check} /> : null}
    </FormDialog>
  )
}

const requests = (count: number) => `${formatWhole(count)} ${count === 1 ? 'request' : 'requests'}`

export function Problems({ check: { errors } }: { check: Pick<FileCheck, 'errors'> }) {
  return (
    <div className="stack">
      <Note tone="warn">
        The batch was not started, and nothing was charged. Correct{' '}
        {errors.length === 1 ? 'this problem' : `these ${errors.length} problems`} and upload the file again.
      </Note>
      <Table
        label="Problems"
        rows={errors}
        rowKey={({ line, code, param }) => `${line} ${code} ${param}`}
        columns={[
          { head: 'Line', cell: ({ line }) => (line === null ? 'File' : formatWhole(line)), right: true, tight: true },
          { head: 'Problem', main: true, cell: ({ message }) => message },
        ]}
      />
    </div>
  )
}
