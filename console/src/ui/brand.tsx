// The operator's mark and name, where the product shows its own.
import { useBranding } from '../branding.ts'
import type { PublicBranding } from '../wire.ts'
import { Logo } from './icon.tsx'

/** The logo alone: on small screens. */
export function BrandMark({ size = 26 }: { size?: number }) {
  const logo = useBranding()?.logo
  return logo ? <img className="brand-logo" src={logo.url} alt="" height={size} /> : <Logo size={size} />
}

export function Brand({ size = 26 }: { size?: number }) {
  return (
    <>
      <BrandMark size={size} /> {useBranding()?.name ?? ''}
    </>
  )
}

/** Where customers get help, and the operator's own pages. */
export function BrandLinks({ branding: { support, links } }: { branding: PublicBranding }) {
  const all = [...(support ? [{ label: support, url: `mailto:${support}` }] : []), ...links]
  return (
    <ul className="brand-links">
      {all.map(({ label, url }) => (
        <li key={url}>
          <a href={url} rel="noreferrer">
            {label}
          </a>
        </li>
      ))}
    </ul>
  )
}
