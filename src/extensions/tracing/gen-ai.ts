// The names of OpenTelemetry's semantic conventions for generative AI, pinned here: the conventions are in development,
// and Langfuse, Datadog and Grafana go by them. As of the conventions 1.41, which the JavaScript package 1.45 still has
// by these names; their home is the repository semantic-conventions-genai now. Prompts and answers are never put into
// traces; content logging has its own place, rules and retention.
import { formatCredits } from '../../kernel/credits.ts'
import { UNIT_NAMES, unitRow } from '../../meter/kind.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { CallFacts, LiveCall } from '../../telemetry/monitor.ts'
import { HistogramTally } from '../../telemetry/tally.ts'

const GEN_AI = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  responseModel: 'gen_ai.response.model',
  conversation: 'gen_ai.conversation.id',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheRead: 'gen_ai.usage.cache_read.input_tokens',
  cacheWrite: 'gen_ai.usage.cache_creation.input_tokens',
  // The conventions have no cost yet: Langfuse and others read this one, in the gateway's credits; the vendor's own is
  // beside it.
  cost: 'gen_ai.usage.cost',
  vendorCost: 'tollgate.vendor_cost',
} as const

/**
 * The well-known values of the conventions, by the names that vendors have in catalogs; any other vendor goes by its
 * own name.
 */
const PROVIDERS: Readonly<Record<string, string>> = {
  google: 'gcp.gemini',
  gemini: 'gcp.gemini',
  vertex: 'gcp.vertex_ai',
  azure: 'azure.ai.openai',
  bedrock: 'aws.bedrock',
  mistral: 'mistral_ai',
  xai: 'x_ai',
}

const OPERATIONS: ReadonlyArray<readonly [RegExp, string]> = [
  [/embed/i, 'embeddings'],
  [/generateContent|gemini/i, 'generate_content'],
  [/chat|messages|responses/i, 'chat'],
]

interface GenAiFacts extends CallFacts {
  readonly session?: string | undefined
}

export function genAiAttributes(endpoint: string, product: string, facts: GenAiFacts): Record<string, string | number> {
  const { usage, charged, vendor, model, cost, session } = facts
  const operation = OPERATIONS.find(([pattern]) => pattern.test(endpoint))?.[1]
  const sum = (side: 'input' | 'output') =>
    UNIT_NAMES.reduce((all, unit) => all + (unitRow(unit).side === side ? (usage?.[unit] ?? 0) : 0), 0)
  return {
    ...(operation === undefined ? {} : { [GEN_AI.operation]: operation }),
    [GEN_AI.requestModel]: product,
    ...(vendor === undefined ? {} : { [GEN_AI.provider]: PROVIDERS[vendor] ?? vendor }),
    ...(model === undefined ? {} : { [GEN_AI.responseModel]: model }),
    ...(session === undefined ? {} : { [GEN_AI.conversation]: session }),
    ...(usage === undefined ? {} : { [GEN_AI.inputTokens]: sum('input'), [GEN_AI.outputTokens]: sum('output') }),
    ...(usage?.cachedInput ? { [GEN_AI.cacheRead]: usage.cachedInput } : {}),
    ...(usage?.cacheWrite ? { [GEN_AI.cacheWrite]: usage.cacheWrite } : {}),
    [GEN_AI.cost]: formatCredits(charged),
    ...(cost === undefined ? {} : { [GEN_AI.vendorCost]: formatCredits(cost) }),
  }
}

/** The conventions' metrics as Prometheus writes them, with the bounds that the conventions name. */
const GEN_AI_METRICS = {
  tokens: {
    name: 'gen_ai_client_token_usage',
    help: 'Tokens of a call, by operation, vendor, model and type (input, output). Only where traces are sent.',
    labelNames: ['gen_ai_operation_name', 'gen_ai_provider_name', 'gen_ai_request_model', 'gen_ai_token_type'],
    bounds: [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864],
  },
  duration: {
    name: 'gen_ai_client_operation_duration_seconds',
    help: 'Duration of a call, by operation, vendor and model. Only where traces are sent.',
    labelNames: ['gen_ai_operation_name', 'gen_ai_provider_name', 'gen_ai_request_model'],
    bounds: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
  },
} as const

/**
 * The labels of both metrics, and the tokens; undefined: no vendor answered, or it was no operation of the conventions.
 */
function genAiMeasured(endpoint: string, product: string, facts: CallFacts) {
  const told = genAiAttributes(endpoint, product, facts)
  const { [GEN_AI.operation]: operation, [GEN_AI.provider]: provider } = told
  if (operation === undefined || provider === undefined) return undefined
  return {
    labels: {
      gen_ai_operation_name: String(operation),
      gen_ai_provider_name: String(provider),
      gen_ai_request_model: product,
    },
    tokens: { input: Number(told[GEN_AI.inputTokens] ?? 0), output: Number(told[GEN_AI.outputTokens] ?? 0) },
  }
}

export function createGenAiMeter(registry: Metrics['registry']): (call: LiveCall, facts: CallFacts) => void {
  const tokens = new HistogramTally({ ...GEN_AI_METRICS.tokens, registry })
  const duration = new HistogramTally({ ...GEN_AI_METRICS.duration, registry })
  return ({ endpoint, product, durationMs }, facts) => {
    const measured = genAiMeasured(endpoint, product, facts)
    if (!measured) return
    const { labels } = measured
    const key = Object.values(labels).join(' ')
    duration.observe(key, () => labels, durationMs / 1000)
    for (const type of ['input', 'output'] as const)
      tokens.observe(`${key} ${type}`, () => ({ ...labels, gen_ai_token_type: type }), measured.tokens[type])
  }
}
