// The same endpoints that programs call, with a form in front. What was typed and answered stays in this tab.
import { type ComponentType, lazy, Suspense } from 'react'
import type { IconName } from '../../ui/icon.tsx'
import { Page } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/state.tsx'
import { RouteTabs } from '../../ui/tabs.tsx'

interface Tab {
  name: string
  label: string
  icon: IconName
  view: ComponentType<{ account: string }>
}

/** Of a kind of product under its name, but for text and data, which have several. */
const TABS: readonly [Tab, ...Tab[]] = [
  {
    name: 'chat',
    label: 'Chat',
    icon: 'play',
    view: lazy(async () => ({ default: (await import('./chat.tsx')).Chat })),
  },
  {
    name: 'compare',
    label: 'Compare',
    icon: 'swap',
    view: lazy(async () => ({ default: (await import('./compare.tsx')).Compare })),
  },
  {
    name: 'embedding',
    label: 'Embeddings',
    icon: 'models',
    view: lazy(async () => ({ default: (await import('./embedding.tsx')).EmbeddingPlay })),
  },
  {
    name: 'rerank',
    label: 'Rerank',
    icon: 'models',
    view: lazy(async () => ({ default: (await import('./judgement.tsx')).RerankPlay })),
  },
  {
    name: 'moderation',
    label: 'Moderation',
    icon: 'models',
    view: lazy(async () => ({ default: (await import('./judgement.tsx')).ModerationPlay })),
  },
  {
    name: 'transcription',
    label: 'Transcription',
    icon: 'live',
    view: lazy(async () => ({ default: (await import('./audio.tsx')).TranscriptionPlay })),
  },
  {
    name: 'speech',
    label: 'Speech',
    icon: 'live',
    view: lazy(async () => ({ default: (await import('./audio.tsx')).SpeechPlay })),
  },
  {
    name: 'image',
    label: 'Image',
    icon: 'image',
    view: lazy(async () => ({ default: (await import('./image.tsx')).ImagePlay })),
  },
  {
    name: 'video',
    label: 'Video',
    icon: 'video',
    view: lazy(async () => ({ default: (await import('./video.tsx')).VideoPlay })),
  },
  {
    name: 'social',
    label: 'Social',
    icon: 'at',
    view: lazy(async () => ({ default: (await import('./data.tsx')).SocialPlay })),
  },
  {
    name: 'analytics',
    label: 'Analytics',
    icon: 'chart',
    view: lazy(async () => ({ default: (await import('./data.tsx')).AnalyticsPlay })),
  },
]

export function Playground({ account, tab }: { account: string; tab?: string }) {
  const { name, view: View } = TABS.find((one) => one.name === tab) ?? TABS[0]
  return (
    <Page title="Playground" lead="Runs on this account’s credits. Every answer shows what it cost.">
      <RouteTabs
        label="Playground"
        current={name}
        tabs={TABS.map((one) => ({ ...one, to: `/a/${encodeURIComponent(account)}/playground/${one.name}` }))}
      />
      <Suspense fallback={<Skeleton lines={6} />}>
        <View account={account} />
      </Suspense>
    </Page>
  )
}
