// The page of every error, from the table of faults and the advice for each.

import { faultBody } from '../../src/api/server/envelope.ts'
import { ADVICE, type Blame, FAULTS, Fault, type FaultName } from '../../src/kernel/fault.ts'
import { code, page, table } from './markdown.ts'

/** What each integer code means to the contract. */
const CODES: Record<number, string> = {
  10000: 'Invalid request',
  10001: 'Validation error',
  20000: 'Missing or invalid authentication',
  20001: 'Access denied',
  30000: 'Not found',
  30001: 'Conflict',
  40000: 'Insufficient credit',
  40001: 'Rate limit exceeded',
  50000: 'Upstream provider error',
  50001: 'Service unavailable',
  50002: 'Gateway timeout',
  50003: 'Internal error',
}

const BLAME: Record<Blame, string> = { caller: 'the request', vendor: 'the vendor', gateway: 'the gateway' }

const EXAMPLE = { requestId: 'req_01jexample', sdk: false }

function bodies(): string {
  const fault = new Fault('model_unknown')
  const block = (title: string, surface: Parameters<typeof faultBody>[1]) =>
    `${title}\n\n\`\`\`json\n${faultBody(fault, surface, EXAMPLE)}\n\`\`\``
  return [
    block('Models, jobs, account, social data, site analytics (native envelope):', 'native'),
    block('Chat:', 'chat'),
    block('Images:', 'images'),
    block('Responses, embeddings:', 'responses'),
    block('Messages:', 'messages'),
  ].join('\n\n')
}

/** In a repository too, where what stands in angle brackets is taken for HTML. */
const shown = (text: string) => text.replaceAll('<', '&lt;')

function faultSection(name: FaultName): string {
  const { status, blame, text } = FAULTS[name]
  return [
    `<a id="${name}"></a>`,
    `### ${name}`,
    table(['HTTP status', 'Cause', 'Text'], [[String(status), BLAME[blame], shown(text)]]),
    ADVICE[name],
  ].join('\n\n')
}

export function errorsPage(): string {
  const names = Object.keys(FAULTS) as FaultName[]
  const codes = [...new Set(names.map((name) => FAULTS[name].code))].sort((a, b) => a - b)
  const overview = codes.flatMap((number) =>
    names
      .filter((name) => FAULTS[name].code === number)
      .map((name) => [
        `[${number}](#code-${number})`,
        String(FAULTS[name].status),
        `[${code(name)}](#${name})`,
        BLAME[FAULTS[name].blame],
        shown(FAULTS[name].text),
      ]),
  )
  return page(
    'Error codes',
    'Check the HTTP status first, then the integer `code`. The `message` is for people: it may name the field at fault and may change. Every answer has the request id in the headers `x-request-id` and `request-id`; an operator finds the call by it in the log, the trace, the usage and the ledger.',
    'A call that ends in one of these errors is not charged, unless the vendor had already reported usage: see the guide on billing.',
    table(['Code', 'Status', 'Fault', 'Cause', 'Text'], overview),
    '## Bodies',
    'The form of the body depends on the endpoint. If the request comes from an SDK (recognized by its headers), or to one of the alias paths, the flat bodies have an extra `error` object, because that is where SDKs look for the message. `TOLLGATE_STRICT_ERRORS=1` turns that off.',
    bodies(),
    'The status of a stream cannot change once it has started: a later error is an event in the format of the stream. In chat that is a chunk with an `error` object and no finish reason, then `[DONE]`; in Responses `response.failed`; in Messages `event: error`.',
    ...codes.map((number) =>
      [
        `<a id="code-${number}"></a>`,
        `## ${number}: ${CODES[number] ?? 'Other'}`,
        ...names.filter((name) => FAULTS[name].code === number).map(faultSection),
      ].join('\n\n'),
    ),
  )
}
