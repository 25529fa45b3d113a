import { useState } from 'react'
import { api } from '../../api.ts'
import { useList } from '../../query.ts'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, Notice } from '../../ui/dialog.tsx'
import { Badge, When } from '../../ui/page.tsx'
import { Empty, Fault } from '../../ui/state.tsx'
import { TableCard } from '../../ui/table.tsx'
import type { CatalogVersion, VendorCheck } from '../../wire.ts'
import { Changes, toastSaved } from './review.tsx'

export function CatalogVersions({ current }: { current: number | undefined }) {
  const list = useList('catalog/versions', (cursor, signal) => api.catalogVersions({ cursor }, signal))
  const [back, setBack] = useState<{ to: CatalogVersion; check: VendorCheck; now: unknown }>()
  const asked = useAction(async (_signal, to: CatalogVersion) => {
    const [{ document: now }, check] = await Promise.all([api.catalog(), api.checkRollback(to.version)])
    setBack({ to, check, now })
  })
  const [one, setOne] = useState<{ version: number; before: unknown; after: unknown }>()
  const shown = useAction(async (signal, version: number) => {
    const at = async (of: number) => (of === 0 ? undefined : (await api.catalogVersion(of, signal)).document)
    const [before, after] = await Promise.all([at(version - 1), at(version)])
    setOne({ version, before, after })
  })
  return (
    <>
      <TableCard
        label="Versions"
        list={list}
        rowKey={(row) => String(row.version)}
        onOpen={(row) => shown.go(row.version)}
        empty={<Empty icon="history" title="No versions yet" />}
        columns={[
          {
            head: 'Version',
            main: true,
            cell: (row) => (
              <>
                <button type="button" className="row-button cell-link" onClick={() => shown.go(row.version)}>
                  Version {row.version}
                </button>{' '}
                {row.version === current ? <Badge tone="good">current</Badge> : null}
              </>
            ),
          },
          { head: 'Applied', cell: (row) => <When at={row.appliedAt} />, tight: true },
          { head: 'By', cell: (row) => row.actor },
          { head: 'Note', cell: (row) => row.note || <span className="muted">–</span> },
          {
            head: 'Actions',
            cell: (row) =>
              row.version === current ? null : (
                <Button right="catalog:write" small icon="history" busy={asked.busy} onClick={() => asked.go(row)}>
                  Roll back
                </Button>
              ),
          },
        ]}
      />
      {asked.error ? <Fault error={asked.error} /> : null}
      {shown.error ? <Fault error={shown.error} /> : null}
      {one ? (
        <Notice title={`Version ${one.version}: what it changed`} done="Close" panel onClose={() => setOne(undefined)}>
          <Changes before={one.before} after={one.after} />
        </Notice>
      ) : null}
      {back ? (
        <Confirm
          title={`Roll back to version ${back.to.version}?`}
          action="Roll back"
          wide
          run={async () => {
            const saved = await api.rollBackCatalog(back.to.version)
            toastSaved(saved, `Saved as version ${saved.version}, with the content of version ${back.to.version}.`)
          }}
          onClose={() => setBack(undefined)}
        >
          <p>
            Its document is applied again as a new version. Prices and routes change for the calls that start from then
            on; nothing is lost. This will change:
          </p>
          <Changes before={back.now} after={back.check.document} />
        </Confirm>
      ) : null}
    </>
  )
}
