import { useState } from 'react'
import { api } from '../api.ts'
import { formatCredits } from '../credits.ts'
import { formatWhole } from '../format.ts'
import { InlineMarkdown } from '../markdown.tsx'
import { describeTier, multipliersOf } from '../pricing.ts'
import { useQuery } from '../query.ts'
import { LinkButton } from '../ui/button.tsx'
import { Code } from '../ui/code.tsx'
import { Segments } from '../ui/field.tsx'
import { Badge, Badges, Card, Facts, Page } from '../ui/page.tsx'
import { Empty, Loaded } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import { Tabs } from '../ui/tabs.tsx'
import {
  type Door,
  kindRow,
  type Param,
  type Pricing,
  type PublicCatalog,
  type PublicEndpoint,
  type PublicModel,
  UNIT_NAMES,
  unitRow,
} from '../wire.ts'
import { SimulatedBadge, typeName } from './models.tsx'
import { LANGUAGE_NAMES, LANGUAGES, POSTS, type Subject, snippet } from './snippet.ts'

export function ModelPage({ account, uid }: { account: string; uid: string }) {
  const base = `/a/${encodeURIComponent(account)}`
  const catalog = useQuery('public-catalog', api.publicCatalog)
  const found = catalog.data && find(catalog.data, uid)
  const title = found?.model?.name ?? found?.endpoint?.title ?? uid
  return (
    <Page
      title={title}
      back={{ to: `${base}/models`, label: 'Models' }}
      lead={
        <>
          <code>{uid}</code> {(found?.model ?? found?.endpoint)?.simulated ? <SimulatedBadge /> : null}
        </>
      }
      actions={
        found && found.model?.type !== 'realtime' ? (
          <LinkButton
            right="playground:write"
            account={account}
            to={`${base}/playground/${playTab(found)}`}
            look="primary"
            icon="play"
          >
            Try it
          </LinkButton>
        ) : null
      }
    >
      <Loaded query={catalog}>
        {() =>
          found?.model ? (
            <ModelBody model={found.model} />
          ) : found?.endpoint ? (
            <EndpointBody endpoint={found.endpoint} />
          ) : (
            <Empty icon="models" title="This model is not offered">
              <p>It may have been disabled since this address was copied.</p>
            </Empty>
          )
        }
      </Loaded>
    </Page>
  )
}

interface Found {
  model?: PublicModel
  endpoint?: PublicEndpoint
}

function find(catalog: PublicCatalog, uid: string): Found | undefined {
  const model = catalog.models.find((one) => one.uid === uid)
  if (model) return { model }
  const endpoint = catalog.endpoints.find((one) => one.id === uid)
  return endpoint ? { endpoint } : undefined
}

function playTab({ model, endpoint }: Found): string {
  if (endpoint)
    return `${endpoint.id.startsWith('social') ? 'social' : 'analytics'}?endpoint=${encodeURIComponent(endpoint.id)}`
  const type = model?.type ?? 'text'
  return `${kindRow(type).tab ?? type}?model=${encodeURIComponent(model?.uid ?? '')}`
}

const DOORS: Record<Door, { label: string; kind: 'chat' | 'responses' | 'messages' | 'gemini' }> = {
  'openai-chat': { label: 'Chat completions', kind: 'chat' },
  'openai-responses': { label: 'Responses', kind: 'responses' },
  'anthropic-messages': { label: 'Messages', kind: 'messages' },
  gemini: { label: 'Gemini', kind: 'gemini' },
}

/** Undefined: it is not called by a POST. */
const postKindOf = (type: Exclude<PublicModel['type'], 'text'>) =>
  type === 'data' || type === 'realtime' ? undefined : type

function ModelBody({ model }: { model: PublicModel }) {
  const [chosen, setChosen] = useState<Door>()
  const clientFormats = (model.clientFormats ?? []).filter((clientFormat) => DOORS[clientFormat])
  const clientFormat = chosen ?? clientFormats[0]
  const kind = model.type === 'text' ? clientFormat && DOORS[clientFormat].kind : postKindOf(model.type)
  const limits = model.limits ?? {}
  return (
    <>
      <Card>
        <Facts
          items={[
            ['Type', typeName(model.type)],
            model.family ? ['Family', model.family] : false,
            limits.contextTokens ? ['Context', `${formatWhole(limits.contextTokens)} tokens`] : false,
            limits.outputTokensMax ? ['Max output', `${formatWhole(limits.outputTokensMax)} tokens`] : false,
            ['Capabilities', model.capabilities?.length ? <Badges key="c" names={model.capabilities} /> : '–'],
          ]}
        />
      </Card>
      <PriceCard pricing={model.pricing} />
      <MultiplierCard model={model} />
      {kind ? (
        <Card
          title="Call it"
          lead={<code>POST {POSTS[kind].path}</code>}
          actions={
            clientFormats.length > 1 && clientFormat ? (
              <Segments<Door>
                label="Endpoint"
                value={clientFormat}
                options={clientFormats.map((value) => ({ value, label: DOORS[value].label }))}
                onPick={setChosen}
              />
            ) : null
          }
        >
          <SnippetTabs subject={{ kind, model: model.uid }} />
        </Card>
      ) : null}
    </>
  )
}

function EndpointBody({ endpoint }: { endpoint: PublicEndpoint }) {
  return (
    <>
      <p className="lead">
        <InlineMarkdown text={endpoint.description} />
      </p>
      <PriceCard pricing={endpoint.pricing} />
      <Card flush title="Parameters" lead={<code>{`${endpoint.method} ${endpoint.path}`}</code>}>
        <Table
          label="Parameters"
          rows={endpoint.params}
          rowKey={(param) => param.name}
          columns={[
            {
              head: 'Name',
              main: true,
              cell: (param) => (
                <>
                  <code>{param.name}</code> {param.required ? <Badge tone="warn">required</Badge> : null}
                </>
              ),
            },
            { head: 'Default', cell: (param) => (param.default === undefined ? '–' : <code>{param.default}</code>) },
            {
              head: 'Description',
              cell: (param) => (
                <span>
                  <InlineMarkdown text={param.description} />
                  <span className="cell-sub">{describeAllowed(param)}</span>
                </span>
              ),
            },
          ]}
        />
      </Card>
      <Card title="Call it">
        <SnippetTabs subject={{ kind: 'data', endpoint }} />
      </Card>
    </>
  )
}

function describeAllowed(param: Param): string {
  if ('allowed' in param) {
    const names = param.allowed.join(', ')
    return names.length > 160 ? `One or more of ${param.allowed.length} names.` : names
  }
  if (param.kind === 'integer') return param.max === undefined ? `${param.min} or more` : `${param.min} to ${param.max}`
  return (param.kind === 'text' && param.form) || `such as ${param.example}`
}

export function SnippetTabs({ subject }: { subject: Subject }) {
  return (
    <Tabs
      label="Language"
      tabs={LANGUAGES.map((language) => ({
        name: language,
        label: LANGUAGE_NAMES[language],
        content: () => <Code label={`Example in ${LANGUAGE_NAMES[language]}`} text={snippet(language, subject)} />,
      }))}
    />
  )
}

function PriceCard({ pricing }: { pricing: Pricing | null }) {
  if (!pricing?.tiers.length) return null
  const units = UNIT_NAMES.filter((unit) => pricing.tiers.some((tier) => tier[unit] !== undefined))
  const several = pricing.tiers.length > 1
  return (
    <Card
      flush
      title="Price"
      lead="In credits. What is charged is what was delivered and reported; nothing delivered costs nothing."
    >
      <Table
        label="Prices"
        rows={pricing.tiers.map((tier, index) => ({ tier, index }))}
        rowKey={({ index }) => String(index)}
        columns={[
          several && { head: 'For', main: true, cell: ({ tier }) => describeTier(tier) },
          ...units.map((unit) => ({
            head: unitRow(unit).rate,
            right: several,
            cell: ({ tier }: { tier: Pricing['tiers'][number] }) =>
              tier[unit] === undefined ? '–' : <b>{formatCredits(tier[unit])}</b>,
          })),
        ]}
      />
    </Card>
  )
}

function MultiplierCard({ model: { pricing, batchFactor } }: { model: PublicModel }) {
  const rows = pricing ? multipliersOf(pricing, batchFactor) : []
  if (rows.length === 0) return null
  return (
    <Card flush title="Multipliers" lead="Each rate above is multiplied by this. A quote shows the result.">
      <Table
        label="Multipliers"
        rows={rows}
        rowKey={({ when }) => when}
        columns={[
          { head: 'When', main: true, cell: ({ when }) => <code>{when}</code> },
          { head: 'Times', right: true, cell: ({ times }) => <b>{formatCredits(times)}</b> },
        ]}
      />
    </Card>
  )
}
