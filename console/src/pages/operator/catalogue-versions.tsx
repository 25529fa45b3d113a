import { useState } from 'react'
import { api } from '../../api.ts'
import { useList } from '../../query.ts'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Badge, When } from '../../ui/page.tsx'
import { Empty, Fault } from '../../ui/state.tsx'
import { TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { CatalogVersion, VendorCheck } from '../../wire.ts'
import { catalogChanged } from './catalogue-models.tsx'
import { Changes } from './review.tsx'

export function CatalogueVersions({ current }: { current: number | undefined }) {
  const list = useList('catalog/versions', (cursor, signal) => api.catalogVersions({ cursor }, signal))
  const [back, setBack] = useState<{ to: CatalogVersion; check: VendorCheck; now: unknown }>()
  const asked = useAction(async (_signal, to: CatalogVersion) => {
    const [{ document: now }, check] = await Promise.all([api.catalog(), api.checkRollback(to.version)])
    setBack({ to, check, now })
  })
  return (
    <>
      <TableCard
        label="Versions"
        list={list}
        rowKey={(row) => String(row.version)}
        empty={<Empty icon="history" title="No versions yet" />}
        columns={[
          {
            head: 'Version',
            main: true,
            cell: (row) => (
              <>
                <b>Version {row.version}</b> {row.version === current ? <Badge tone="good">current</Badge> : null}
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
      {back ? (
        <Confirm
          title={`Roll back to version ${back.to.version}?`}
          action="Roll back"
          wide
          run={async () => {
            const { version } = await api.rollBackCatalog(back.to.version)
            toast(`Version ${version} is current now, with the content of version ${back.to.version}.`)
            catalogChanged()
          }}
          onClose={() => setBack(undefined)}
        >
          <p>
            Its document is applied again as a new version. Prices and routes change for the calls that start from then
            on; nothing is lost. This will change:
          </p>
          <Changes before={back.now} after={back.check.document} changes={back.check.changes} />
        </Confirm>
      ) : null}
    </>
  )
}
