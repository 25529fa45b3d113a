// The files of an account: what was uploaded for batches, and what batches made of it.
import { useState } from 'react'
import { api } from '../../api.ts'
import { formatBytes } from '../../format.ts'
import { refresh, useList } from '../../query.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Ago } from '../../ui/page.tsx'
import { Named, TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { StoredFile } from '../../wire.ts'

const PAGE = 20
const at = (seconds: number) => new Date(seconds * 1000).toISOString()

export async function removeFile(account: string, { id }: Pick<StoredFile, 'id'>): Promise<void> {
  await api.play(account, 'DELETE', `/v1/files/${encodeURIComponent(id)}`)
}

function save(account: string, { id, filename }: StoredFile): void {
  const link = document.createElement('a')
  link.href = api.fileAddress(account, id)
  link.download = filename
  link.click()
}

async function readFiles(account: string, after: string | undefined, signal: AbortSignal | undefined) {
  const query = { limit: PAGE, after }
  const response = await api.play(account, 'GET', '/v1/files', signal ? { query, signal } : { query })
  // As the public API says it.
  const page = (await response.json()) as { data: StoredFile[]; last_id: string | null; has_more: boolean }
  return { items: page.data, next: page.has_more ? page.last_id : null }
}

export function Download({
  account,
  file,
  name,
  label,
}: {
  account: string
  file: string
  name: string
  label: string
}) {
  return (
    <a className="button button-plain" href={api.fileAddress(account, file)} download={name}>
      <Icon name="download" size={16} /> {label}
    </a>
  )
}

export function FilesCard({ account }: { account: string }) {
  const list = useList(`files/${account}`, (after, signal) => readFiles(account, after, signal))
  const [leaving, setLeaving] = useState<StoredFile>()
  if (!list.error && !list.data?.length) return null
  return (
    <>
      <TableCard
        title="Files"
        lead="Files uploaded for batches, and their results. Files are deleted automatically when they expire."
        label="Files"
        list={list}
        rowKey={(file) => file.id}
        columns={[
          { head: 'Name', main: true, cell: (file) => <Named name={file.filename} sub={file.id} /> },
          { head: 'Kind', cell: ({ purpose }) => (purpose === 'batch' ? 'Requests' : 'Results') },
          { head: 'Size', cell: ({ bytes }) => formatBytes(bytes), right: true },
          { head: 'Made', cell: (file) => <Ago at={at(file.created_at)} />, tight: true },
          { head: 'Kept until', cell: (file) => <Ago at={at(file.expires_at)} />, tight: true },
          {
            head: 'Actions',
            cell: (file) => (
              <Menu
                label={`Actions of ${file.filename}`}
                items={[
                  { label: 'Download', icon: 'download', run: () => save(account, file) },
                  { label: 'Delete', icon: 'trash', danger: true, run: () => setLeaving(file) },
                ]}
              />
            ),
          },
        ]}
      />
      {leaving ? (
        <Confirm
          title="Delete this file?"
          action="Delete"
          danger
          onClose={() => setLeaving(undefined)}
          run={async () => {
            await removeFile(account, leaving)
            toast('The file is deleted.')
            refresh(`files/${account}`, `batch`)
          }}
        >
          <p>
            <b>{leaving.filename}</b> cannot be restored. The cost of its batches stays in the usage.
          </p>
        </Confirm>
      ) : null}
    </>
  )
}
