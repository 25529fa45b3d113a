// The same endpoints that programs call, with a form in front. What was typed and answered stays in this tab.
import { type ComponentType, lazy, Suspense } from 'react'
import { Link } from '../../router.tsx'
import { useMay } from '../../session.tsx'
import type { IconName } from '../../ui/icon.tsx'
import { Note, Page } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/state.tsx'
import { RouteTabs } from '../../ui/tabs.tsx'

interface Tab {
  name: string
  label: string
  view: ComponentType<{ account: string }>
}

interface Group {
  label: string
  icon: IconName
  /** Of a kind of product under its name, but for text and data, which have several. */
  tabs: readonly [Tab, ...Tab[]]
}

const tab = (name: string, label: string, load: () => Promise<Tab['view']>): Tab => ({
  name,
  label,
  view: lazy(async () => ({ default: await load() })),
})

const GROUPS: readonly [Group, ...Group[]] = [
  { label: 'Chat', icon: 'play', tabs: [tab('chat', 'Chat', async () => (await import('./chat.tsx')).Chat)] },
  {
    label: 'Compare',
    icon: 'swap',
    tabs: [tab('compare', 'Compare', async () => (await import('./compare.tsx')).Compare)],
  },
  {
    label: 'Image and video',
    icon: 'image',
    tabs: [
      tab('image', 'Image', async () => (await import('./image.tsx')).ImagePlay),
      tab('video', 'Video', async () => (await import('./video.tsx')).VideoPlay),
    ],
  },
  {
    label: 'Audio',
    icon: 'live',
    tabs: [
      tab('speech', 'Speech', async () => (await import('./audio.tsx')).SpeechPlay),
      tab('transcription', 'Transcription', async () => (await import('./audio.tsx')).TranscriptionPlay),
    ],
  },
  {
    label: 'Text tools',
    icon: 'models',
    tabs: [
      tab('embedding', 'Embeddings', async () => (await import('./embedding.tsx')).EmbeddingPlay),
      tab('ocr', 'Documents', async () => (await import('./ocr.tsx')).OcrPlay),
      tab('rerank', 'Rerank', async () => (await import('./judgement.tsx')).RerankPlay),
      tab('moderation', 'Moderation', async () => (await import('./judgement.tsx')).ModerationPlay),
    ],
  },
  {
    label: 'Data',
    icon: 'chart',
    tabs: [
      tab('analytics', 'Analytics', async () => (await import('./data.tsx')).AnalyticsPlay),
      tab('social', 'Social', async () => (await import('./data.tsx')).SocialPlay),
      tab('products', 'Products', async () => (await import('./data.tsx')).ProductPlay),
    ],
  },
]

export function Playground({ account, tab: wanted }: { account: string; tab?: string }) {
  const group = GROUPS.find(({ tabs }) => tabs.some(({ name }) => name === wanted)) ?? GROUPS[0]
  const current = group.tabs.find(({ name }) => name === wanted) ?? group.tabs[0]
  const View = current.view
  const may = useMay()
  const to = (name: string) => `/a/${encodeURIComponent(account)}/playground/${name}`
  if (!may('playground:write', account))
    return (
      <Page title="Playground">
        <Note>Your role may not spend credits of this account.</Note>
      </Page>
    )
  return (
    <Page title="Playground" lead="Runs on this account’s credits. Every answer shows what it cost.">
      <RouteTabs
        label="Playground"
        current={group.label}
        tabs={GROUPS.map(({ label, icon, tabs }) => ({ name: label, label, icon, to: to(tabs[0].name) }))}
      />
      {group.tabs.length > 1 ? (
        <nav className="sub-tabs" aria-label={group.label}>
          {group.tabs.map(({ name, label }) => (
            <Link key={name} to={to(name)} aria-current={name === current.name ? 'page' : undefined}>
              {label}
            </Link>
          ))}
        </nav>
      ) : null}
      <Suspense fallback={<Skeleton lines={6} />}>
        <View account={account} />
      </Suspense>
    </Page>
  )
}
