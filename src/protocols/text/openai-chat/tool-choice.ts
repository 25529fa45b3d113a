// For models whose `tool_choice` is a word: what a caller says by names is said by leaving the other tools out.
import { isObject, type Json, objects } from '../../check.ts'

/** Undefined when the choice is a word already, or names nothing that is there. */
export function chooseByWord(body: Json): { tools: Json[]; tool_choice: string } | undefined {
  const { tool_choice: choice } = body
  if (!isObject(choice)) return undefined
  const allowed = isObject(choice.allowed_tools) ? choice.allowed_tools : undefined
  const names = (allowed ? objects(allowed.tools) : [choice]).map(nameOf)
  const tools = objects(body.tools).filter((tool) => names.includes(nameOf(tool)))
  if (tools.length === 0) return undefined
  return { tools, tool_choice: allowed && allowed.mode !== 'required' ? 'auto' : 'required' }
}

function nameOf(tool: Json): unknown {
  const named = tool.function ?? tool.custom
  return isObject(named) ? named.name : undefined
}
