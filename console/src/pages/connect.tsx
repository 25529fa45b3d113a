// A program asks to use an account's tools. The person sees who asks and where they are sent, and says which account, which tools and how much a day.
import { useState } from 'react'
import { api } from '../api.ts'
import { useQuery } from '../query.ts'
import { useLocation } from '../router.tsx'
import { lastAccount, useSession } from '../session.tsx'
import { useSubmit } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { Checkbox, SelectField, TextField } from '../ui/field.tsx'
import { Card, Facts, Note, Page } from '../ui/page.tsx'
import { Fault, Loaded } from '../ui/state.tsx'
import type { Connect, PublicCatalog } from '../wire.ts'
import { limitsAreValid } from './limits.tsx'

const TOOLS = { siteanalytics: 'Website analytics', socialapi: 'Social data', models: 'Text, image and video models' }
type Tool = keyof typeof TOOLS
const NAMES = Object.keys(TOOLS) as Tool[] // Of the table above.

const SPEND_PER_DAY = '5'

export function ConnectPage() {
  const uid = useLocation().query.get('consent') ?? ''
  const asked = useQuery(`connect/${uid}`, (signal) => api.connection(uid, signal))
  return (
    <Page
      title="Connect a program"
      lead="It will act in your name, within what you allow here. You can end it any time on the page Keys."
    >
      <Loaded query={asked}>{(connect) => <Consent uid={uid} asked={connect} />}</Loaded>
    </Page>
  )
}

function Consent({ uid, asked }: { uid: string; asked: Connect }) {
  const { accounts } = useSession()
  const known = useQuery('connect/accounts', (signal) => api.accounts({ limit: 200 }, signal))
  const catalog = useQuery('public-catalog', api.publicCatalog)
  const [account, setAccount] = useState(lastAccount() ?? accounts[0]?.id ?? '')
  const [tools, setTools] = useState<readonly Tool[]>(['siteanalytics', 'socialapi'])
  const [spendPerDay, setSpendPerDay] = useState(SPEND_PER_DAY)
  const choices = known.data?.items ?? []
  const chosen = choices.some(({ id }) => id === account) ? account : (choices[0]?.id ?? '')
  const { busy, error, onSubmit } = useSubmit(async () => {
    const { redirect } = await api.allowConnection(uid, {
      account: chosen,
      models: modelsOf(tools, catalog.data),
      limits: spendPerDay.trim() ? { spendPerDay: spendPerDay.trim() } : {},
    })
    window.location.assign(redirect)
  })
  const refuse = useSubmit(async () => {
    const { redirect } = await api.refuseConnection(uid)
    window.location.assign(redirect)
  })
  return (
    <Card title={asked.client}>
      <Facts
        items={[
          ['Its name is confirmed by', asked.vouchedBy ?? 'nobody'],
          ['You are sent back to', asked.redirectsTo],
        ]}
      />
      {asked.vouchedBy === null ? (
        <Note tone="warn">
          Any program can use this name. Allow it only if you have just started to connect it yourself.
        </Note>
      ) : null}
      <form id="allow" className="stack" onSubmit={onSubmit}>
        <SelectField
          label="Account"
          value={chosen}
          onText={setAccount}
          options={choices.map(({ id, name }) => [id, name] as const)}
        />
        <fieldset className="stack-tight">
          <legend className="field-label">Tools</legend>
          {NAMES.map((tool) => (
            <Checkbox
              key={tool}
              label={TOOLS[tool]}
              checked={tools.includes(tool)}
              onCheck={(on) => setTools(on ? [...tools, tool] : tools.filter((one) => one !== tool))}
            />
          ))}
        </fieldset>
        <TextField
          label="Credits per day at most"
          hint="Empty: no limit of its own."
          value={spendPerDay}
          onText={setSpendPerDay}
          inputMode="decimal"
        />
        {error ? <Fault error={error} /> : null}
      </form>
      {refuse.error ? <Fault error={refuse.error} /> : null}
      <form className="filters" onSubmit={refuse.onSubmit}>
        <Button
          type="submit"
          form="allow"
          look="primary"
          busy={busy}
          disabled={!chosen || tools.length === 0 || !limitsAreValid({ spendPerDay }) || !catalog.data}
        >
          Allow
        </Button>
        <Button type="submit" busy={refuse.busy}>
          Deny
        </Button>
      </form>
    </Card>
  )
}

/** Everything is said as everything, so that it stays so when models are added. */
function modelsOf(tools: readonly Tool[], catalog: PublicCatalog | undefined): string[] | null {
  if (tools.length === NAMES.length) return null
  return tools.flatMap((tool) => (tool === 'models' ? (catalog?.models ?? []).map(({ uid }) => uid) : [tool]))
}
