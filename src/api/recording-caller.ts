// The caller's end of a call whose bytes are kept: what is sent is noted as it leaves.
import type { ServerResponse } from 'node:http'
import type { Recording } from '../recordings/recording.ts'
import { Caller } from '../server/caller.ts'

const OK = 200

export class RecordingCaller extends Caller {
  readonly recording: Recording

  constructor(response: ServerResponse, recording: Recording) {
    super(response, recording.call.requestId)
    this.recording = recording
  }

  override send(status: number, headers: Record<string, string>, body: string | Buffer): void {
    if (!this.started) {
      this.recording.answers(status, headers['content-type'] ?? '')
      this.recording.sent(body)
    }
    super.send(status, headers, body)
  }

  override startStream(headers: Record<string, string>): void {
    this.recording.answers(OK, headers['content-type'] ?? '')
    super.startStream(headers)
  }

  override write(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): Promise<void> | undefined {
    this.recording.sent(piece, encoding)
    return super.write(piece, encoding)
  }

  override end(piece: string | Buffer): void {
    this.recording.sent(piece)
    super.end(piece)
  }
}
