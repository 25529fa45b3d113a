// The configuration of coding agents for this gateway: text models and tools. The key stays in the environment, so the
// files contain no secret and can be committed.

import * as z from 'zod'
import type { CatalogDocument } from '../../../catalog/document.ts'
import { formatCredits } from '../../../kernel/credits.ts'
import type { ClientFormatName } from '../../../meter/kind.ts'

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
  readonly model: (clientFormat: ClientFormatName, size?: 'small') => string
  /** The model's context size, by which an agent knows when to compact its conversation. */
  readonly limits: (model: string) => Partial<Pick<OfferedModel, 'contextTokens' | 'outputTokensMax'>>
  /** A command that prints an access token, for people who have signed in. Absent: the key is in the environment. */
  readonly helper?: readonly string[] | undefined
}

export const CODEX_HOME = '~/.codex/'

const KEY = 'TOLLGATE_KEY'
/** How the key comes into the environment; a token lasts for an hour at most. */
const exported = ({ helper }: About) =>
  helper
    ? `Before you start it: export ${KEY}="$(${commandOf(helper)})". The token lasts for up to an hour.`
    : `Put the key into the environment first (export ${KEY}=tg_live_…).`
const commandOf = (words: readonly string[]) =>
  words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ')

export function agentSetups(about: About): AgentSetup[] {
  const makers = [claudeCode, codex, geminiCli, opencode, qwenCode, continueDev, cursor, vscode, aider]
  return makers.map((make) => make(about))
}

/** A text model, as far as an agent's settings depend on it. */
export interface OfferedModel {
  readonly id: string
  readonly clientFormats: readonly string[]
  readonly contextTokens?: number | undefined
  readonly outputTokensMax?: number | undefined
  /** Of a million tokens. */
  readonly outputPrice: string
}

export function offeredModels(models: CatalogDocument['models']): OfferedModel[] {
  return Object.entries(models).flatMap(([id, { enabled, type, clientFormats, limits, pricing }]) => {
    const { contextTokens, outputTokensMax } = limits ?? {}
    const outputPrice = formatCredits(pricing.tiers[0]?.output ?? 0n)
    return enabled && type === 'text' ? [{ id, clientFormats, contextTokens, outputTokensMax, outputPrice }] : []
  })
}

/**
 * The chosen ones where they are offered in that format. Otherwise the first one, or the one whose output costs least;
 * a placeholder where there is none.
 */
export function modelsFor(
  models: readonly OfferedModel[],
  chosen: { readonly model?: string | null | undefined; readonly small?: string | null | undefined } = {},
): Pick<About, 'model' | 'limits'> {
  return {
    model(clientFormat, size) {
      const offered = models.filter(({ clientFormats }) => clientFormats.includes(clientFormat))
      const [wanted] = offered.filter(({ id }) => id === (size === 'small' ? chosen.small : chosen.model))
      if (size === 'small') offered.sort((a, b) => Number(a.outputPrice) - Number(b.outputPrice))
      return (wanted ?? offered[0])?.id ?? '<model>'
    },
    limits: (model) => models.find(({ id }) => id === model) ?? {},
  }
}

const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`
/** With a sign-in, editors and agents connect to the tools by OAuth themselves. */
const headersOf = ({ helper }: About, variable: string) =>
  helper ? {} : { headers: { Authorization: `Bearer ${variable}` } }
/** Shorter than a token lasts at least. */
const RENEW_MS = 10 * 60_000

function claudeCode(about: About): AgentSetup {
  const { url, model, helper } = about
  const [name, small] = [model('anthropic-messages'), model('anthropic-messages', 'small')]
  return {
    name: 'claude-code',
    title: 'Claude Code',
    note: helper
      ? 'Then, in this directory: claude'
      : `${exported(about)} Then, in this directory: ANTHROPIC_AUTH_TOKEN=$${KEY} claude`,
    files: [
      {
        path: '.mcp.json',
        text: json({
          mcpServers: { tollgate: { type: 'http', url: `${url}/mcp`, ...headersOf(about, `\${${KEY}}`) } },
        }),
      },
      {
        // With a sign-in they name this machine's program, so they are not for the repository.
        path: helper ? '.claude/settings.local.json' : '.claude/settings.json',
        text: json({
          ...(helper && { apiKeyHelper: commandOf(helper) }),
          env: {
            ANTHROPIC_BASE_URL: `${url}/beta`,
            ANTHROPIC_MODEL: name,
            ANTHROPIC_DEFAULT_HAIKU_MODEL: small,
            ...(helper && { CLAUDE_CODE_API_KEY_HELPER_TTL_MS: String(RENEW_MS) }),
          },
        }),
      },
    ],
  }
}

function codex(about: About): AgentSetup {
  const { url, model, limits, helper } = about
  const name = model('openai-responses')
  const { contextTokens } = limits(name)
  return {
    name: 'codex',
    title: 'Codex',
    note: `${helper ? 'The tools: codex mcp login tollgate.' : exported(about)} Codex reads providers from its home only (CODEX_HOME, or ~/.codex), and never from a project. Where a proxy in front of the gateway does not pass WebSockets on, set supports_websockets to false.`,
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
          ...(helper ? [] : [`env_key = "${KEY}"`]),
          'wire_api = "responses"',
          'supports_websockets = true',
          '',
          ...(helper ? authOf(helper) : []),
          '[mcp_servers.tollgate]',
          `url = "${url}/mcp"`,
          ...(helper ? [] : [`bearer_token_env_var = "${KEY}"`]),
          '',
        ].join('\n'),
      },
    ],
  }
}

const authOf = ([command = '', ...args]: readonly string[]) => [
  '[model_providers.tollgate.auth]',
  `command = ${JSON.stringify(command)}`,
  `args = ${JSON.stringify(args)}`,
  `refresh_interval_ms = ${RENEW_MS}`,
  '',
]

function geminiCli(about: About): AgentSetup {
  const { url, model } = about
  return {
    name: 'gemini-cli',
    title: 'Gemini CLI',
    note: `${exported(about)} Then, in this directory: GOOGLE_API_KEY=$${KEY} gemini. Its model needs the client format gemini, which the operator enables.`,
    files: [
      {
        path: '.gemini/settings.json',
        text: json({
          security: { auth: { selectedType: 'vertex-ai' } },
          model: { name: model('gemini') },
          mcpServers: { tollgate: { httpUrl: `${url}/mcp`, ...headersOf(about, `$${KEY}`) } },
        }),
      },
      { path: '.gemini/.env', text: `GOOGLE_GENAI_USE_VERTEXAI=true\nGOOGLE_VERTEX_BASE_URL=${url}/gemini\n` },
    ],
  }
}

function qwenCode(about: About): AgentSetup {
  const { url, model } = about
  return {
    name: 'qwen-code',
    title: 'Qwen Code',
    note: `${exported(about)} Then, in this directory: OPENAI_API_KEY=$${KEY} qwen`,
    files: [
      {
        path: '.qwen/settings.json',
        text: json({
          security: { auth: { selectedType: 'openai' } },
          model: { name: model('openai-chat') },
          mcpServers: { tollgate: { httpUrl: `${url}/mcp`, ...headersOf(about, `$${KEY}`) } },
        }),
      },
      { path: '.qwen/.env', text: `OPENAI_BASE_URL=${url}/v1\nOPENAI_MODEL=${model('openai-chat')}\n` },
    ],
  }
}

function continueDev(about: About): AgentSetup {
  const { url, model } = about
  return {
    name: 'continue',
    title: 'Continue',
    note: `${exported(about)} Or keep ${KEY} in Continue's secrets.`,
    files: [
      {
        path: '.continue/models/tollgate.yaml',
        text: [
          'name: Tollgate',
          'version: 1.0.0',
          'schema: v1',
          'models:',
          '  - name: Tollgate',
          '    provider: openai',
          `    model: ${model('openai-chat')}`,
          `    apiBase: ${url}/v1`,
          `    apiKey: \${{ secrets.${KEY} }}`,
          '    roles: [chat, edit, apply]',
          '',
        ].join('\n'),
      },
    ],
  }
}

function opencode(about: About): AgentSetup {
  const { url, model, limits } = about
  const name = model('openai-chat')
  const { contextTokens: context, outputTokensMax: output } = limits(name)
  const limit = context === undefined || output === undefined ? {} : { limit: { context, output } }
  return {
    name: 'opencode',
    title: 'opencode',
    note: exported(about),
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
          mcp: { tollgate: { type: 'remote', url: `${url}/mcp`, enabled: true, ...headersOf(about, `{env:${KEY}}`) } },
        }),
      },
    ],
  }
}

function cursor(about: About): AgentSetup {
  const { url } = about
  return {
    name: 'cursor',
    title: 'Cursor',
    note: `${exported(about)} Text models: in Settings, Models, override the OpenAI base URL with ${url}/v1 and give the key there.`,
    files: [
      {
        path: '.cursor/mcp.json',
        text: json({ mcpServers: { tollgate: { url: `${url}/mcp`, ...headersOf(about, `\${env:${KEY}}`) } } }),
      },
    ],
  }
}

function vscode(about: About): AgentSetup {
  const { url, helper } = about
  const input = { type: 'promptString', id: 'tollgate-key', description: 'Key of Tollgate', password: true }
  return {
    name: 'vscode',
    title: 'VS Code',
    note: helper
      ? 'VS Code opens the console in your browser when it first connects.'
      : 'VS Code asks for the key when it first connects, and keeps it.',
    files: [
      {
        path: '.vscode/mcp.json',
        text: json({
          ...(helper ? {} : { inputs: [input] }),
          servers: { tollgate: { type: 'http', url: `${url}/mcp`, ...headersOf(about, `\${input:${input.id}}`) } },
        }),
      },
    ],
  }
}

function aider(about: About): AgentSetup {
  const { url, model } = about
  return {
    name: 'aider',
    title: 'aider',
    note: `${exported(about)} Then: OPENAI_API_KEY=$${KEY} aider. It has no tools of this protocol.`,
    files: [{ path: '.aider.conf.yml', text: `model: openai/${model('openai-chat')}\nopenai-api-base: ${url}/v1\n` }],
  }
}
