// The gateway as it is run in earnest: the `serve` verb with the environment's settings.
import { readConfig } from '../src/config.ts'
import { serve } from '../src/serve.ts'

await serve(readConfig())
