// Shell completion of commands, endpoints, options and values. All words are in the script, because starting this
// program at every key press would be too slow.
import { CliError, type Command, type Option, told } from '../../cli/command.ts'

type Words = readonly (readonly [after: string, words: readonly string[]])[]

const flags = (options: Readonly<Record<string, Option>>) => [
  ...Object.keys(options).map((name) => `--${name}`),
  '--json',
  '--help',
]

function values(after: string, options: Readonly<Record<string, Option>>): Words {
  return Object.entries(options).flatMap(([name, { allowed }]) =>
    allowed?.every((value) => /^[\w.:,/-]+$/.test(value)) ? [[`${after} --${name}`, allowed] as const] : [],
  )
}

/** The words that may follow: at the start, after a verb, after a verb with its noun, and after an option. */
function wordsOf(commands: readonly Command[], otherVerbs: readonly string[]): Words {
  const groups = Map.groupBy(commands, ({ name }) => name.split(' ')[0] ?? '')
  const verbs = [...groups].map(([verb, all]): readonly [string, readonly string[]] => {
    const nouns = all.flatMap(({ name }) => name.split(' ').slice(1))
    return [verb, nouns.length > 0 ? nouns : (all[0]?.completes ?? flags(all[0]?.options ?? {}))]
  })
  return [
    ['', [...otherVerbs, ...groups.keys(), 'help']],
    ...verbs,
    ...commands
      .filter(({ name }) => name.includes(' '))
      .flatMap(({ name, options = {} }) => [[name, flags(options)] as const, ...values(name, options)]),
    ...commands.flatMap(({ name, completes = [], optionsFor }) =>
      completes.flatMap((word) => {
        const [after, options] = [`${name} ${word}`, optionsFor?.([word]) ?? {}]
        return [[after, flags(options)] as const, ...values(after, options)]
      }),
    ),
  ]
}

const cases = (words: Words) => words.map(([after, list]) => `    '${after}') found='${list.join(' ')}' ;;`).join('\n')

/** The words before the cursor, and the possible next words. */
const KEY = `  local key=''
  if [ "$at" -gt 1 ]; then key="$first"; fi
  if [ "$at" -gt 2 ]; then key="$first $second"; fi
  case "$before" in --*) key="$first $second $before" ;; esac`

const bash = (words: Words) => `# tollgate: completion for bash. source <(tollgate completion bash)
_tollgate() {
  local at=$COMP_CWORD first="\${COMP_WORDS[1]}" second="\${COMP_WORDS[2]}" before="\${COMP_WORDS[COMP_CWORD-1]}" found=''
${KEY}
  case "$key" in
${cases(words)}
  esac
  COMPREPLY=($(compgen -W "$found" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _tollgate tollgate
`

const zsh = (words: Words) => `#compdef tollgate
# tollgate: completion for zsh. source <(tollgate completion zsh)
_tollgate() {
  local at=$((CURRENT - 1)) first="\${words[2]}" second="\${words[3]}" before="\${words[CURRENT-1]}" found=''
${KEY}
  case "$key" in
${cases(words)}
  esac
  compadd -- \${=found}
}
compdef _tollgate tollgate
`

const fish = (words: Words) => `# tollgate: completion for fish. tollgate completion fish | source
function __tollgate_words
  set -l given (commandline -opc)
  set -l key ''
  set -q given[2]; and set key $given[2]
  set -q given[3]; and set key "$given[2] $given[3]"
  string match -q -- '--*' $given[-1]; and set key "$given[2] $given[3] $given[-1]"
  switch $key
${words.map(([after, list]) => `    case '${after}'\n      string split ' ' -- '${list.join(' ')}'`).join('\n')}
  end
end
complete -c tollgate -f -a '(__tollgate_words)'
`

const SHELLS: Readonly<Record<string, (words: Words) => string>> = { bash, zsh, fish }

export const COMPLETION_COMMAND: Command = {
  name: 'completion',
  summary: 'Prints a script that completes commands, endpoints, options and values: bash, zsh or fish.',
  args: ['shell'],
  about: 'For bash: source <(tollgate completion bash). For zsh the same. For fish: tollgate completion fish | source.',
  async run({ args, commands, otherVerbs }) {
    const script = SHELLS[args[0] ?? '']
    if (!script) throw new CliError(`There is completion for ${Object.keys(SHELLS).join(', ')}.`, 2)
    return told(script(wordsOf(commands, otherVerbs)).trimEnd(), (text) => text)
  },
}
