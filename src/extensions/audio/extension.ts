// Sound: speech into text, and text into speech.
import { defineExtension } from '../../extension.ts'
import { asked, paidEndpoints, type Serving } from '../../pipeline/paid-endpoint.ts'
import { byModel } from '../../pipeline/readers.ts'
import { AUDIO } from './endpoints.ts'
import { readAudioForm, readSpeechRequest, readTranscriptionRequest, type Work } from './openai-audio.ts'

const heard = (work: Work): Serving => ({
  take: ({ pieces, ...headers }) => readAudioForm(pieces, headers),
  read: (incoming, deps) =>
    byModel('transcription', (json, uid, model) =>
      readTranscriptionRequest({ json, file: incoming.body.file, work }, uid, model),
    )(incoming, deps),
})

export const audio = defineExtension({
  name: 'audio',
  entries: paidEndpoints(AUDIO, {
    transcriptions: heard('transcriptions'),
    translations: heard('translations'),
    speech: asked('speech', readSpeechRequest),
  }),
})
