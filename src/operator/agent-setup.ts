// The configuration of coding agents for this gateway: text models and tools. The key stays in the environment, so the files
// contain no secret and can be committed.
import * as z from 'zod'
import type { CatalogDocument } from '../catalog/document.ts'
import type { TextProtocolName } from '../meter/kind.ts'

export const agentSetup = z.object({
  name: z.string(),
  title: z.string(),
  /** Steps that cannot be written into a file. */
  note: z.string(),
  /** In the project's directory, except `~/.codex/`: Codex reads providers from its home directory only. */
  files: z.array(z.object({ path: z.string(), text: z.string() })),
})
export type AgentSetup = z.output<typeof agentSetup>

interface About {
  readonly url: string
  /** A model that is offered in that format; a small one for titles and summaries. */
  readonly model: (clientFormat: TextProtocolName, size?: 'small') => string
  /** The model's context size, by which an agent knows when to compact its conversation. */
  readonly limits: (model: string) => { readonly contextTokens?: number; readonly outputTokensMax?: number }
}

export const CODEX_HOME = '~/.codex/'

const KEY = 'TOLLGATE_KEY'
const EXPORT = `Put the key into the environment first (export ${KEY}=tg_live_…).`

export function agentSetups(about: About): AgentSetup[] {
  return [claudeCode(about), codex(about), opencode(about), cursor(about), vscode(about), aider(about)]
}

type Models = CatalogDocument['models']

/** The first enabled one, or the one whose output costs least; a placeholder where there is none. */
export function modelFor(models: Models): About['model'] {
  return (clientFormat, size) => {
    const offered = Object.entries(models).filter(
      ([, { enabled, clientFormats }]) => enabled && clientFormats.includes(clientFormat),
    )
    if (size === 'small') offered.sort(([, a], [, b]) => Number(outputPrice(a) - outputPrice(b)))
    return offered[0]?.[0] ?? '<model>'
  }
}

const outputPrice = ({ pricing }: Models[string]) => pricing.tiers[0]?.output ?? 0n

export function limitsFor(models: Models): About['limits'] {
  return (model) => (Object.hasOwn(models, model) ? (models[model]?.limits ?? {}) : {})
}

const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`
const header = (variable: string) => ({ Authorization: `Bearer ${variable}` })

function claudeCode({ url, model }: About): AgentSetup {
  const [name, small] = [model('anthropic-messages'), model('anthropic-messages', 'small')]
  return {
    name: 'claude-code',
    title: 'Claude Code',
    note: `${EXPORT} Then, in this directory: ANTHROPIC_AUTH_TOKEN=$${KEY} claude`,
    files: [
      {
        path: '.mcp.json',
        text: json({ mcpServers: { tollgate: { type: 'http', url: `${url}/mcp`, headers: header(`\${${KEY}}`) } } }),
      },
      {
        path: '.claude/settings.json',
        text: json({
          env: { ANTHROPIC_BASE_URL: `${url}/beta`, ANTHROPIC_MODEL: name, ANTHROPIC_DEFAULT_HAIKU_MODEL: small },
        }),
      },
    ],
  }
}

function codex({ url, model, limits }: About): AgentSetup {
  const name = model('openai-responses')
  const { contextTokens } = limits(name)
  return {
    name: 'codex',
    title: 'Codex',
    note: `${EXPORT} Codex reads providers from its home only (CODEX_HOME, or ~/.codex), and never from a project. Where a proxy in front of the gateway does not pass WebSockets on, set supports_websockets to false.`,
    files: [
      {
        path: `${CODEX_HOME}config.toml`,
        text: [
          `model = ${JSON.stringify(name)}`,
          'model_provider = "tollgate"',
          ...(contextTokens === undefined ? [] : [`model_context_window = ${contextTokens}`]),
          '',
          '[model_providers.tollgate]',
          'name = "Tollgate"',
          `base_url = "${url}/v1"`,
          `env_key = "${KEY}"`,
          'wire_api = "responses"',
          'supports_websockets = true',
          '',
          '[mcp_servers.tollgate]',
          `url = "${url}/mcp"`,
          `bearer_token_env_var = "${KEY}"`,
          '',
        ].join('\n'),
      },
    ],
  }
}

function opencode({ url, model, limits }: About): AgentSetup {
  const name = model('openai-chat')
  const { contextTokens: context, outputTokensMax: output } = limits(name)
  const limit = context === undefined || output === undefined ? {} : { limit: { context, output } }
  return {
    name: 'opencode',
    title: 'opencode',
    note: EXPORT,
    files: [
      {
        path: 'opencode.json',
        text: json({
          $schema: 'https://opencode.ai/config.json',
          model: `tollgate/${name}`,
          provider: {
            tollgate: {
              npm: '@ai-sdk/openai-compatible',
              name: 'Tollgate',
              options: { baseURL: `${url}/v1`, apiKey: `{env:${KEY}}` },
              models: { [name]: limit },
            },
          },
          mcp: {
            tollgate: { type: 'remote', url: `${url}/mcp`, enabled: true, headers: header(`{env:${KEY}}`) },
          },
        }),
      },
    ],
  }
}

function cursor({ url }: About): AgentSetup {
  return {
    name: 'cursor',
    title: 'Cursor',
    note: `${EXPORT} Text models: in Settings, Models, override the OpenAI base URL with ${url}/v1 and give the key there.`,
    files: [
      {
        path: '.cursor/mcp.json',
        text: json({ mcpServers: { tollgate: { url: `${url}/mcp`, headers: header(`\${env:${KEY}}`) } } }),
      },
    ],
  }
}

function vscode({ url }: About): AgentSetup {
  const input = { type: 'promptString', id: 'tollgate-key', description: 'Key of Tollgate', password: true }
  return {
    name: 'vscode',
    title: 'VS Code',
    note: 'VS Code asks for the key when it first connects, and keeps it.',
    files: [
      {
        path: '.vscode/mcp.json',
        text: json({
          inputs: [input],
          servers: { tollgate: { type: 'http', url: `${url}/mcp`, headers: header(`\${input:${input.id}}`) } },
        }),
      },
    ],
  }
}

function aider({ url, model }: About): AgentSetup {
  return {
    name: 'aider',
    title: 'aider',
    note: `${EXPORT} Then: OPENAI_API_KEY=$${KEY} aider. It has no tools of this protocol.`,
    files: [
      {
        path: '.aider.conf.yml',
        text: `model: openai/${model('openai-chat')}\nopenai-api-base: ${url}/v1\n`,
      },
    ],
  }
}
