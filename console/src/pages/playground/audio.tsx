// The two tabs of sound: a recording that is written down, and a text that is read aloud.
import { useEffect, useId, useState } from 'react'
import { api } from '../../api.ts'
import { useDraft } from '../../draft.ts'
import { formatBytes } from '../../format.ts'
import { useAction } from '../../ui/action.ts'
import { Code } from '../../ui/code.tsx'
import { SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { BenchAnswer, BenchForm, type BenchProps, modelTab, playAny, useWish } from './bench.tsx'
import type { Receipt } from './cost.tsx'

const BYTES_MAX = 25 * 1_048_576
const WORKS = [
  ['/v1/audio/transcriptions', 'Original'],
  ['/v1/audio/translations', 'In English'],
] as const
const FORMATS = ['json', 'text', 'srt', 'vtt', 'verbose_json', 'diarized_json']
const SOUNDS = ['mp3', 'opus', 'aac', 'flac', 'wav']

export const TranscriptionPlay = modelTab(
  'transcription',
  'live',
  (model) => model.type === 'transcription',
  TranscriptionBench,
)
export const SpeechPlay = modelTab('speech', 'live', (model) => model.type === 'speech', SpeechBench)

interface Heard {
  text: string
  receipt?: Receipt
}

const UNHEARD = {
  icon: 'live',
  title: 'The transcript appears here',
  words: 'Choose a recording of a few seconds.',
} as const
const HEARD_FIRST = { model: '', work: '/v1/audio/transcriptions', response_format: 'json', language: '', prompt: '' }

function TranscriptionBench({ account, models }: BenchProps) {
  const bench = useWish(`transcription/${account}`, HEARD_FIRST, models)
  const { wish, model, set } = bench
  const [file, setFile] = useState<File>()
  const [seconds, setSeconds] = useState<number>()
  const [result, setResult] = useDraft<Heard | undefined>(`transcription/${account}/result`, undefined)
  const inOwnLanguage = wish.work === WORKS[0][0]
  const body = {
    response_format: wish.response_format,
    ...(wish.language && inOwnLanguage ? { language: wish.language } : {}),
    ...(wish.prompt ? { prompt: wish.prompt } : {}),
  }
  const call = useAction(async (signal) => {
    const form = new FormData()
    if (file) form.append('file', file)
    for (const [name, value] of Object.entries({ model: model?.uid ?? '', ...body })) form.append(name, value)
    const read = (response: Response) => response.text()
    const { answer, ...receipt } = await playAny(read, () =>
      api.play(account, 'POST', wish.work, { body: form, signal }),
    )
    setResult({ text: answer, ...receipt })
  })
  return (
    <div className="bench">
      <BenchAnswer account={account} error={call.error} result={result} empty={UNHEARD}>
        {({ text }) => <Code text={text} label="Transcript" />}
      </BenchAnswer>
      <BenchForm
        kind="transcription"
        action="Transcribe"
        icon="live"
        bench={bench}
        call={call}
        ready={file !== undefined}
        account={account}
        body={body}
        quoted={seconds === undefined ? undefined : { ...body, seconds }}
      >
        <Recording
          file={file}
          onFile={(chosen) => {
            setFile(chosen)
            setSeconds(undefined)
          }}
          onSeconds={setSeconds}
        />
        <SelectField label="Output language" value={wish.work} onText={set('work')} options={WORKS} />
        <SelectField label="Format" value={wish.response_format} onText={set('response_format')} options={FORMATS} />
        {inOwnLanguage ? (
          <TextField
            label="Language"
            hint="Two letters; empty: as it is heard."
            value={wish.language}
            onText={set('language')}
          />
        ) : null}
        <TextField label="Words to expect" value={wish.prompt} onText={set('prompt')} placeholder="names, terms" />
      </BenchForm>
    </div>
  )
}

interface RecordingProps {
  file: File | undefined
  onFile: (file: File | undefined) => void
  onSeconds: (seconds: number) => void
}

/** The browser tells how long it is, for the quote. */
function Recording({ file, onFile, onSeconds }: RecordingProps) {
  const id = useId()
  const [fault, setFault] = useState<string>()
  const url = useObjectUrl(file)
  return (
    <div className="field">
      <label className="field-label" htmlFor={id}>
        Recording
      </label>
      <input
        id={id}
        className="input"
        type="file"
        accept="audio/*,video/mp4,video/webm"
        onChange={(event) => {
          const chosen = event.target.files?.[0]
          const isGood = chosen !== undefined && chosen.size <= BYTES_MAX
          setFault(chosen && !isGood ? `At most ${formatBytes(BYTES_MAX)}.` : undefined)
          onFile(isGood ? chosen : undefined)
        }}
      />
      {fault ? (
        <p className="field-fault" role="alert">
          {fault}
        </p>
      ) : null}
      {url ? (
        <audio
          controls
          src={url}
          onLoadedMetadata={({ currentTarget: { duration } }) => {
            if (Number.isFinite(duration) && duration > 0) onSeconds(duration)
          }}
        />
      ) : null}
    </div>
  )
}

function useObjectUrl(blob: Blob | undefined): string | undefined {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    if (!blob) return setUrl(undefined)
    const made = URL.createObjectURL(blob)
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [blob])
  return url
}

interface Spoken {
  sound: Blob
  receipt?: Receipt
}

const UNSAID = { icon: 'live', title: 'The audio appears here', words: 'Write a text to speak.' } as const
const SPEECH_FIRST = { model: '', text: '', voice: 'alloy', response_format: 'mp3', instructions: '' }

function SpeechBench({ account, models }: BenchProps) {
  const bench = useWish(`speech/${account}`, SPEECH_FIRST, models)
  const { wish, model, set } = bench
  const [result, setResult] = useState<Spoken>()
  const url = useObjectUrl(result?.sound)
  const body = {
    input: wish.text.trim(),
    voice: wish.voice.trim(),
    response_format: wish.response_format,
    ...(wish.instructions ? { instructions: wish.instructions } : {}),
  }
  const call = useAction(async (signal) => {
    const request = { body: { model: model?.uid, ...body }, signal }
    const read = (response: Response) => response.blob()
    const { answer, ...receipt } = await playAny(read, () => api.play(account, 'POST', '/v1/audio/speech', request))
    setResult({ sound: answer, ...receipt })
  })
  return (
    <div className="bench">
      <BenchAnswer account={account} error={call.error} result={result} empty={UNSAID}>
        {() => <audio controls src={url} aria-label="Speech" />}
      </BenchAnswer>
      <BenchForm
        kind="speech"
        action="Speak"
        icon="live"
        bench={bench}
        call={call}
        ready={body.input !== '' && body.voice !== ''}
        account={account}
        body={body}
      >
        <TextArea
          label="Text"
          value={wish.text}
          onText={set('text')}
          placeholder="The gate is open."
          rows={5}
          required
        />
        <TextField label="Voice" value={wish.voice} onText={set('voice')} required />
        <SelectField label="Format" value={wish.response_format} onText={set('response_format')} options={SOUNDS} />
        <TextField
          label="Instructions"
          hint="How to say it, where the model can be told."
          value={wish.instructions}
          onText={set('instructions')}
        />
      </BenchForm>
    </div>
  )
}
