// A program asks to use an account's tools. The person sees who asks and where they are sent, and says which account,
// which tools and how much a day.
import { type ComponentProps, useState } from 'react'
import { api, type Terms } from '../../api.ts'
import { limitsAreValid } from '../../pages/limits.tsx'
import { useQuery } from '../../query.ts'
import { useLocation } from '../../router.tsx'
import { lastAccount, useSession } from '../../session.tsx'
import { useSubmit } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox, SelectField, TextField } from '../../ui/field.tsx'
import { Card, Facts, Note, Page, When } from '../../ui/page.tsx'
import { Fault, Loaded } from '../../ui/state.tsx'
import type { Device, PublicCatalog } from '../../wire.ts'

const TOOLS = { siteanalytics: 'Website analytics', socialapi: 'Social data', models: 'Text, image and video models' }
type Tool = keyof typeof TOOLS
const NAMES = Object.keys(TOOLS) as Tool[] // Of the table above.

const SPEND_PER_DAY = '5'
const LEAD = 'It will act in your name, within what you allow here. You can end it any time on the page Keys.'

export function ConnectPage() {
  const uid = useLocation().query.get('consent') ?? ''
  const asked = useQuery(`connect/${uid}`, (signal) => api.connection(uid, signal))
  const goTo = ({ redirect }: { redirect: string }) => window.location.assign(redirect)
  return (
    <Page title="Connect a program" lead={LEAD}>
      <Loaded query={asked}>
        {({ client, vouchedBy, redirectsTo }) => (
          <Consent
            client={client}
            facts={[
              ['Its name is confirmed by', vouchedBy ?? 'nobody'],
              ['You are sent back to', redirectsTo],
            ]}
            vouched={vouchedBy !== null}
            tools={['siteanalytics', 'socialapi']}
            allow={(terms) => api.allowConnection(uid, terms).then(goTo)}
            refuse={() => api.refuseConnection(uid).then(goTo)}
          />
        )}
      </Loaded>
    </Page>
  )
}

/** A program on another machine shows a code, which the person types here. */
export function DevicePage() {
  const [code, setCode] = useState(useLocation().query.get('user_code') ?? '')
  const [asked, setAsked] = useState<Device>()
  const [isAllowed, setAllowed] = useState<boolean>()
  const { busy, error, onSubmit } = useSubmit(async () => setAsked(await api.device(code)))
  const answer = ({ allowed }: { allowed: boolean }) => setAllowed(allowed)
  if (isAllowed !== undefined)
    return (
      <Page title={isAllowed ? 'Connected' : 'Denied'}>
        <Note>
          {isAllowed ? 'The program continues by itself. You can close this page.' : 'The program gets nothing.'}
        </Note>
      </Page>
    )
  return (
    <Page title="Connect a program" lead={LEAD}>
      {asked ? (
        <Consent
          client={asked.client}
          facts={[
            ['Code', code],
            ['It waits at the network address', asked.askedFrom ?? 'not known'],
            ['Since', <When key="since" at={asked.askedAt} />],
            ['It may', asked.scopes.includes('api') ? 'call models, and use tools' : 'use tools'],
          ]}
          vouched={false}
          tools={asked.scopes.includes('api') ? NAMES : ['siteanalytics', 'socialapi']}
          allow={(terms) => api.allowDevice(code, terms).then(answer)}
          refuse={() => api.refuseDevice(code).then(answer)}
        />
      ) : (
        <form className="stack" onSubmit={onSubmit}>
          <TextField label="The code that the program shows" value={code} onText={setCode} autoComplete="off" />
          {error ? <Fault error={error} /> : null}
          <Button type="submit" look="primary" busy={busy} disabled={!code.trim()}>
            Continue
          </Button>
        </form>
      )}
    </Page>
  )
}

interface ConsentProps {
  client: string
  facts: ComponentProps<typeof Facts>['items']
  vouched: boolean
  /** Chosen at first. */
  tools: readonly Tool[]
  allow: (terms: Terms) => Promise<void>
  refuse: () => Promise<void>
}

function Consent({ client, facts, vouched, tools: first, allow, refuse: deny }: ConsentProps) {
  const { accounts } = useSession()
  const known = useQuery('connect/accounts', (signal) => api.accounts({ limit: 200 }, signal))
  const catalog = useQuery('public-catalog', api.publicCatalog)
  const [account, setAccount] = useState(lastAccount() ?? accounts[0]?.id ?? '')
  const [tools, setTools] = useState(first)
  const [spendPerDay, setSpendPerDay] = useState(SPEND_PER_DAY)
  const choices = known.data?.items ?? []
  const chosen = choices.some(({ id }) => id === account) ? account : (choices[0]?.id ?? '')
  const limits = spendPerDay.trim() ? { spendPerDay: spendPerDay.trim() } : {}
  const { busy, error, onSubmit } = useSubmit(() =>
    allow({ account: chosen, models: modelsOf(tools, catalog.data), limits }),
  )
  const refuse = useSubmit(deny)
  return (
    <Card title={client}>
      <Facts items={facts} />
      {vouched ? null : (
        <Note tone="warn">
          Any program can use this name. Allow it only if you have just started to connect it yourself.
        </Note>
      )}
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
          hint="Leave empty for no limit of its own. Your budgets and those of your team apply in any case."
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
