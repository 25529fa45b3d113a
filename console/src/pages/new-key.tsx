// The only moment a key's value is on screen. It lives in this dialog's properties and nowhere else: closing the
// dialog, or leaving the page, takes it out of the document.
import { useEffect } from 'react'
import { ApiError, api } from '../api.ts'
import { useQuery } from '../query.ts'
import { Code, CopyButton } from '../ui/code.tsx'
import { Notice } from '../ui/dialog.tsx'
import { Note } from '../ui/page.tsx'
import { Loaded } from '../ui/state.tsx'
import { Tabs } from '../ui/tabs.tsx'
import type { NewKey } from '../wire.ts'
import { DATA_NAMES } from './agent-key.tsx'

export function NewKeyDialog({ made, onClose }: { made: NewKey; onClose: () => void }) {
  useEffect(() => {
    window.addEventListener('pagehide', onClose)
    return () => window.removeEventListener('pagehide', onClose)
  }, [onClose])

  const address = callsModels(made) ? '/v1/models' : '/v1/account'
  const curl = `curl ${window.location.origin}${address} \\\n  -H "Authorization: Bearer ${made.key}"`
  return (
    <Notice title="Your new key" wide once done="I have copied it" onClose={onClose}>
      <Note tone="warn">
        Copy the key now and keep it somewhere safe. It cannot be shown again; a lost key is replaced by a new one.
      </Note>
      <div className="stack-tight">
        <h3>{made.name}</h3>
        <div className="secret">
          <code data-testid="key-value" data-first tabIndex={0}>
            {made.key}
          </code>
          <CopyButton text={made.key} label="Copy key" small={false} />
        </div>
      </div>
      <div className="stack-tight">
        <h3>Try it</h3>
        <Code label="A first request with this key" text={curl} wrap />
      </div>
      {callsModels(made) ? <AgentSetups /> : <ToolSetup />}
    </Notice>
  )
}

/** A key that is held to data has no use for the settings of text models. */
const callsModels = ({ models }: NewKey) => models === null || models.some((name) => !DATA_NAMES.includes(name))

function ToolSetup() {
  const { origin } = window.location
  const claude = `claude mcp add --transport http tollgate ${origin}/mcp \\\n  --header "Authorization: Bearer $TOLLGATE_KEY"`
  return (
    <details className="fold" open>
      <summary>Give an agent its data tools</summary>
      <div className="stack-tight">
        <p>
          The tools are an MCP server at <code>{origin}/mcp</code>; the key goes into the header Authorization. This key
          may not call models: for the model of a coding agent, create a key for a coding agent.
        </p>
        <Code label="Claude Code" text={claude} wrap />
      </div>
    </details>
  )
}

/** What coding agents need, program by program. The key itself stays out of it: it belongs into the environment. */
function AgentSetups() {
  const setups = useQuery('agent-setups', api.agentSetups)
  // A gateway without the extension for agents has none.
  if (setups.error instanceof ApiError && setups.error.status === 404) return null
  return (
    <details className="fold">
      <summary>Use it with a coding agent</summary>
      <Loaded query={setups}>
        {({ items }) => (
          <Tabs
            label="Programs"
            tabs={items.map(({ name, title, note, files }) => ({
              name,
              label: title,
              content: () => (
                <div className="stack-tight">
                  <p>{note}</p>
                  {files.map(({ path, text }) => (
                    <Code key={path} label={path} text={text} wrap />
                  ))}
                </div>
              ),
            }))}
          />
        )}
      </Loaded>
    </details>
  )
}
