// The same endpoints that programs call, with a form in front. What was typed and answered stays in this tab.
import { type ComponentType, lazy, Suspense } from 'react'
import { Page } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/state.tsx'
import { RouteTabs } from '../../ui/tabs.tsx'

const TABS = [
  { name: 'chat', label: 'Chat', icon: 'play' },
  { name: 'compare', label: 'Compare', icon: 'swap' },
  { name: 'embedding', label: 'Embeddings', icon: 'models' },
  { name: 'rerank', label: 'Rerank', icon: 'models' },
  { name: 'moderation', label: 'Moderation', icon: 'models' },
  { name: 'transcription', label: 'Transcription', icon: 'live' },
  { name: 'speech', label: 'Speech', icon: 'live' },
  { name: 'image', label: 'Image', icon: 'image' },
  { name: 'video', label: 'Video', icon: 'video' },
  { name: 'social', label: 'Social', icon: 'at' },
  { name: 'analytics', label: 'Analytics', icon: 'chart' },
] as const
type TabName = (typeof TABS)[number]['name']

const VIEWS: Record<TabName, ComponentType<{ account: string }>> = {
  chat: lazy(async () => ({ default: (await import('./chat.tsx')).Chat })),
  compare: lazy(async () => ({ default: (await import('./compare.tsx')).Compare })),
  embedding: lazy(async () => ({ default: (await import('./embedding.tsx')).EmbeddingPlay })),
  rerank: lazy(async () => ({ default: (await import('./judgement.tsx')).RerankPlay })),
  moderation: lazy(async () => ({ default: (await import('./judgement.tsx')).ModerationPlay })),
  transcription: lazy(async () => ({ default: (await import('./audio.tsx')).TranscriptionPlay })),
  speech: lazy(async () => ({ default: (await import('./audio.tsx')).SpeechPlay })),
  image: lazy(async () => ({ default: (await import('./image.tsx')).ImagePlay })),
  video: lazy(async () => ({ default: (await import('./video.tsx')).VideoPlay })),
  social: lazy(async () => ({ default: (await import('./data.tsx')).SocialPlay })),
  analytics: lazy(async () => ({ default: (await import('./data.tsx')).AnalyticsPlay })),
}

export function Playground({ account, tab }: { account: string; tab?: string }) {
  const name = TABS.find((one) => one.name === tab)?.name ?? 'chat'
  const View = VIEWS[name]
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
