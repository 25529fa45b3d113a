// A neutral mark beside the name of a vendor or family: its first letters. Logos of others are theirs.
import type { ReactNode } from 'react'

/** "Azure OpenAI" is AO, "Groq" is Gr. */
function lettersOf(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter(Boolean)
  const [first = '', second] = words
  return second ? `${first.charAt(0)}${second.charAt(0)}`.toUpperCase() : first.slice(0, 2)
}

function Mark({ name }: { name: string }) {
  return (
    <span className="mark" aria-hidden="true">
      {lettersOf(name)}
    </span>
  )
}

/** What is named, behind the mark of whom it comes from. */
export function Marked({ by, children }: { by: string; children: ReactNode }) {
  return (
    <span className="marked">
      <Mark name={by} />
      <span>{children}</span>
    </span>
  )
}
