// Generated from the catalog and the OpenAPI document by `npm run generate`. Do not change it by hand.
import type { Answer, CallOptions } from './transport.ts'

export const PATHS = {
  analytics: '/v1/siteanalytics',
  social: '/v1/social/users',
  chat: '/v1/chat-completions',
  responses: '/alpha/responses',
  messages: '/beta/v1/messages',
  countTokens: '/beta/v1/messages/count_tokens',
  embeddings: '/v1/embeddings',
  images: '/alpha/v1/images/generations',
  video: '/v1/video/seedance',
  jobs: '/v1/jobs',
  models: '/v1/models',
  account: '/v1/account',
  quote: '/v1/quote',
  purses: '/v1/purses',
} as const

/** Ids of the endpoints that are paid for. */
export type PaidEndpoint =
  | 'chat'
  | 'completions'
  | 'responses'
  | 'responses/compact'
  | 'messages'
  | 'gemini'
  | 'gemini/stream'
  | 'embeddings'
  | 'gemini/embed'
  | 'gemini/embed_batch'
  | 'rerank'
  | 'rerank/v2'
  | 'moderations'
  | 'ocr'
  | 'transcriptions'
  | 'translations'
  | 'speech'
  | 'images'
  | 'images/edits'
  | 'video'
  | 'video/create'
  | 'social/users'
  | 'social/users/{id}'
  | 'social/users/{id}/tweets'
  | 'siteanalytics/keywords/suggestions'
  | 'siteanalytics/websites/backlinks'
  | 'siteanalytics/websites/keywords'
  | 'siteanalytics/keywords/websites'
  | 'siteanalytics/websites/traffic-sources'
  | 'siteanalytics/websites/outgoing-traffic'
  | 'siteanalytics/websites/incoming-referrals'
  | 'siteanalytics/websites/branded-keywords'
  | 'siteanalytics/websites/geography'
  | 'siteanalytics/websites/devices'
  | 'siteanalytics/websites/search-performance'
  | 'siteanalytics/websites/social-traffic'
  | 'siteanalytics/websites/engagement'
  | 'siteanalytics/websites/visits'
  | 'siteanalytics/websites/visits/table'
  | 'siteanalytics/websites/visits/trend'
  | 'siteanalytics/websites/ranks'
  | 'siteanalytics/websites/ranks/country'
  | 'siteanalytics/websites/ranks/global'
  | 'siteanalytics/websites/ranks/category'
  | 'siteanalytics/websites/channels'
  | 'siteanalytics/websites/similar-sites'
  | 'siteanalytics/websites/similar-sites/suggestions'
  | 'siteanalytics/websites/history/visits'
  | 'siteanalytics/websites/history/bounce-rate'
  | 'siteanalytics/websites/history/visit-duration'
  | 'siteanalytics/websites/history/pages-per-visit'

/** Two letters (ISO 3166), the number of the country, or the world. */
export type Country =
  | number
  | 'world'
  | 'ad'
  | 'ae'
  | 'af'
  | 'ag'
  | 'ai'
  | 'al'
  | 'am'
  | 'ao'
  | 'aq'
  | 'ar'
  | 'as'
  | 'at'
  | 'au'
  | 'aw'
  | 'ax'
  | 'az'
  | 'ba'
  | 'bb'
  | 'bd'
  | 'be'
  | 'bf'
  | 'bg'
  | 'bh'
  | 'bi'
  | 'bj'
  | 'bl'
  | 'bm'
  | 'bn'
  | 'bo'
  | 'bq'
  | 'br'
  | 'bs'
  | 'bt'
  | 'bv'
  | 'bw'
  | 'by'
  | 'bz'
  | 'ca'
  | 'cc'
  | 'cd'
  | 'cf'
  | 'cg'
  | 'ch'
  | 'ci'
  | 'ck'
  | 'cl'
  | 'cm'
  | 'cn'
  | 'co'
  | 'cr'
  | 'cu'
  | 'cv'
  | 'cw'
  | 'cx'
  | 'cy'
  | 'cz'
  | 'de'
  | 'dj'
  | 'dk'
  | 'dm'
  | 'do'
  | 'dz'
  | 'ec'
  | 'ee'
  | 'eg'
  | 'eh'
  | 'er'
  | 'es'
  | 'et'
  | 'fi'
  | 'fj'
  | 'fk'
  | 'fm'
  | 'fo'
  | 'fr'
  | 'ga'
  | 'gb'
  | 'gd'
  | 'ge'
  | 'gf'
  | 'gg'
  | 'gh'
  | 'gi'
  | 'gl'
  | 'gm'
  | 'gn'
  | 'gp'
  | 'gq'
  | 'gr'
  | 'gs'
  | 'gt'
  | 'gu'
  | 'gw'
  | 'gy'
  | 'hk'
  | 'hm'
  | 'hn'
  | 'hr'
  | 'ht'
  | 'hu'
  | 'id'
  | 'ie'
  | 'il'
  | 'im'
  | 'in'
  | 'io'
  | 'iq'
  | 'ir'
  | 'is'
  | 'it'
  | 'je'
  | 'jm'
  | 'jo'
  | 'jp'
  | 'ke'
  | 'kg'
  | 'kh'
  | 'ki'
  | 'km'
  | 'kn'
  | 'kp'
  | 'kr'
  | 'kw'
  | 'ky'
  | 'kz'
  | 'la'
  | 'lb'
  | 'lc'
  | 'li'
  | 'lk'
  | 'lr'
  | 'ls'
  | 'lt'
  | 'lu'
  | 'lv'
  | 'ly'
  | 'ma'
  | 'mc'
  | 'md'
  | 'me'
  | 'mf'
  | 'mg'
  | 'mh'
  | 'mk'
  | 'ml'
  | 'mm'
  | 'mn'
  | 'mo'
  | 'mp'
  | 'mq'
  | 'mr'
  | 'ms'
  | 'mt'
  | 'mu'
  | 'mv'
  | 'mw'
  | 'mx'
  | 'my'
  | 'mz'
  | 'na'
  | 'nc'
  | 'ne'
  | 'nf'
  | 'ng'
  | 'ni'
  | 'nl'
  | 'no'
  | 'np'
  | 'nr'
  | 'nu'
  | 'nz'
  | 'om'
  | 'pa'
  | 'pe'
  | 'pf'
  | 'pg'
  | 'ph'
  | 'pk'
  | 'pl'
  | 'pm'
  | 'pn'
  | 'pr'
  | 'ps'
  | 'pt'
  | 'pw'
  | 'py'
  | 'qa'
  | 're'
  | 'ro'
  | 'rs'
  | 'ru'
  | 'rw'
  | 'sa'
  | 'sb'
  | 'sc'
  | 'sd'
  | 'se'
  | 'sg'
  | 'sh'
  | 'si'
  | 'sj'
  | 'sk'
  | 'sl'
  | 'sm'
  | 'sn'
  | 'so'
  | 'sr'
  | 'ss'
  | 'st'
  | 'sv'
  | 'sx'
  | 'sy'
  | 'sz'
  | 'tc'
  | 'td'
  | 'tf'
  | 'tg'
  | 'th'
  | 'tj'
  | 'tk'
  | 'tl'
  | 'tm'
  | 'tn'
  | 'to'
  | 'tr'
  | 'tt'
  | 'tv'
  | 'tw'
  | 'tz'
  | 'ua'
  | 'ug'
  | 'um'
  | 'us'
  | 'uy'
  | 'uz'
  | 'va'
  | 'vc'
  | 've'
  | 'vg'
  | 'vi'
  | 'vn'
  | 'vu'
  | 'wf'
  | 'ws'
  | 'ye'
  | 'yt'
  | 'za'
  | 'zm'
  | 'zw'

/** Two letters and three digits each. */
export const COUNTRIES =
  'ad020ae784af004ag028ai660al008am051ao024aq010ar032as016at040au036aw533ax248az031ba070bb052bd050be056bf854bg100bh048bi108bj204bl652bm060bn096bo068bq535br076bs044bt064bv074bw072by112bz084ca124cc166cd180cf140cg178ch756ci384ck184cl152cm120cn156co170cr188cu192cv132cw531cx162cy196cz203de276dj262dk208dm212do214dz012ec218ee233eg818eh732er232es724et231fi246fj242fk238fm583fo234fr250ga266gb826gd308ge268gf254gg831gh288gi292gl304gm270gn324gp312gq226gr300gs239gt320gu316gw624gy328hk344hm334hn340hr191ht332hu348id360ie372il376im833in356io086iq368ir364is352it380je832jm388jo400jp392ke404kg417kh116ki296km174kn659kp408kr410kw414ky136kz398la418lb422lc662li438lk144lr430ls426lt440lu442lv428ly434ma504mc492md498me499mf663mg450mh584mk807ml466mm104mn496mo446mp580mq474mr478ms500mt470mu480mv462mw454mx484my458mz508na516nc540ne562nf574ng566ni558nl528no578np524nr520nu570nz554om512pa591pe604pf258pg598ph608pk586pl616pm666pn612pr630ps275pt620pw585py600qa634re638ro642rs688ru643rw646sa682sb090sc690sd729se752sg702sh654si705sj744sk703sl694sm674sn686so706sr740ss728st678sv222sx534sy760sz748tc796td148tf260tg768th764tj762tk772tl626tm795tn788to776tr792tt780tv798tw158tz834ua804ug800um581us840uy858uz860va336vc670ve862vg092vi850vn704vu548wf876ws882ye887yt175za710zm894zw716'

export type Model = {
  uid: string
  name: string
  version: string | null
  type: string
  pricing: {
    unit?: 'credits'
    tokenTierBasis?: string
    tiers?: (Record<string, unknown>)[]
    [member: string]: unknown
  } | null
  [member: string]: unknown
}

export type JobStatus = 'PENDING' | 'CONNECT' | 'PROCESSING' | 'COMPLETED' | 'FAILED' | 'CANCELLED'

export type Job = {
  id: string
  status: JobStatus
  inputParams: Record<string, unknown>
  outputResult: {
    url: string[]
    [member: string]: unknown
  }[] | null
  createdAt: string
  startedAt: string | null
  completedAt: string | null
  error?: {
    code: number
    message: string
    reason?: string
    [member: string]: unknown
  }
  [member: string]: unknown
}

export type Purse = {
  id: string
  name: string
  status: 'open' | 'frozen' | 'closed'
  balance: string
  held: string
  available: string
  low: string | null
  createdAt: string
  movedAt: string | null
}

export type PurseMovement = {
  id: string
  at: string
  kind: 'grant' | 'topup' | 'takeback' | 'settled' | 'released' | 'expired' | 'empty' | 'frozen' | 'reopened' | 'closed'
  moved: string
  balanceAfter: string
  charged: string
  list: number | null
  requestId: string | null
  product: string | null
  reference: string | null
  note: string | null
  actor: string | null
}

export type PursePageLink = {
  url: string
  expiresAt: string
}

export type PurseSession = {
  id: string
  purse: string
  prefix: string
  callMax: string | null
  expiresAt: string
  revokedAt: string | null
  createdAt: string
  token: string
}

export type PurseStatement = {
  purse: string
  name: string
  month: string
  opening: string
  granted: string
  takenBack: string
  spent: string
  closing: string
  lines: {
    product: string
    list: number
    calls: number
    spent: string
  }[]
}

export type PurseTopUp = {
  id: string
  credits: string
  url: string
}

export type PurseBillingDetails = {
  company: string | null
  name: string | null
  street: string | null
  postcode: string | null
  city: string | null
  country: string | null
  vatId: string | null
  email: string | null
}

export type PurseInvoice = {
  id: string
  account: string
  purse: string | null
  number: string
  kind: 'payment' | 'month' | 'credit_note'
  customer: string
  issuedAt: string
  currency: string
  gross: string
  tax: string
  payment: string | null
  corrects: string | null
  month: string | null
}

export type PurseSessionState = {
  id: string
  purse: string
  prefix: string
  callMax: string | null
  expiresAt: string
  revokedAt: string | null
  createdAt: string
}

export type PurseTopUpState = {
  id: string
  purse: string
  provider: 'stripe' | 'webhook' | 'simulated'
  providerId: string | null
  state: 'pending' | 'paid' | 'refunded' | 'disputed' | 'quarantined' | 'failed'
  reason: string | null
  currency: string
  amount: string
  refunded: string
  credits: string
  creditsTaken: string
  creditsLost: string
  createdAt: string
  paidAt: string | null
}

export type SocialUser = {
  id: string
  name: string
  /** Without a leading @. */
  username: string
  created_at?: string
  description?: string
  entities?: Record<string, unknown>
  location?: string
  pinned_tweet_id?: string
  profile_banner_url?: string
  profile_image_url?: string
  protected?: boolean
  public_metrics?: {
    followers_count?: number
    following_count?: number
    tweet_count?: number
    listed_count?: number
    like_count?: number
    media_count?: number
    [member: string]: unknown
  }
  url?: string
  verified?: boolean
  verified_type?: string
  [member: string]: unknown
}

export type Tweet = {
  id: string
  text: string
  attachments?: {
    media_keys?: string[]
    poll_ids?: string[]
    [member: string]: unknown
  }
  author_id?: string
  conversation_id?: string
  created_at?: string
  edit_history_tweet_ids?: string[]
  entities?: Record<string, unknown>
  in_reply_to_user_id?: string
  lang?: string
  possibly_sensitive?: boolean
  public_metrics?: {
    retweet_count?: number
    reply_count?: number
    like_count?: number
    quote_count?: number
    bookmark_count?: number
    impression_count?: number
    [member: string]: unknown
  }
  referenced_tweets?: {
    type: string
    id: string
    [member: string]: unknown
  }[]
  source?: string
  [member: string]: unknown
}

export type SocialIncludes = {
  users?: SocialUser[]
  tweets?: Tweet[]
  media?: {
    media_key?: string
    type?: string
    [member: string]: unknown
  }[]
  places?: (Record<string, unknown>)[]
  polls?: (Record<string, unknown>)[]
  [member: string]: unknown
}

export type ChatRequest = {
  /** A chat-capable id from GET /v1/models. */
  model: string
  /** The conversation so far. */
  messages: {
    /** Who speaks. */
    role: 'system' | 'developer' | 'user' | 'assistant' | 'tool' | 'function'
    /** Text, or parts: text, image_url, input_audio, file. Only an assistant turn may do without. */
    content?: string | {
      /** text, image_url, input_audio or file. */
      type: string
      /** Of text: what is said. */
      text?: string
      /** Of image_url: the picture, or its address alone. */
      image_url?: {
        /** An https address, or data:image/png;base64,… */
        url: string
        /** low, high or auto, where the model knows it. */
        detail?: string
        [member: string]: unknown
      } | string
      /** Of input_audio: the recording. */
      input_audio?: {
        /** The recording, as base64. */
        data: string
        /** wav or mp3. */
        format: string
        [member: string]: unknown
      }
      /** Of file: a document, such as a PDF. */
      file?: {
        /** Its name, with its ending. */
        filename?: string
        /** data:application/pdf;base64,… */
        file_data?: string
        [member: string]: unknown
      }
      [member: string]: unknown
    }[]
    /** Your own name for who speaks. */
    name?: string
    /** Of an assistant turn: the calls that it made. */
    tool_calls?: {
      /** To be named by the tool turn that answers it. */
      id: string
      /** function. */
      type: string
      function: {
        /** Which function. */
        name: string
        /** Its arguments, as JSON in a text. */
        arguments: string
        [member: string]: unknown
      }
      [member: string]: unknown
    }[]
    /** Of a tool turn: which call it answers. */
    tool_call_id?: string
    [member: string]: unknown
  }[]
  /** Commonly 0 to 2; the model has the last word. */
  temperature?: number
  /** Commonly 0 to 1; some models reject it. */
  top_p?: number
  /** Commonly -2 to 2. */
  frequency_penalty?: number
  /** Commonly -2 to 2. */
  presence_penalty?: number
  /** Where to stop; depends on the model. */
  stop?: string | string[]
  /** How many answers. Some models give only 1. */
  n?: number
  /** Most tokens of output; may cover reasoning as well as text. */
  max_tokens?: number
  /** Alternative to max_tokens; a model may take only one of the two. */
  max_completion_tokens?: number
  /** true answers with server-sent events. */
  stream?: boolean
  stream_options?: {
    /** Adds a last chunk with the usage. */
    include_usage?: boolean
    [member: string]: unknown
  }
  /** Functions that the model may call. */
  tools?: {
    /** function, if absent. */
    type?: string
    function?: Record<string, unknown>
    [member: string]: unknown
  }[]
  /** none, auto, required, or one function. */
  tool_choice?: string | Record<string, unknown>
  /** Whether several tools may be called at once. */
  parallel_tool_calls?: boolean
  /** The form of the answer. */
  response_format?: {
    type: string
    [member: string]: unknown
  }
  /** none, minimal, low, medium, high, xhigh or max; models take different ones. */
  reasoning_effort?: string
  /** {"type":"disabled"} turns hidden reasoning off, where the model allows it. */
  thinking?: Record<string, unknown>
  /** For repeatable sampling, where the model has it. */
  seed?: number
  /** Your own name for the end user. */
  user?: string
  /** Models to ask in turn when one fails. */
  models?: string[]
  /** Where the call may go, as OpenRouter has it. Vendors are named as the catalog names them. */
  provider?: {
    /** Vendors to try first, in this order. */
    order?: string[] | unknown
    /** No other vendors. */
    only?: string[] | unknown
    /** Not these vendors. */
    ignore?: string[] | unknown
    /** false: only the vendors of `order`, or without one only the first choice. */
    allow_fallbacks?: boolean
    /** Only vendors in these regions. An extension of this gateway. */
    regions?: string[] | unknown
    quantizations?: ('int4' | 'int8' | 'fp4' | 'fp6' | 'fp8' | 'fp16' | 'bf16' | 'fp32' | 'unknown')[] | unknown
    /** deny: only vendors that the operator has marked as not collecting data. */
    data_collection?: 'allow' | 'deny' | unknown
    /** true: only vendors that the operator has marked as storing nothing. */
    zdr?: boolean
    /** true: only routes that get every parameter of the request as it was sent. */
    require_parameters?: boolean
    sort?: 'price' | 'throughput' | 'latency' | {
      by: 'price' | 'throughput' | 'latency'
    } | unknown
    max_price?: {
      /** Dollars per million input tokens. */
      prompt?: number | string
      /** Dollars per million output tokens. */
      completion?: number | string
      /** Dollars per request. */
      request?: number | string
      /** Dollars per image. */
      image?: number | string
    } | unknown
    /** Seconds. Slower vendors are tried last. */
    preferred_max_latency?: number | {
      p50: number
    } | unknown
    /** Output tokens per second. Slower vendors are tried last. */
    preferred_min_throughput?: number | {
      p50: number
    } | unknown
    enforce_distillable_text?: false | unknown
  }
  [member: string]: unknown
}

export type ResponsesRequest = {
  /** An id from GET /v1/models that offers the Responses protocol. */
  model: string
  /** Text, or items of the conversation: messages, calls of functions and their outputs. */
  input: string | (Record<string, unknown>)[]
  /** What a system turn would say. */
  instructions?: string
  /** Most tokens of output, reasoning included. */
  max_output_tokens?: number
  /** Functions that the model may call. */
  tools?: {
    type: string
    [member: string]: unknown
  }[]
  /** none, auto, required, or one tool. */
  tool_choice?: string | Record<string, unknown>
  /** Whether several tools may be called at once. */
  parallel_tool_calls?: boolean
  /** Form of the answer: format and verbosity. */
  text?: Record<string, unknown>
  /** effort and summary. */
  reasoning?: Record<string, unknown>
  /** Commonly 0 to 2; the model has the last word. */
  temperature?: number
  /** Commonly 0 to 1; some models reject it. */
  top_p?: number
  /** true answers with server-sent events. */
  stream?: boolean
  /** true answers at once with a response that is `queued`; ask for it by its id until it has ended. */
  background?: boolean
  /** Models to ask in turn when one fails. */
  models?: string[]
  /** Where the call may go, as OpenRouter has it. Vendors are named as the catalog names them. */
  provider?: {
    /** Vendors to try first, in this order. */
    order?: string[] | unknown
    /** No other vendors. */
    only?: string[] | unknown
    /** Not these vendors. */
    ignore?: string[] | unknown
    /** false: only the vendors of `order`, or without one only the first choice. */
    allow_fallbacks?: boolean
    /** Only vendors in these regions. An extension of this gateway. */
    regions?: string[] | unknown
    quantizations?: ('int4' | 'int8' | 'fp4' | 'fp6' | 'fp8' | 'fp16' | 'bf16' | 'fp32' | 'unknown')[] | unknown
    /** deny: only vendors that the operator has marked as not collecting data. */
    data_collection?: 'allow' | 'deny' | unknown
    /** true: only vendors that the operator has marked as storing nothing. */
    zdr?: boolean
    /** true: only routes that get every parameter of the request as it was sent. */
    require_parameters?: boolean
    sort?: 'price' | 'throughput' | 'latency' | {
      by: 'price' | 'throughput' | 'latency'
    } | unknown
    max_price?: {
      /** Dollars per million input tokens. */
      prompt?: number | string
      /** Dollars per million output tokens. */
      completion?: number | string
      /** Dollars per request. */
      request?: number | string
      /** Dollars per image. */
      image?: number | string
    } | unknown
    /** Seconds. Slower vendors are tried last. */
    preferred_max_latency?: number | {
      p50: number
    } | unknown
    /** Output tokens per second. Slower vendors are tried last. */
    preferred_min_throughput?: number | {
      p50: number
    } | unknown
    enforce_distillable_text?: false | unknown
  }
  [member: string]: unknown
}

export type MessagesRequest = {
  /** An id from GET /v1/models that offers the Messages protocol. */
  model: string
  /** The conversation so far. */
  messages: {
    /** Who speaks. */
    role: 'user' | 'assistant' | 'system'
    /** Text, or content blocks. */
    content: string | {
      /** text, image, document, tool_use or tool_result. */
      type: string
      /** Of text: what is said. */
      text?: string
      /** Of image and document: {"type":"base64","media_type":"image/png","data":"…"} or {"type":"url","url":"…"}. */
      source?: Record<string, unknown>
      /** Of tool_use: its id. */
      id?: string
      /** Of tool_use: which tool. */
      name?: string
      /** Of tool_use: the arguments. */
      input?: Record<string, unknown>
      /** Of tool_result: which call it answers. */
      tool_use_id?: string
      /** Of tool_result: what the tool said. */
      content?: string | {
        type: string
        [member: string]: unknown
      }[]
      [member: string]: unknown
    }[]
    [member: string]: unknown
  }[]
  /** Instructions before the conversation. */
  system?: string | {
    type: string
    [member: string]: unknown
  }[]
  /** Functions that the model may call, each with a `name`, and tools of the vendor, with a `type`. */
  tools?: (Record<string, unknown>)[]
  /** auto, any, none, or one tool. */
  tool_choice?: Record<string, unknown>
  /** enabled with a budget, adaptive, or disabled. */
  thinking?: Record<string, unknown>
  /** Most tokens of output. */
  max_tokens: number
  /** Where to stop. */
  stop_sequences?: string[]
  /** Commonly 0 to 2; the model has the last word. */
  temperature?: number
  /** Commonly 0 to 1; some models reject it. */
  top_p?: number
  /** true answers with server-sent events. */
  stream?: boolean
  /** user_id: your own name for the end user. */
  metadata?: Record<string, unknown>
  /** Models to ask in turn when one fails. */
  models?: string[]
  /** Where the call may go, as OpenRouter has it. Vendors are named as the catalog names them. */
  provider?: {
    /** Vendors to try first, in this order. */
    order?: string[] | unknown
    /** No other vendors. */
    only?: string[] | unknown
    /** Not these vendors. */
    ignore?: string[] | unknown
    /** false: only the vendors of `order`, or without one only the first choice. */
    allow_fallbacks?: boolean
    /** Only vendors in these regions. An extension of this gateway. */
    regions?: string[] | unknown
    quantizations?: ('int4' | 'int8' | 'fp4' | 'fp6' | 'fp8' | 'fp16' | 'bf16' | 'fp32' | 'unknown')[] | unknown
    /** deny: only vendors that the operator has marked as not collecting data. */
    data_collection?: 'allow' | 'deny' | unknown
    /** true: only vendors that the operator has marked as storing nothing. */
    zdr?: boolean
    /** true: only routes that get every parameter of the request as it was sent. */
    require_parameters?: boolean
    sort?: 'price' | 'throughput' | 'latency' | {
      by: 'price' | 'throughput' | 'latency'
    } | unknown
    max_price?: {
      /** Dollars per million input tokens. */
      prompt?: number | string
      /** Dollars per million output tokens. */
      completion?: number | string
      /** Dollars per request. */
      request?: number | string
      /** Dollars per image. */
      image?: number | string
    } | unknown
    /** Seconds. Slower vendors are tried last. */
    preferred_max_latency?: number | {
      p50: number
    } | unknown
    /** Output tokens per second. Slower vendors are tried last. */
    preferred_min_throughput?: number | {
      p50: number
    } | unknown
    enforce_distillable_text?: false | unknown
  }
  [member: string]: unknown
}

export type EmbeddingsRequest = {
  /** An embedding model from GET /v1/models, such as alpha-embed-3-small. */
  model: string
  /** What to embed: one input, or up to 2048 of them. None may be empty. */
  input: string | string[] | number[] | number[][]
  /** How many numbers a vector has, where the model can shorten it. */
  dimensions?: number
  /** base64: the vector as little-endian 32-bit floats. */
  encoding_format?: 'float' | 'base64'
  /** Your own name for the end user. */
  user?: string
  /** Where the call may go, as OpenRouter has it. Vendors are named as the catalog names them. */
  provider?: {
    /** Vendors to try first, in this order. */
    order?: string[] | unknown
    /** No other vendors. */
    only?: string[] | unknown
    /** Not these vendors. */
    ignore?: string[] | unknown
    /** false: only the vendors of `order`, or without one only the first choice. */
    allow_fallbacks?: boolean
    /** Only vendors in these regions. An extension of this gateway. */
    regions?: string[] | unknown
    quantizations?: ('int4' | 'int8' | 'fp4' | 'fp6' | 'fp8' | 'fp16' | 'bf16' | 'fp32' | 'unknown')[] | unknown
    /** deny: only vendors that the operator has marked as not collecting data. */
    data_collection?: 'allow' | 'deny' | unknown
    /** true: only vendors that the operator has marked as storing nothing. */
    zdr?: boolean
    /** true: only routes that get every parameter of the request as it was sent. */
    require_parameters?: boolean
    sort?: 'price' | 'throughput' | 'latency' | {
      by: 'price' | 'throughput' | 'latency'
    } | unknown
    max_price?: {
      /** Dollars per million input tokens. */
      prompt?: number | string
      /** Dollars per million output tokens. */
      completion?: number | string
      /** Dollars per request. */
      request?: number | string
      /** Dollars per image. */
      image?: number | string
    } | unknown
    /** Seconds. Slower vendors are tried last. */
    preferred_max_latency?: number | {
      p50: number
    } | unknown
    /** Output tokens per second. Slower vendors are tried last. */
    preferred_min_throughput?: number | {
      p50: number
    } | unknown
    enforce_distillable_text?: false | unknown
  }
}

export type ImagesRequest = {
  /** An image model from GET /v1/models, such as alpha-image-2. */
  model: string
  /** Subject, scene, composition, style, material, lighting, colors, and whether text appears. */
  prompt: string
  /** Only 1. */
  n?: number
  /** A ratio, or pixels. Pixels win over `resolution`. */
  size?: 'auto' | '1:1' | '3:2' | '2:3' | '4:3' | '3:4' | '16:9' | '9:16' | '21:9' | '9:21' | '1024x1024' | '2048x2048' | '1536x1024' | '2048x1360' | '1024x1536' | '1360x2048' | '1024x768' | '2048x1536' | '768x1024' | '1536x2048' | '1536x864' | '2048x1152' | '3840x2160' | '864x1536' | '1152x2048' | '2160x3840' | '2016x864' | '2688x1152' | '3840x1648' | '864x2016' | '1152x2688' | '1648x3840'
  /** How much work goes into it; the price follows. */
  quality?: 'low' | 'medium' | 'high' | 'auto'
  /** The tier that goes with a ratio. 4k only with 16:9, 9:16, 21:9 and 9:21. */
  resolution?: '1k' | '2k' | '4k'
  /** Reference images: public addresses or data URIs; each up to 20 MB, together up to 256 MB. */
  image_urls?: string[]
  /** The kind of file. */
  output_format?: 'png' | 'jpeg' | 'webp'
  /** b64_json: the answer also contains the picture itself. */
  response_format?: 'url' | 'b64_json'
  /** true answers with server-sent events. */
  stream?: boolean
  /** Where the call may go, as OpenRouter has it. Vendors are named as the catalog names them. */
  provider?: {
    /** Vendors to try first, in this order. */
    order?: string[] | unknown
    /** No other vendors. */
    only?: string[] | unknown
    /** Not these vendors. */
    ignore?: string[] | unknown
    /** false: only the vendors of `order`, or without one only the first choice. */
    allow_fallbacks?: boolean
    /** Only vendors in these regions. An extension of this gateway. */
    regions?: string[] | unknown
    quantizations?: ('int4' | 'int8' | 'fp4' | 'fp6' | 'fp8' | 'fp16' | 'bf16' | 'fp32' | 'unknown')[] | unknown
    /** deny: only vendors that the operator has marked as not collecting data. */
    data_collection?: 'allow' | 'deny' | unknown
    /** true: only vendors that the operator has marked as storing nothing. */
    zdr?: boolean
    /** true: only routes that get every parameter of the request as it was sent. */
    require_parameters?: boolean
    sort?: 'price' | 'throughput' | 'latency' | {
      by: 'price' | 'throughput' | 'latency'
    } | unknown
    max_price?: {
      /** Dollars per million input tokens. */
      prompt?: number | string
      /** Dollars per million output tokens. */
      completion?: number | string
      /** Dollars per request. */
      request?: number | string
      /** Dollars per image. */
      image?: number | string
    } | unknown
    /** Seconds. Slower vendors are tried last. */
    preferred_max_latency?: number | {
      p50: number
    } | unknown
    /** Output tokens per second. Slower vendors are tried last. */
    preferred_min_throughput?: number | {
      p50: number
    } | unknown
    enforce_distillable_text?: false | unknown
  }
}

export type VideoRequest = {
  /** A video model from GET /v1/models: videogen-2.0 or videogen-2.5. */
  model: string
  /** What the video shows: at most 32,000 characters, together with the texts of content. */
  prompt?: string
  /** Address or data URI of the first frame. Also: image, image_url, first_frame_url. */
  first_frame?: string | {
    url: string
    [member: string]: unknown
  }
  /** Address or data URI of the last frame. Needs a first one. Also: last_frame_url, end_image. */
  last_frame?: string | {
    url: string
    [member: string]: unknown
  }
  /** Reference images: addresses or data URIs. Also: images, reference_images. */
  image_urls?: string | {
    url: string
    [member: string]: unknown
  } | (string | {
    url: string
    [member: string]: unknown
  })[]
  /** Addresses of reference videos. Also: videos, reference_videos. */
  video_urls?: string | {
    url: string
    [member: string]: unknown
  } | (string | {
    url: string
    [member: string]: unknown
  })[]
  /** Addresses of reference sounds, beside at least one image or video. Also: audios, reference_audios. */
  audio_urls?: string | {
    url: string
    [member: string]: unknown
  } | (string | {
    url: string
    [member: string]: unknown
  })[]
  /** The vendor's own parts, instead of the fields above: text, image_url, video_url, audio_url. */
  content?: {
    type: string
    [member: string]: unknown
  }[]
  /** Also: aspect_ratio. */
  ratio?: '16:9' | '4:3' | '1:1' | '3:4' | '9:16' | '21:9' | 'adaptive'
  /** Seconds: 4 to 15 for videogen-2.0, 4 to 30 for videogen-2.5. Also: seconds, duration_seconds. */
  duration?: number | string
  /** 480p, 720p or 1080p, which is only for videogen-2.0. */
  resolution?: string
  /** For repeatable results; -1 for any. */
  seed?: number
  /** Whether the video has sound. Also: with_audio, audio. */
  generate_audio?: boolean
  /** Whether the vendor marks the video. */
  watermark?: boolean
  /** Whether the last frame is stored as a picture as well. */
  return_last_frame?: boolean
  /** A public address to which a signed notice is sent when the job has ended. */
  callback_url?: string
}

export type CountTokensRequest = {
  /** An id from GET /v1/models that offers the Messages protocol. */
  model: string
  /** The conversation so far. */
  messages: {
    /** Who speaks. */
    role: 'user' | 'assistant' | 'system'
    /** Text, or content blocks. */
    content: string | {
      /** text, image, document, tool_use or tool_result. */
      type: string
      /** Of text: what is said. */
      text?: string
      /** Of image and document: {"type":"base64","media_type":"image/png","data":"…"} or {"type":"url","url":"…"}. */
      source?: Record<string, unknown>
      /** Of tool_use: its id. */
      id?: string
      /** Of tool_use: which tool. */
      name?: string
      /** Of tool_use: the arguments. */
      input?: Record<string, unknown>
      /** Of tool_result: which call it answers. */
      tool_use_id?: string
      /** Of tool_result: what the tool said. */
      content?: string | {
        type: string
        [member: string]: unknown
      }[]
      [member: string]: unknown
    }[]
    [member: string]: unknown
  }[]
  /** Instructions before the conversation. */
  system?: string | {
    type: string
    [member: string]: unknown
  }[]
  /** Functions that the model may call, each with a `name`, and tools of the vendor, with a `type`. */
  tools?: (Record<string, unknown>)[]
  /** auto, any, none, or one tool. */
  tool_choice?: Record<string, unknown>
  /** enabled with a budget, adaptive, or disabled. */
  thinking?: Record<string, unknown>
  [member: string]: unknown
}

export type ChatAnswer = {
  id: string
  object: 'chat.completion'
  created: number
  model: string
  choices: {
    index: number
    message: {
      role: string
      content: string | null
      refusal?: string | null
      reasoning_content?: string | null
      tool_calls?: {
        id: string
        type?: string
        function?: {
          name: string
          arguments: string
          [member: string]: unknown
        }
        [member: string]: unknown
      }[]
      [member: string]: unknown
    }
    finish_reason: string | null
    [member: string]: unknown
  }[]
  usage?: {
    prompt_tokens: number
    completion_tokens: number
    total_tokens: number
    [member: string]: unknown
  }
  [member: string]: unknown
}

export type ResponsesAnswer = {
  id: string
  object: 'response'
  created_at: number
  status?: string
  model: string
  output: {
    type: string
    id?: string
    role?: string
    status?: string | null
    content?: {
      type: string
      text?: string
      annotations?: (Record<string, unknown>)[]
      [member: string]: unknown
    }[] | null
    call_id?: string
    name?: string
    arguments?: string
    summary?: {
      type: string
      text?: string
      [member: string]: unknown
    }[]
    [member: string]: unknown
  }[]
  error?: {
    code: string
    message: string
    [member: string]: unknown
  } | null
  incomplete_details?: {
    reason: string
    [member: string]: unknown
  } | null
  /** As it was asked: a text, or items. */
  instructions?: unknown
  previous_response_id?: string | null
  store?: boolean
  metadata?: Record<string, unknown> | null
  usage?: {
    input_tokens: number
    output_tokens: number
    total_tokens: number
    output_tokens_details?: Record<string, unknown>
    [member: string]: unknown
  } | null
  [member: string]: unknown
}

export type MessagesAnswer = {
  id: string
  type: 'message'
  role: 'assistant'
  model: string
  content: {
    type: string
    text?: string
    thinking?: string
    signature?: string
    id?: string
    name?: string
    input?: Record<string, unknown>
    [member: string]: unknown
  }[]
  stop_reason: string | null
  stop_sequence?: string | null
  usage: {
    input_tokens: number
    output_tokens: number
    cache_creation_input_tokens?: number | null
    cache_read_input_tokens?: number | null
    [member: string]: unknown
  }
  [member: string]: unknown
}

export type EmbeddingsAnswer = {
  object: 'list'
  data: {
    object: 'embedding'
    index: number
    embedding: number[] | string
    [member: string]: unknown
  }[]
  model: string
  usage: {
    prompt_tokens: number
    total_tokens: number
    [member: string]: unknown
  }
  [member: string]: unknown
}

export type ImagesAnswer = {
  created: number
  data: {
    url: string
    b64_json?: string
    [member: string]: unknown
  }[]
  usage?: {
    input_tokens: number
    output_tokens: number
    total_tokens: number
    [member: string]: unknown
  }
  [member: string]: unknown
}

export type AccountAnswer = {
  success: true
  data: {
    id: string
    name: string
    balance: string
    held: string
    available: string
    limits: {
      /** Calls a minute */
      requestsPerMinute?: number
      /** Calls a day (UTC) */
      requestsPerDay?: number
      /** Tokens a minute */
      tokensPerMinute?: number
      /** Calls at the same time */
      concurrency?: number
      /** Credits in all */
      spendTotal?: string
      /** Credits a day (UTC) */
      spendPerDay?: string
      /** Credits a month (UTC) */
      spendPerMonth?: string
    }
    test: boolean
    summary: string
    lots: {
      remaining: string
      endsAt: string | null
      products: string[] | null
    }[]
    key: {
      id: string
      models: string[] | null
      endpoints: string[] | null
      expiresAt: string | null
      limits: {
        /** Calls a minute */
        requestsPerMinute?: number
        /** Calls a day (UTC) */
        requestsPerDay?: number
        /** Tokens a minute */
        tokensPerMinute?: number
        /** Calls at the same time */
        concurrency?: number
        /** Credits in all */
        spendTotal?: string
        /** Credits a day (UTC) */
        spendPerDay?: string
        /** Credits a month (UTC) */
        spendPerMonth?: string
      }
    }
  }
  requestId: string
  [member: string]: unknown
}

export type QuoteAnswer = {
  success: true
  data: {
    endpoint: string
    product: string
    unit: 'credits'
    hold: string
    costAtMost: string
    holdAtLeast: string
    worstCase: Record<string, number>
    lines: {
      unit: 'input' | 'cachedInput' | 'cacheWrite' | 'cacheWriteHour' | 'inputAudio' | 'inputImage' | 'output' | 'outputAudio' | 'outputImage' | 'image' | 'second' | 'page' | 'character' | 'webSearch' | 'fileSearch' | 'codeRun' | 'call' | 'row' | 'byte' | 'metered'
      quantity: number
      rate: string
      per: 1000000
    }[]
    available: string
    affordable: boolean
    byok: boolean
    catalogVersion: number
  }
  requestId: string
  [member: string]: unknown
}

export type SocialUsersAnswer = {
  data: SocialUser
  includes?: SocialIncludes
  errors?: {
    title?: string
    detail?: string
    type?: string
    resource_id?: string
    [member: string]: unknown
  }[]
  [member: string]: unknown
}

export type SocialUsersIdTweetsAnswer = {
  data: Tweet[]
  includes?: SocialIncludes
  meta: {
    result_count: number
    newest_id?: string
    oldest_id?: string
    next_token?: string
    [member: string]: unknown
  }
  errors?: {
    title?: string
    detail?: string
    type?: string
    resource_id?: string
    [member: string]: unknown
  }[]
  [member: string]: unknown
}

export type SiteanalyticsKeywordsSuggestionsAnswer = {
  records?: {
    keyword?: string | null
    leadingSite?: string | null
    primaryIntent?: string | null
    windowVolume?: number | null
    averageVolume?: number | null
    monthlyVolume?: number | null
    clicks?: number | null
    cpc?: number | null
    difficulty?: number | null
    score?: number | null
    [member: string]: unknown
  }[]
  totalRecords?: number
  [member: string]: unknown
}

export type SiteanalyticsWebsitesBacklinksAnswer = {
  Records?: {
    SourceUrl?: string | null
    SourceDomain?: string | null
    TargetUrl?: string | null
    AnchorText?: string | null
    Status?: string | null
    FollowType?: string | null
    DomainScore?: number | null
    [member: string]: unknown
  }[]
  TotalRecords?: number
  [member: string]: unknown
}

export type SiteanalyticsWebsitesKeywordsAnswer = {
  TotalCount?: number
  Data?: {
    Records?: {
      Keyword?: string | null
      PrimaryIntent?: string | null
      TopUrl?: string | null
      Clicks?: number | null
      Share?: number | null
      Difficulty?: number | null
      KwVolume?: number | null
      KwVolumeAverage?: number | null
      Cpc?: number | null
      [member: string]: unknown
    }[]
    KeywordsCount?: number
    [member: string]: unknown
  }
  [member: string]: unknown
}

export type SiteanalyticsKeywordsWebsitesAnswer = {
  Data?: {
    Domain?: string | null
    Url?: string | null
    Favicon?: string | null
    Share?: number | null
    Position?: number | null
    [member: string]: unknown
  }[]
  TotalCount?: number
  [member: string]: unknown
}

export type SiteanalyticsWebsitesTrafficSourcesAnswer = {
  Data?: {
    Domain?: string | null
    SourceType?: string | null
    Favicon?: string | null
    Share?: number | null
    Visits?: number | null
    Rank?: number | null
    [member: string]: unknown
  }[]
  TotalCount?: number
  [member: string]: unknown
}

export type SiteanalyticsWebsitesOutgoingTrafficAnswer = {
  Records?: {
    Domain?: string | null
    Favicon?: string | null
    Share?: number | null
    Change?: number | null
    Rank?: number | null
    [member: string]: unknown
  }[]
  TotalCount?: number
  [member: string]: unknown
}

export type SiteanalyticsWebsitesIncomingReferralsAnswer = {
  Records?: {
    Domain?: string | null
    Category?: string | null
    Favicon?: string | null
    Share?: number | null
    TotalShare?: number | null
    TotalVisits?: number | null
    Change?: number | null
    Rank?: number | null
    [member: string]: unknown
  }[]
  TotalCount?: number
  [member: string]: unknown
}

export type SiteanalyticsWebsitesBrandedKeywordsAnswer = {
  Data?: Record<string, {
    Branded?: number | null
    NoneBranded?: number | null
    [member: string]: unknown
  }>
  [member: string]: unknown
}

export type SiteanalyticsWebsitesGeographyAnswer = {
  Data?: {
    Country?: number | null
    Share?: number | null
    UsersShare?: number | null
    Rank?: number | null
    Change?: number | null
    AvgVisitDuration?: number | null
    PagePerVisit?: number | null
    BounceRate?: number | null
    [member: string]: unknown
  }[]
  TotalCount?: number
  [member: string]: unknown
}

export type SiteanalyticsWebsitesDevicesAnswer = {
  Data?: Record<string, Record<string, number | null>>
  [member: string]: unknown
}

export type SiteanalyticsWebsitesSearchPerformanceAnswer = {
  Data?: {
    SearchTerm?: string | null
    TotalShare?: number | null
    TotalVisits?: number | null
    [member: string]: unknown
  }[]
  TotalCount?: number
  [member: string]: unknown
}

export type SiteanalyticsWebsitesSocialTrafficAnswer = {
  Data?: Record<string, Record<string, {
    Share?: number | null
    [member: string]: unknown
  }>>
  [member: string]: unknown
}

export type SiteanalyticsWebsitesEngagementAnswer = {
  Data?: {
    Domain?: string | null
    AvgMonthVisits?: number | null
    UniqueUsers?: number | null
    BounceRate?: number | null
    PagesPerVisit?: number | null
    AvgVisitDuration?: number | null
    VisitsPerUser?: number | null
    TotalPagesViews?: number | null
    [member: string]: unknown
  }[]
  TotalCount?: number
  [member: string]: unknown
}

export type SiteanalyticsWebsitesVisitsAnswer = {
  Data?: Record<string, {
    TotalVisits?: number | null
    Change?: number | null
    ShareOfVisits?: number | null
    Trend?: {
      Key?: string | null
      Value?: number | null
      [member: string]: unknown
    }[]
    [member: string]: unknown
  }>
  [member: string]: unknown
}

export type SiteanalyticsWebsitesVisitsTableAnswer = {
  Data?: {
    Domain?: string | null
    Favicon?: string | null
    TotalVisits?: number | null
    [member: string]: unknown
  }[]
  TotalCount?: number
  [member: string]: unknown
}

export type SiteanalyticsWebsitesVisitsTrendAnswer = {
  Data?: Record<string, Record<string, {
    Key?: string | null
    Value?: number | null
    [member: string]: unknown
  }[][]>>
  [member: string]: unknown
}

export type SiteanalyticsWebsitesRanksAnswer = {
  Data?: Record<string, {
    GlobalRank?: {
      Category?: string | null
      Value?: number | null
      Country?: number | null
      Trend?: {
        Key?: string | null
        Value?: number | null
        [member: string]: unknown
      }[]
      [member: string]: unknown
    }
    CountryRank?: {
      Category?: string | null
      Value?: number | null
      Country?: number | null
      Trend?: {
        Key?: string | null
        Value?: number | null
        [member: string]: unknown
      }[]
      [member: string]: unknown
    }
    CategoryRank?: {
      Category?: string | null
      Value?: number | null
      Country?: number | null
      Trend?: {
        Key?: string | null
        Value?: number | null
        [member: string]: unknown
      }[]
      [member: string]: unknown
    }
    [member: string]: unknown
  }>
  [member: string]: unknown
}

export type SiteanalyticsWebsitesRanksCountryAnswer = {
  Data?: {
    Domain?: string | null
    Category?: string | null
    Favicon?: string | null
    Rank?: number | null
    Change?: number | null
    [member: string]: unknown
  }[]
  TotalCount?: number
  [member: string]: unknown
}

export type SiteanalyticsWebsitesRanksGlobalAnswer = {
  Data?: {
    Domain?: string | null
    Category?: string | null
    Favicon?: string | null
    Rank?: number | null
    Change?: number | null
    [member: string]: unknown
  }[]
  TotalCount?: number
  [member: string]: unknown
}

export type SiteanalyticsWebsitesRanksCategoryAnswer = {
  Data?: {
    Domain?: string | null
    Category?: string | null
    Favicon?: string | null
    Rank?: number | null
    Change?: number | null
    [member: string]: unknown
  }[]
  TotalCount?: number
  [member: string]: unknown
}

export type SiteanalyticsWebsitesChannelsAnswer = {
  Data?: Record<string, Record<string, Record<string, number | null>>>
  [member: string]: unknown
}

export type SiteanalyticsWebsitesSimilarSitesAnswer = {
  Data?: {
    Domain?: string | null
    Category?: string | null
    Favicon?: string | null
    Affinity?: number | null
    Rank?: number | null
    [member: string]: unknown
  }[]
  TotalCount?: number
  [member: string]: unknown
}

export type SiteanalyticsWebsitesSimilarSitesSuggestionsAnswer = {
  Domain?: string | null
  DomainWithoutSub?: string | null
  Favicon?: string | null
  Rank?: number | null
  [member: string]: unknown
}[]

export type SiteanalyticsWebsitesHistoryVisitsAnswer = {
  Data?: Record<string, Record<string, {
    Key?: string | null
    Value?: number | null
    [member: string]: unknown
  }[][]>>
  [member: string]: unknown
}

export type SiteanalyticsWebsitesHistoryBounceRateAnswer = {
  Data?: Record<string, Record<string, {
    Key?: string | null
    Value?: number | null
    [member: string]: unknown
  }[][]>>
  [member: string]: unknown
}

export type SiteanalyticsWebsitesHistoryVisitDurationAnswer = {
  Data?: Record<string, Record<string, {
    Key?: string | null
    Value?: number | null
    [member: string]: unknown
  }[][]>>
  [member: string]: unknown
}

export type SiteanalyticsWebsitesHistoryPagesPerVisitAnswer = {
  Data?: Record<string, Record<string, {
    Key?: string | null
    Value?: number | null
    [member: string]: unknown
  }[][]>>
  [member: string]: unknown
}

export interface KeywordsSuggestionsParams {
  /** The keyword to start from. Takes text of 1 to 2048 UTF-8 bytes. */
  keyword: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days). */
  latest?: `${number}d`
  /** The column to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: windowVolume. */
  sort?: string
  /** Ascending order. Default: false. */
  asc?: boolean
  /** The page, counted from 1. Takes an integer from 1 to 1000, in plain digits. */
  page?: number
  /** Rows on a page. Takes an integer from 1 to 1000, in plain digits. Default: 100. */
  rowsPerPage?: number
  /** How suggestions match. Default: Broad. */
  type?: 'Broad' | 'Phrase' | 'Exact' | 'Related'
  /** Which visits count. Default: Total. */
  websource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Bounds of columns. Takes filters of the form field,min,max with numbers as bounds, joined with | between filters. */
  rangeFilter?: string
}

export interface WebsitesBacklinksParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  Key: string
  /** The page, counted from 1. Takes an integer from 1 to 1000, in plain digits. Default: 1. */
  Page?: number
  /** Rows on a page. Takes an integer from 1 to 1000, in plain digits. Default: 100. */
  PageSize?: number
  /** Which links by age. Default: All. */
  Status?: 'All' | 'Active' | 'New' | 'Lost'
  /** Which links by rel. Default: All. */
  FollowType?: 'All' | 'DoFollowOnly' | 'NoFollowOnly' | 'DoFollow' | 'NoFollow'
  /** Least score of the linking domain. Takes an integer from 0 to 100, in plain digits. */
  DomainScoreFrom?: number
  /** Greatest score of the linking domain. Takes an integer from 0 to 100, in plain digits. */
  DomainScoreTo?: number
  /** The column to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: DomainScore. */
  sort?: string
  /** Ascending order. Default: false. */
  asc?: boolean
}

export interface WebsitesKeywordsParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m (complete UTC months). */
  latest?: `${number}d` | '1m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Daily' | 'Monthly'
  /** The column to sort by. Takes text of 1 to 2048 UTF-8 bytes. */
  sort?: string
  /** Ascending order. */
  asc?: boolean
  /** Country as an ISO code, where the source takes one. Takes text of 1 to 2048 UTF-8 bytes. */
  iso?: string
  /** Whether rows are given per day. */
  isDaily?: boolean
  /** Whether branded keywords are included. Default: false. */
  IncludeBranded?: boolean
  /** Whether non-branded keywords are included. Default: false. */
  IncludeNoneBranded?: boolean
  /** The page, counted from 1. Takes an integer from 1 to 1000, in plain digits. Default: 1. */
  page?: number
  /** Rows on a page. Takes an integer from 1 to 1000, in plain digits. Default: 100. */
  pageSize?: number
  /** Kind of search: all, organic or paid. Takes text of 1 to 2048 UTF-8 bytes. Default: all. */
  sourceType?: string
  /** A JSON array of page filters. Without it the query is about the whole domain. Takes the text of a JSON array. */
  pageFilterJson?: readonly unknown[] | string
}

export interface KeywordsWebsitesParams {
  /** The search keyword. Takes text of 1 to 2048 UTF-8 bytes. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days). */
  latest?: `${number}d`
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Daily' | 'Monthly'
  /** The column to sort by. Takes text of 1 to 2048 UTF-8 bytes. */
  sort?: string
  /** Ascending order. */
  asc?: boolean
  /** Country as an ISO code, where the source takes one. Takes text of 1 to 2048 UTF-8 bytes. */
  iso?: string
  /** Whether rows are given per day. */
  isDaily?: boolean
  /** Tab of the native view. Takes an integer of 0 or more, in plain digits. */
  tab?: number
  /** Whether the present month counts so far. */
  mtd?: boolean
  /** Organic or paid results. Default: Organic. */
  selectedPageTab?: 'Organic' | 'Paid'
  /** Days of the trend. Takes text of 1 to 2048 UTF-8 bytes. Default: 28d. */
  graphDuration?: string
  /** Kind of trend. Takes an integer from 1 to 1000, in plain digits. */
  graphType?: number
  /** Whether the days differ from the native default. */
  isDurationChanged?: boolean
  /** Whether filters that contradict each other pass. */
  ignoreFilterConsistency?: boolean
  /** Which visits count. Takes text of 1 to 2048 UTF-8 bytes. Default: Total. */
  Device?: string
  /** Kind of search. Takes text of 1 to 2048 UTF-8 bytes. Default: organic. */
  sourceType?: string
  /** The page, counted from 1. Takes an integer from 1 to 1000, in plain digits. */
  page?: number
  /** Rows on a page. Takes an integer from 1 to 1000, in plain digits. */
  pageSize?: number
}

export interface WebsitesTrafficSourcesParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days). */
  latest?: `${number}d`
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Daily' | 'Monthly'
  /** Type of source. Takes text of 1 to 2048 UTF-8 bytes. Default: Referral. */
  sourceType?: string
  /** Whether filters that contradict each other pass. */
  ignoreFilterConsistency?: boolean
  /** The page, counted from 1. Takes an integer from 1 to 1000, in plain digits. Default: 1. */
  page?: number
  /** Column and direction to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: Share desc. */
  orderBy?: string
}

export interface WebsitesOutgoingTrafficParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  key: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from: string | Date
  /** Last day, inclusive. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to: string | Date
  /** Whether only the www host counts. Default: false. */
  isWWW?: boolean
  /** Whether the days are a rolling window. Default: false. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** Column and direction to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: Share desc. */
  orderby?: string
  /** Column and direction to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: Share desc. */
  orderBy?: string
  /** The column to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: Share. */
  sort?: string
  /** Ascending order. Default: false. */
  asc?: boolean
  /** The page, counted from 1. Takes an integer from 1 to 1000, in plain digits. Default: 1. */
  page?: number
}

export interface WebsitesIncomingReferralsParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  key: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** Whether only the www host counts. Default: false. */
  isWWW?: boolean
  /** Country as an ISO code, where the source takes one. Takes text of 1 to 2048 UTF-8 bytes. */
  iso?: string
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Whether rows are given per day. Default: false. */
  isDaily?: boolean
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days). */
  latest?: `${number}d`
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** Tab of the native view. Default: incomingTraffic. */
  selectedTab?: 'incomingTraffic'
  /** Column and direction to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: TotalShare desc. */
  orderBy?: string
  /** Whether filters that contradict each other pass. Default: false. */
  ignoreFilterConsistency?: boolean
  /** The page, counted from 1. Takes an integer from 1 to 1000, in plain digits. Default: 1. */
  page?: number
}

export interface WebsitesBrandedKeywordsParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months). */
  latest?: `${number}d` | '1m' | '2m' | '3m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Daily' | 'Monthly'
  /** Only one month. */
  duration?: '1m'
}

export interface WebsitesGeographyParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months). */
  latest?: `${number}d` | '1m' | '2m' | '3m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Daily' | 'Monthly'
  /** Rows on a page. Takes an integer from 1 to 1000, in plain digits. Default: 5. */
  pageSize?: number
  /** Column and direction to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: TotalShare desc. */
  orderBy?: string
}

export interface WebsitesDevicesParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months). */
  latest?: `${number}d` | '1m' | '2m' | '3m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Daily' | 'Monthly'
  /** Whether owner-verified figures replace estimates. Default: false. */
  ShouldGetVerifiedData?: boolean
}

export interface WebsitesSearchPerformanceParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months). */
  latest?: `${number}d` | '1m' | '2m' | '3m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Daily' | 'Monthly'
  /** Rows on a page. Takes an integer from 1 to 1000, in plain digits. Default: 5. */
  pageSize?: number
  /** Only one month. Default: 1m. */
  duration?: '1m'
  /** Organic or paid search. Default: Organic. */
  SourceType?: 'Organic' | 'Paid'
}

export interface WebsitesSocialTrafficParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months). */
  latest?: `${number}d` | '1m' | '2m' | '3m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** The step of a series. */
  timeGranularity?: 'Daily' | 'Monthly'
}

export interface WebsitesEngagementParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months). */
  latest?: `${number}d` | '1m' | '2m' | '3m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Daily' | 'Monthly'
  /** Whether owner-verified figures replace estimates. Default: false. */
  ShouldGetVerifiedData?: boolean
  /** Whether category leaders are included. Default: true. */
  includeLeaders?: boolean
  /** Whether bounced visits are left out. Default: false. */
  unBounced?: boolean
  /** Whether figures of the new method are used. */
  beta?: boolean
}

export interface WebsitesVisitsParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months). */
  latest?: `${number}d` | '1m' | '2m' | '3m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Monthly'
  /** First day of the period to compare with. Goes with `compareTo`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  compareFrom?: string | Date
  /** Last day of the period to compare with. Goes with `compareFrom`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  compareTo?: string | Date
  /** Whether owner-verified figures replace estimates. Default: false. */
  ShouldGetVerifiedData?: boolean
}

export interface WebsitesVisitsTableParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months). */
  latest?: `${number}d` | '1m' | '2m' | '3m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Monthly'
  /** First day of the period to compare with. Goes with `compareTo`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  compareFrom?: string | Date
  /** Last day of the period to compare with. Goes with `compareFrom`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  compareTo?: string | Date
  /** Whether owner-verified figures replace estimates. Default: false. */
  ShouldGetVerifiedData?: boolean
}

export interface WebsitesVisitsTrendParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months). */
  latest?: `${number}d` | '1m' | '2m' | '3m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Daily' | 'Weekly' | 'Monthly'
  /** Whether owner-verified figures replace estimates. Default: false. */
  ShouldGetVerifiedData?: boolean
}

export interface WebsitesRanksParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months). */
  latest?: `${number}d` | '1m' | '2m' | '3m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Monthly'
}

export interface WebsitesRanksCountryParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months). */
  latest?: `${number}d` | '1m' | '2m' | '3m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Monthly'
}

export interface WebsitesRanksGlobalParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months). */
  latest?: `${number}d` | '1m' | '2m' | '3m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Monthly'
}

export interface WebsitesRanksCategoryParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months). */
  latest?: `${number}d` | '1m' | '2m' | '3m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Monthly'
}

export interface WebsitesChannelsParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months). */
  latest?: `${number}d` | '1m' | '2m' | '3m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates. */
  isWindow?: boolean
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Daily' | 'Monthly'
}

export interface WebsitesSimilarSitesParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Only false: this endpoint knows complete months, not rolling windows. Default: false. */
  isWindow?: false
  /** The step of a series. */
  timeGranularity?: 'Monthly'
  /** Only by affinity. Default: Affinity desc. */
  orderBy?: 'Affinity desc'
}

export interface WebsitesSimilarSitesSuggestionsParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  key: string
  /** Most candidates. Takes an integer from 1 to 20, in plain digits. Default: 20. */
  limit?: number
  /** Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999. */
  country?: Country
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
}

export interface WebsitesHistoryVisitsParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Only 999, worldwide. Default: 999. */
  country?: '999' | 999
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1m, 2m, 3m, 4m, 5m, 6m (complete UTC months). */
  latest?: '1m' | '2m' | '3m' | '4m' | '5m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Only false: this endpoint knows complete months, not rolling windows. Default: false. */
  isWindow?: false
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Monthly'
}

export interface WebsitesHistoryBounceRateParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Only 999, worldwide. Default: 999. */
  country?: '999' | 999
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1m, 2m, 3m, 4m, 5m, 6m (complete UTC months). */
  latest?: '1m' | '2m' | '3m' | '4m' | '5m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Only false: this endpoint knows complete months, not rolling windows. Default: false. */
  isWindow?: false
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Monthly'
}

export interface WebsitesHistoryVisitDurationParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Only 999, worldwide. Default: 999. */
  country?: '999' | 999
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1m, 2m, 3m, 4m, 5m, 6m (complete UTC months). */
  latest?: '1m' | '2m' | '3m' | '4m' | '5m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Only false: this endpoint knows complete months, not rolling windows. Default: false. */
  isWindow?: false
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Monthly'
}

export interface WebsitesHistoryPagesPerVisitParams {
  /** The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode. */
  keys: string
  /** Only 999, worldwide. Default: 999. */
  country?: '999' | 999
  /** First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  from?: string | Date
  /** Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD. */
  to?: string | Date
  /** The newest days or complete months instead of explicit dates. Takes 1m, 2m, 3m, 4m, 5m, 6m (complete UTC months). */
  latest?: '1m' | '2m' | '3m' | '4m' | '5m' | '6m'
  /** Whether subdomains count. */
  includeSubDomains?: boolean
  /** Only false: this endpoint knows complete months, not rolling windows. Default: false. */
  isWindow?: false
  /** Which visits count. Default: Total. */
  webSource?: 'Total' | 'Desktop' | 'MobileWeb'
  /** The step of a series. */
  timeGranularity?: 'Monthly'
}

export interface SocialUsersParams {
  /** The user name, with or without a leading @. Takes 1 to 15 letters, digits or underscores, with or without one leading @. */
  username: string
  /** Fields of users besides id, name and username. */
  'user.fields'?: readonly ('affiliation' | 'confirmed_email' | 'connection_status' | 'created_at' | 'description' | 'entities' | 'id' | 'is_identity_verified' | 'location' | 'most_recent_tweet_id' | 'name' | 'parody' | 'pinned_tweet_id' | 'profile_banner_url' | 'profile_image_url' | 'protected' | 'public_metrics' | 'receives_your_dm' | 'subscribes_to_you' | 'subscription' | 'subscription_type' | 'url' | 'username' | 'verified' | 'verified_followers_count' | 'verified_type' | 'withheld')[]
  /** Objects to add under `includes`. */
  expansions?: readonly ('affiliation' | 'most_recent_tweet_id' | 'pinned_tweet_id')[]
  /** Fields of tweets besides id and text. */
  'tweet.fields'?: readonly ('article' | 'attachments' | 'author_id' | 'card_uri' | 'community_id' | 'context_annotations' | 'conversation_id' | 'created_at' | 'display_text_range' | 'edit_controls' | 'edit_history_tweet_ids' | 'entities' | 'geo' | 'id' | 'in_reply_to_user_id' | 'lang' | 'media_metadata' | 'non_public_metrics' | 'note_tweet' | 'organic_metrics' | 'possibly_sensitive' | 'promoted_metrics' | 'public_metrics' | 'referenced_tweets' | 'reply_settings' | 'scopes' | 'source' | 'text' | 'withheld')[]
}

export interface SocialUsersIdParams {
  /** Fields of users besides id, name and username. */
  'user.fields'?: readonly ('affiliation' | 'confirmed_email' | 'connection_status' | 'created_at' | 'description' | 'entities' | 'id' | 'is_identity_verified' | 'location' | 'most_recent_tweet_id' | 'name' | 'parody' | 'pinned_tweet_id' | 'profile_banner_url' | 'profile_image_url' | 'protected' | 'public_metrics' | 'receives_your_dm' | 'subscribes_to_you' | 'subscription' | 'subscription_type' | 'url' | 'username' | 'verified' | 'verified_followers_count' | 'verified_type' | 'withheld')[]
  /** Objects to add under `includes`. */
  expansions?: readonly ('affiliation' | 'most_recent_tweet_id' | 'pinned_tweet_id')[]
  /** Fields of tweets besides id and text. */
  'tweet.fields'?: readonly ('article' | 'attachments' | 'author_id' | 'card_uri' | 'community_id' | 'context_annotations' | 'conversation_id' | 'created_at' | 'display_text_range' | 'edit_controls' | 'edit_history_tweet_ids' | 'entities' | 'geo' | 'id' | 'in_reply_to_user_id' | 'lang' | 'media_metadata' | 'non_public_metrics' | 'note_tweet' | 'organic_metrics' | 'possibly_sensitive' | 'promoted_metrics' | 'public_metrics' | 'referenced_tweets' | 'reply_settings' | 'scopes' | 'source' | 'text' | 'withheld')[]
}

export interface SocialUsersIdTweetsParams {
  /** Most tweets on a page. Takes an integer from 1 to 100, in plain digits. Default: 10. */
  max_results?: number
  /** `meta.next_token` of the page before. Takes text of 1 to 2048 UTF-8 bytes. */
  pagination_token?: string
  /** Kinds of tweets to leave out. */
  exclude?: readonly ('replies' | 'retweets')[]
  /** Objects to add under `includes`. */
  expansions?: readonly ('article.cover_media' | 'article.media_entities' | 'attachments.media_keys' | 'attachments.media_source_tweet' | 'attachments.poll_ids' | 'author_id' | 'edit_history_tweet_ids' | 'entities.mentions.username' | 'entities.note.mentions.username' | 'geo.place_id' | 'in_reply_to_user_id' | 'referenced_tweets.id' | 'referenced_tweets.id.author_id')[]
  /** Fields of tweets besides id and text. */
  'tweet.fields'?: readonly ('article' | 'attachments' | 'author_id' | 'card_uri' | 'community_id' | 'context_annotations' | 'conversation_id' | 'created_at' | 'display_text_range' | 'edit_controls' | 'edit_history_tweet_ids' | 'entities' | 'geo' | 'id' | 'in_reply_to_user_id' | 'lang' | 'media_metadata' | 'non_public_metrics' | 'note_tweet' | 'organic_metrics' | 'possibly_sensitive' | 'promoted_metrics' | 'public_metrics' | 'referenced_tweets' | 'reply_settings' | 'scopes' | 'source' | 'text' | 'withheld')[]
  /** Fields of the users under `includes`. */
  'user.fields'?: readonly ('affiliation' | 'confirmed_email' | 'connection_status' | 'created_at' | 'description' | 'entities' | 'id' | 'is_identity_verified' | 'location' | 'most_recent_tweet_id' | 'name' | 'parody' | 'pinned_tweet_id' | 'profile_banner_url' | 'profile_image_url' | 'protected' | 'public_metrics' | 'receives_your_dm' | 'subscribes_to_you' | 'subscription' | 'subscription_type' | 'url' | 'username' | 'verified' | 'verified_followers_count' | 'verified_type' | 'withheld')[]
  /** Fields of media under `includes`. */
  'media.fields'?: readonly ('alt_text' | 'duration_ms' | 'height' | 'media_key' | 'non_public_metrics' | 'organic_metrics' | 'preview_image_url' | 'promoted_metrics' | 'public_metrics' | 'type' | 'url' | 'variants' | 'width')[]
  /** Fields of places under `includes`. */
  'place.fields'?: readonly ('contained_within' | 'country' | 'country_code' | 'full_name' | 'geo' | 'id' | 'name' | 'place_type')[]
  /** Fields of polls under `includes`. */
  'poll.fields'?: readonly ('duration_minutes' | 'end_datetime' | 'id' | 'options' | 'voting_status')[]
  /** Only tweets of this moment or later. Takes a UTC time as YYYY-MM-DDTHH:mm:ssZ. */
  start_time?: string | Date
  /** Only tweets before this moment. Takes a UTC time as YYYY-MM-DDTHH:mm:ssZ. */
  end_time?: string | Date
  /** Only tweets newer than this one. Takes a tweet id of 1 to 19 digits. */
  since_id?: string
  /** Only tweets older than this one. Takes a tweet id of 1 to 19 digits. */
  until_id?: string
}

export interface JobsListParams {
  /** How many. Takes an integer from 1 to 100, in plain digits. Default: 20. */
  limit?: number
  /** Only older jobs than this one. Takes the id of a job. */
  before?: string
  /** Only jobs in this status. */
  status?: 'PENDING' | 'CONNECT' | 'PROCESSING' | 'COMPLETED' | 'FAILED' | 'CANCELLED'
}

type Get = <T>(path: string, params: object, options?: CallOptions) => Promise<Answer<T>>

export const analyticsOf = (get: Get) => ({
  keywords: {
    /**
     * Keyword suggestions. Search keywords related to a keyword, with their volumes.
     * Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`.
     * Answer: Rows in `records` with keyword, windowVolume, cpc, difficulty and more; `totalRecords` counts them all.
     */
    suggestions: (params: KeywordsSuggestionsParams, options?: CallOptions) =>
      get<SiteanalyticsKeywordsSuggestionsAnswer>('keywords/suggestions', params, options),
    /**
     * Websites that rank for a keyword. Websites that get visits from a search keyword. Here `keys` is a keyword, not a website.
     * Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`.
     * Answer: Rows in `Data` with Domain; `TotalCount` counts them all.
     */
    websites: (params: KeywordsWebsitesParams, options?: CallOptions) =>
      get<SiteanalyticsKeywordsWebsitesAnswer>('keywords/websites', params, options),
  },
  websites: {
    /**
     * Backlinks. Pages that link to a website. The website is `Key`, with a capital K.
     * `DomainScoreFrom` must not be after `DomainScoreTo`.
     * Answer: Rows in `Records`; `TotalRecords` counts them all.
     */
    backlinks: (params: WebsitesBacklinksParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesBacklinksAnswer>('websites/backlinks', params, options),
    /**
     * Keywords of a website. Search keywords that bring visits. `latest=1m` is a one-month overview of 5 rows. For non-branded views use sourceType organic or paid with IncludeNoneBranded=true and IncludeBranded=false.
     * Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. With `latest=1m`, pageSize is 5 unless given.
     * Answer: `Data.Records` with Keyword, Clicks, Share, KwVolume, Cpc and more; `TotalCount` counts them all.
     */
    keywords: (params: WebsitesKeywordsParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesKeywordsAnswer>('websites/keywords', params, options),
    /**
     * Traffic sources. Sources of visits by type. Another table than incoming-referrals.
     * Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`.
     * Answer: Rows in `Data`.
     */
    trafficSources: (params: WebsitesTrafficSourcesParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesTrafficSourcesAnswer>('websites/traffic-sources', params, options),
    /**
     * Outgoing traffic. Where visitors go next. `orderby` and `orderBy` are two parameters, forwarded independently: keep them the same.
     * `from` and `to` go together, and `from` must not be after `to`.
     * Answer: Rows in `Records`; `TotalCount` is the total at the source, not the length of the page.
     */
    outgoingTraffic: (params: WebsitesOutgoingTrafficParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesOutgoingTrafficAnswer>('websites/outgoing-traffic', params, options),
    /**
     * Incoming referrals. Websites that send visitors.
     * Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`.
     * Answer: Rows in `Records`, 100 a page; native fields may include SiteOrigins and TotalShare.
     */
    incomingReferrals: (params: WebsitesIncomingReferralsParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesIncomingReferralsAnswer>('websites/incoming-referrals', params, options),
    /**
     * Branded and other keywords. How much search traffic comes from keywords with the brand in them.
     * Without dates: the previous complete UTC month. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.
     * Answer: `Data.<domain>` with Branded and NoneBranded.
     */
    brandedKeywords: (params: WebsitesBrandedKeywordsParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesBrandedKeywordsAnswer>('websites/branded-keywords', params, options),
    /**
     * Geography. Visits by country.
     * Without dates: the previous 3 complete UTC months. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.
     * Answer: Rows in `Data` with Country, Share, Rank and engagement by country.
     */
    geography: (params: WebsitesGeographyParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesGeographyAnswer>('websites/geography', params, options),
    /**
     * Devices. Visits by desktop and mobile web.
     * Without dates: the previous 3 complete UTC months. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.
     * Answer: `Data.<domain>` with a number by device.
     */
    devices: (params: WebsitesDevicesParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesDevicesAnswer>('websites/devices', params, options),
    /**
     * Search performance. Top search terms. Paid keywords use `SourceType=Paid`; the spelling `sourceType` is not taken.
     * Without dates: the previous complete UTC month. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.
     * Answer: Rows in `Data` with SearchTerm, TotalShare and TotalVisits.
     */
    searchPerformance: (params: WebsitesSearchPerformanceParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesSearchPerformanceAnswer>('websites/search-performance', params, options),
    /**
     * Social traffic. Visits by social network.
     * Without dates: the previous 3 complete UTC months. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.
     * Answer: `Data.<domain>.<network>` with Share.
     */
    socialTraffic: (params: WebsitesSocialTrafficParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesSocialTrafficAnswer>('websites/social-traffic', params, options),
    /**
     * Engagement. Visits, bounce rate, pages per visit and visit duration.
     * Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.
     * Answer: Rows in `Data`; they may contain AvgMonthVisits, BounceRate, PagesPerVisit, AvgVisitDuration.
     */
    engagement: (params: WebsitesEngagementParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesEngagementAnswer>('websites/engagement', params, options),
    /**
     * Visits. Total visits, with a comparison. A rolling total need not equal a complete-month total.
     * Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `compareFrom` and `compareTo` go together, and `compareFrom` must not be after `compareTo`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.
     * Answer: `Data.<domain>`; it may contain TotalVisits, Change, ShareOfVisits.
     */
    visits: (params: WebsitesVisitsParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesVisitsAnswer>('websites/visits', params, options),
    /**
     * Visits, as a table. Total visits in rows.
     * Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `compareFrom` and `compareTo` go together, and `compareFrom` must not be after `compareTo`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.
     * Answer: Rows in `Data` with Domain and TotalVisits. `TotalCount` can be 0 while `Data` has rows: test the array.
     */
    visitsTable: (params: WebsitesVisitsTableParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesVisitsTableAnswer>('websites/visits/table', params, options),
    /**
     * Visits over time. A series of visits.
     * Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.
     * Answer: `Data.<domain>.<source>`: an array of series, each of Key/Value points.
     */
    visitsTrend: (params: WebsitesVisitsTrendParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesVisitsTrendAnswer>('websites/visits/trend', params, options),
    /**
     * Ranks. Global, country and category rank in one answer.
     * Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.
     * Answer: `Data.<domain>` with separate GlobalRank, CountryRank and CategoryRank objects.
     */
    ranks: (params: WebsitesRanksParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesRanksAnswer>('websites/ranks', params, options),
    /**
     * Country rank, as a table. The country rank of a website.
     * Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.
     * Answer: Rows in `Data` with Domain and Rank. `TotalCount` can be 0 while `Data` has rows: test the array itself.
     */
    ranksCountry: (params: WebsitesRanksCountryParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesRanksCountryAnswer>('websites/ranks/country', params, options),
    /**
     * Global rank, as a table. The global rank of a website.
     * Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.
     * Answer: Rows in `Data` with Domain and Rank. `TotalCount` can be 0 while `Data` has rows: test the array itself.
     */
    ranksGlobal: (params: WebsitesRanksGlobalParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesRanksGlobalAnswer>('websites/ranks/global', params, options),
    /**
     * Category rank, as a table. The category rank of a website.
     * Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.
     * Answer: Rows in `Data` with Domain and Rank. `TotalCount` can be 0 while `Data` has rows: test the array itself.
     */
    ranksCategory: (params: WebsitesRanksCategoryParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesRanksCategoryAnswer>('websites/ranks/category', params, options),
    /**
     * Marketing channels. Visits by channel. A share can be computed only when the sum is positive.
     * Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.
     * Answer: `Data.Total.<domain>` (with webSource=Total) with visit counts by channel name.
     */
    channels: (params: WebsitesChannelsParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesChannelsAnswer>('websites/channels', params, options),
    /**
     * Similar websites. Websites with a similar audience, by affinity.
     * Without dates: the previous 3 complete UTC months. `from` and `to` go together, and `from` must not be after `to`.
     * Answer: Rows in `Data` with Domain and Affinity.
     */
    similarSites: (params: WebsitesSimilarSitesParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesSimilarSitesAnswer>('websites/similar-sites', params, options),
    /**
     * Suggestions of similar websites. Candidates for a comparison.
     * Answer: A bare array of Domain, DomainWithoutSub, Rank (number) and Favicon. An empty array: no suggestions.
     */
    similarSitesSuggestions: (params: WebsitesSimilarSitesSuggestionsParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesSimilarSitesSuggestionsAnswer>('websites/similar-sites/suggestions', params, options),
    /**
     * History of visits. The history of visits, month by month, for up to six complete months.
     * Without dates: the previous 6 complete UTC months. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`. Explicit dates must be complete months inside the last 6.
     * Answer: `Data.<domain>.<source>` as Key/Value points, in visits. Source names are kept as given.
     */
    historyVisits: (params: WebsitesHistoryVisitsParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesHistoryVisitsAnswer>('websites/history/visits', params, options),
    /**
     * History of the bounce rate. The history of the bounce rate, month by month, for up to six complete months.
     * Without dates: the previous 6 complete UTC months. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`. Explicit dates must be complete months inside the last 6.
     * Answer: `Data.<domain>.<source>` as Key/Value points, in a ratio. Source names are kept as given.
     */
    historyBounceRate: (params: WebsitesHistoryBounceRateParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesHistoryBounceRateAnswer>('websites/history/bounce-rate', params, options),
    /**
     * History of the visit duration. The history of the visit duration, month by month, for up to six complete months.
     * Without dates: the previous 6 complete UTC months. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`. Explicit dates must be complete months inside the last 6.
     * Answer: `Data.<domain>.<source>` as Key/Value points, in seconds per visit. Source names are kept as given.
     */
    historyVisitDuration: (params: WebsitesHistoryVisitDurationParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesHistoryVisitDurationAnswer>('websites/history/visit-duration', params, options),
    /**
     * History of pages per visit. The history of pages per visit, month by month, for up to six complete months.
     * Without dates: the previous 6 complete UTC months. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`. Explicit dates must be complete months inside the last 6.
     * Answer: `Data.<domain>.<source>` as Key/Value points, in pages per visit. Source names are kept as given.
     */
    historyPagesPerVisit: (params: WebsitesHistoryPagesPerVisitParams, options?: CallOptions) =>
      get<SiteanalyticsWebsitesHistoryPagesPerVisitAnswer>('websites/history/pages-per-visit', params, options),
  },
})
