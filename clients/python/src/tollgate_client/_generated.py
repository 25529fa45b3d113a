# Generated from the catalog and the OpenAPI document by `npm run generate`. Do not change it by hand.
# ruff: noqa
from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal, Mapping, Sequence, Union

from pydantic import Field
from typing_extensions import Required, TypedDict

from ._answer import Answer, Part
from ._files import Reference

PATHS = {
    "analytics": "/v1/siteanalytics",
    "social": "/v1/social/users",
    "chat": "/v1/chat-completions",
    "responses": "/alpha/responses",
    "messages": "/beta/v1/messages",
    "count_tokens": "/beta/v1/messages/count_tokens",
    "embeddings": "/v1/embeddings",
    "images": "/alpha/v1/images/generations",
    "video": "/v1/video/seedance",
    "jobs": "/v1/jobs",
    "models": "/v1/models",
    "account": "/v1/account",
    "quote": "/v1/quote",
    "purses": "/v1/purses",
}

PaidEndpoint = Literal["chat", "completions", "responses", "responses/compact", "messages", "gemini", "gemini/stream", "embeddings", "gemini/embed", "gemini/embed_batch", "rerank", "rerank/v2", "moderations", "ocr", "transcriptions", "translations", "speech", "images", "images/edits", "video", "video/create", "social/users", "social/users/{id}", "social/users/{id}/tweets", "siteanalytics/keywords/suggestions", "siteanalytics/websites/backlinks", "siteanalytics/websites/keywords", "siteanalytics/keywords/websites", "siteanalytics/websites/traffic-sources", "siteanalytics/websites/outgoing-traffic", "siteanalytics/websites/incoming-referrals", "siteanalytics/websites/branded-keywords", "siteanalytics/websites/geography", "siteanalytics/websites/devices", "siteanalytics/websites/search-performance", "siteanalytics/websites/social-traffic", "siteanalytics/websites/engagement", "siteanalytics/websites/visits", "siteanalytics/websites/visits/table", "siteanalytics/websites/visits/trend", "siteanalytics/websites/ranks", "siteanalytics/websites/ranks/country", "siteanalytics/websites/ranks/global", "siteanalytics/websites/ranks/category", "siteanalytics/websites/channels", "siteanalytics/websites/similar-sites", "siteanalytics/websites/similar-sites/suggestions", "siteanalytics/websites/history/visits", "siteanalytics/websites/history/bounce-rate", "siteanalytics/websites/history/visit-duration", "siteanalytics/websites/history/pages-per-visit"]

#: Two letters (ISO 3166), the number of the country, or the world.
Country = Union[int, Literal["world", "ad", "ae", "af", "ag", "ai", "al", "am", "ao", "aq", "ar", "as", "at", "au", "aw", "ax", "az", "ba", "bb", "bd", "be", "bf", "bg", "bh", "bi", "bj", "bl", "bm", "bn", "bo", "bq", "br", "bs", "bt", "bv", "bw", "by", "bz", "ca", "cc", "cd", "cf", "cg", "ch", "ci", "ck", "cl", "cm", "cn", "co", "cr", "cu", "cv", "cw", "cx", "cy", "cz", "de", "dj", "dk", "dm", "do", "dz", "ec", "ee", "eg", "eh", "er", "es", "et", "fi", "fj", "fk", "fm", "fo", "fr", "ga", "gb", "gd", "ge", "gf", "gg", "gh", "gi", "gl", "gm", "gn", "gp", "gq", "gr", "gs", "gt", "gu", "gw", "gy", "hk", "hm", "hn", "hr", "ht", "hu", "id", "ie", "il", "im", "in", "io", "iq", "ir", "is", "it", "je", "jm", "jo", "jp", "ke", "kg", "kh", "ki", "km", "kn", "kp", "kr", "kw", "ky", "kz", "la", "lb", "lc", "li", "lk", "lr", "ls", "lt", "lu", "lv", "ly", "ma", "mc", "md", "me", "mf", "mg", "mh", "mk", "ml", "mm", "mn", "mo", "mp", "mq", "mr", "ms", "mt", "mu", "mv", "mw", "mx", "my", "mz", "na", "nc", "ne", "nf", "ng", "ni", "nl", "no", "np", "nr", "nu", "nz", "om", "pa", "pe", "pf", "pg", "ph", "pk", "pl", "pm", "pn", "pr", "ps", "pt", "pw", "py", "qa", "re", "ro", "rs", "ru", "rw", "sa", "sb", "sc", "sd", "se", "sg", "sh", "si", "sj", "sk", "sl", "sm", "sn", "so", "sr", "ss", "st", "sv", "sx", "sy", "sz", "tc", "td", "tf", "tg", "th", "tj", "tk", "tl", "tm", "tn", "to", "tr", "tt", "tv", "tw", "tz", "ua", "ug", "um", "us", "uy", "uz", "va", "vc", "ve", "vg", "vi", "vn", "vu", "wf", "ws", "ye", "yt", "za", "zm", "zw"]]

COUNTRIES = {
    "ad": 20,
    "ae": 784,
    "af": 4,
    "ag": 28,
    "ai": 660,
    "al": 8,
    "am": 51,
    "ao": 24,
    "aq": 10,
    "ar": 32,
    "as": 16,
    "at": 40,
    "au": 36,
    "aw": 533,
    "ax": 248,
    "az": 31,
    "ba": 70,
    "bb": 52,
    "bd": 50,
    "be": 56,
    "bf": 854,
    "bg": 100,
    "bh": 48,
    "bi": 108,
    "bj": 204,
    "bl": 652,
    "bm": 60,
    "bn": 96,
    "bo": 68,
    "bq": 535,
    "br": 76,
    "bs": 44,
    "bt": 64,
    "bv": 74,
    "bw": 72,
    "by": 112,
    "bz": 84,
    "ca": 124,
    "cc": 166,
    "cd": 180,
    "cf": 140,
    "cg": 178,
    "ch": 756,
    "ci": 384,
    "ck": 184,
    "cl": 152,
    "cm": 120,
    "cn": 156,
    "co": 170,
    "cr": 188,
    "cu": 192,
    "cv": 132,
    "cw": 531,
    "cx": 162,
    "cy": 196,
    "cz": 203,
    "de": 276,
    "dj": 262,
    "dk": 208,
    "dm": 212,
    "do": 214,
    "dz": 12,
    "ec": 218,
    "ee": 233,
    "eg": 818,
    "eh": 732,
    "er": 232,
    "es": 724,
    "et": 231,
    "fi": 246,
    "fj": 242,
    "fk": 238,
    "fm": 583,
    "fo": 234,
    "fr": 250,
    "ga": 266,
    "gb": 826,
    "gd": 308,
    "ge": 268,
    "gf": 254,
    "gg": 831,
    "gh": 288,
    "gi": 292,
    "gl": 304,
    "gm": 270,
    "gn": 324,
    "gp": 312,
    "gq": 226,
    "gr": 300,
    "gs": 239,
    "gt": 320,
    "gu": 316,
    "gw": 624,
    "gy": 328,
    "hk": 344,
    "hm": 334,
    "hn": 340,
    "hr": 191,
    "ht": 332,
    "hu": 348,
    "id": 360,
    "ie": 372,
    "il": 376,
    "im": 833,
    "in": 356,
    "io": 86,
    "iq": 368,
    "ir": 364,
    "is": 352,
    "it": 380,
    "je": 832,
    "jm": 388,
    "jo": 400,
    "jp": 392,
    "ke": 404,
    "kg": 417,
    "kh": 116,
    "ki": 296,
    "km": 174,
    "kn": 659,
    "kp": 408,
    "kr": 410,
    "kw": 414,
    "ky": 136,
    "kz": 398,
    "la": 418,
    "lb": 422,
    "lc": 662,
    "li": 438,
    "lk": 144,
    "lr": 430,
    "ls": 426,
    "lt": 440,
    "lu": 442,
    "lv": 428,
    "ly": 434,
    "ma": 504,
    "mc": 492,
    "md": 498,
    "me": 499,
    "mf": 663,
    "mg": 450,
    "mh": 584,
    "mk": 807,
    "ml": 466,
    "mm": 104,
    "mn": 496,
    "mo": 446,
    "mp": 580,
    "mq": 474,
    "mr": 478,
    "ms": 500,
    "mt": 470,
    "mu": 480,
    "mv": 462,
    "mw": 454,
    "mx": 484,
    "my": 458,
    "mz": 508,
    "na": 516,
    "nc": 540,
    "ne": 562,
    "nf": 574,
    "ng": 566,
    "ni": 558,
    "nl": 528,
    "no": 578,
    "np": 524,
    "nr": 520,
    "nu": 570,
    "nz": 554,
    "om": 512,
    "pa": 591,
    "pe": 604,
    "pf": 258,
    "pg": 598,
    "ph": 608,
    "pk": 586,
    "pl": 616,
    "pm": 666,
    "pn": 612,
    "pr": 630,
    "ps": 275,
    "pt": 620,
    "pw": 585,
    "py": 600,
    "qa": 634,
    "re": 638,
    "ro": 642,
    "rs": 688,
    "ru": 643,
    "rw": 646,
    "sa": 682,
    "sb": 90,
    "sc": 690,
    "sd": 729,
    "se": 752,
    "sg": 702,
    "sh": 654,
    "si": 705,
    "sj": 744,
    "sk": 703,
    "sl": 694,
    "sm": 674,
    "sn": 686,
    "so": 706,
    "sr": 740,
    "ss": 728,
    "st": 678,
    "sv": 222,
    "sx": 534,
    "sy": 760,
    "sz": 748,
    "tc": 796,
    "td": 148,
    "tf": 260,
    "tg": 768,
    "th": 764,
    "tj": 762,
    "tk": 772,
    "tl": 626,
    "tm": 795,
    "tn": 788,
    "to": 776,
    "tr": 792,
    "tt": 780,
    "tv": 798,
    "tw": 158,
    "tz": 834,
    "ua": 804,
    "ug": 800,
    "um": 581,
    "us": 840,
    "uy": 858,
    "uz": 860,
    "va": 336,
    "vc": 670,
    "ve": 862,
    "vg": 92,
    "vi": 850,
    "vn": 704,
    "vu": 548,
    "wf": 876,
    "ws": 882,
    "ye": 887,
    "yt": 175,
    "za": 710,
    "zm": 894,
    "zw": 716,
}


class ModelPricing(Part):
    unit: Literal["credits"] | None = None
    token_tier_basis: str | None = Field(default=None, alias="tokenTierBasis")
    tiers: list[dict[str, Any]] | None = None


class Model(Answer):
    uid: str
    name: str
    version: str | None
    type: str
    pricing: ModelPricing | None


JobStatus = Literal["PENDING", "CONNECT", "PROCESSING", "COMPLETED", "FAILED", "CANCELLED"]


class JobOutputResultItem(Part):
    url: list[str]


class JobError(Part):
    code: int
    message: str
    reason: str | None = None


class Job(Answer):
    id: str
    status: JobStatus
    input_params: dict[str, Any] = Field(alias="inputParams")
    output_result: list[JobOutputResultItem] | None = Field(alias="outputResult")
    created_at: str = Field(alias="createdAt")
    started_at: str | None = Field(alias="startedAt")
    completed_at: str | None = Field(alias="completedAt")
    error: JobError | None = None


class Purse(Part):
    id: str
    name: str
    status: Literal["open", "frozen", "closed"]
    balance: str
    held: str
    available: str
    low: str | None
    created_at: str = Field(alias="createdAt")
    moved_at: str | None = Field(alias="movedAt")


class PurseMovement(Part):
    id: str
    at: str
    kind: Literal["grant", "topup", "takeback", "settled", "released", "expired", "empty", "frozen", "reopened", "closed"]
    moved: str
    balance_after: str = Field(alias="balanceAfter")
    charged: str
    list: int | None
    request_id: str | None = Field(alias="requestId")
    product: str | None
    reference: str | None
    note: str | None
    actor: str | None


class PursePageLink(Part):
    url: str
    expires_at: str = Field(alias="expiresAt")


class PurseSession(Part):
    id: str
    purse: str
    prefix: str
    call_max: str | None = Field(alias="callMax")
    expires_at: str = Field(alias="expiresAt")
    revoked_at: str | None = Field(alias="revokedAt")
    created_at: str = Field(alias="createdAt")
    token: str


class PurseStatementLinesItem(Part):
    product: str
    list: int
    calls: int
    spent: str


class PurseStatement(Part):
    purse: str
    name: str
    month: str
    opening: str
    granted: str
    taken_back: str = Field(alias="takenBack")
    spent: str
    closing: str
    lines: list[PurseStatementLinesItem]


class PurseTopUp(Part):
    id: str
    credits: str
    url: str


class PurseBillingDetails(Part):
    company: str | None
    name: str | None
    street: str | None
    postcode: str | None
    city: str | None
    country: str | None
    vat_id: str | None = Field(alias="vatId")
    email: str | None


class PurseInvoice(Part):
    id: str
    account: str
    purse: str | None
    number: str
    kind: Literal["payment", "month", "credit_note"]
    customer: str
    issued_at: str = Field(alias="issuedAt")
    currency: str
    gross: str
    tax: str
    payment: str | None
    corrects: str | None
    month: str | None


class PurseSessionState(Part):
    id: str
    purse: str
    prefix: str
    call_max: str | None = Field(alias="callMax")
    expires_at: str = Field(alias="expiresAt")
    revoked_at: str | None = Field(alias="revokedAt")
    created_at: str = Field(alias="createdAt")


class PurseTopUpState(Part):
    id: str
    purse: str
    provider: Literal["stripe", "webhook", "simulated"]
    provider_id: str | None = Field(alias="providerId")
    state: Literal["pending", "paid", "refunded", "disputed", "quarantined", "failed"]
    reason: str | None
    currency: str
    amount: str
    refunded: str
    credits: str
    credits_taken: str = Field(alias="creditsTaken")
    credits_lost: str = Field(alias="creditsLost")
    created_at: str = Field(alias="createdAt")
    paid_at: str | None = Field(alias="paidAt")


class SocialUserPublicMetrics(Part):
    followers_count: int | None = None
    following_count: int | None = None
    tweet_count: int | None = None
    listed_count: int | None = None
    like_count: int | None = None
    media_count: int | None = None


class SocialUser(Part):
    id: str
    name: str
    username: str
    created_at: str | None = None
    description: str | None = None
    entities: dict[str, Any] | None = None
    location: str | None = None
    pinned_tweet_id: str | None = None
    profile_banner_url: str | None = None
    profile_image_url: str | None = None
    protected: bool | None = None
    public_metrics: SocialUserPublicMetrics | None = None
    url: str | None = None
    verified: bool | None = None
    verified_type: str | None = None


class TweetAttachments(Part):
    media_keys: list[str] | None = None
    poll_ids: list[str] | None = None


class TweetPublicMetrics(Part):
    retweet_count: int | None = None
    reply_count: int | None = None
    like_count: int | None = None
    quote_count: int | None = None
    bookmark_count: int | None = None
    impression_count: int | None = None


class TweetReferencedTweetsItem(Part):
    type: str
    id: str


class Tweet(Part):
    id: str
    text: str
    attachments: TweetAttachments | None = None
    author_id: str | None = None
    conversation_id: str | None = None
    created_at: str | None = None
    edit_history_tweet_ids: list[str] | None = None
    entities: dict[str, Any] | None = None
    in_reply_to_user_id: str | None = None
    lang: str | None = None
    possibly_sensitive: bool | None = None
    public_metrics: TweetPublicMetrics | None = None
    referenced_tweets: list[TweetReferencedTweetsItem] | None = None
    source: str | None = None


class SocialIncludesMediaItem(Part):
    media_key: str | None = None
    type: str | None = None


class SocialIncludes(Part):
    users: list[SocialUser] | None = None
    tweets: list[Tweet] | None = None
    media: list[SocialIncludesMediaItem] | None = None
    places: list[dict[str, Any]] | None = None
    polls: list[dict[str, Any]] | None = None


class ChatAnswerChoicesItemMessageToolCallsItemFunction(Part):
    name: str
    arguments: str


class ChatAnswerChoicesItemMessageToolCallsItem(Part):
    id: str
    type: str | None = None
    function: ChatAnswerChoicesItemMessageToolCallsItemFunction | None = None


class ChatAnswerChoicesItemMessage(Part):
    role: str
    content: str | None
    refusal: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ChatAnswerChoicesItemMessageToolCallsItem] | None = None


class ChatAnswerChoicesItem(Part):
    index: int
    message: ChatAnswerChoicesItemMessage
    finish_reason: str | None


class ChatAnswerUsage(Part):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatAnswer(Answer):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatAnswerChoicesItem]
    usage: ChatAnswerUsage | None = None


class ResponsesAnswerOutputItemContentItem(Part):
    type: str
    text: str | None = None
    annotations: list[dict[str, Any]] | None = None


class ResponsesAnswerOutputItemSummaryItem(Part):
    type: str
    text: str | None = None


class ResponsesAnswerOutputItem(Part):
    type: str
    id: str | None = None
    role: str | None = None
    status: str | None = None
    content: list[ResponsesAnswerOutputItemContentItem] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    summary: list[ResponsesAnswerOutputItemSummaryItem] | None = None


class ResponsesAnswerError(Part):
    code: str
    message: str


class ResponsesAnswerIncompleteDetails(Part):
    reason: str


class ResponsesAnswerUsage(Part):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    output_tokens_details: dict[str, Any] | None = None


class ResponsesAnswer(Answer):
    id: str
    object: Literal["response"]
    created_at: int
    status: str | None = None
    model: str
    output: list[ResponsesAnswerOutputItem]
    error: ResponsesAnswerError | None = None
    incomplete_details: ResponsesAnswerIncompleteDetails | None = None
    instructions: Any | None = None
    previous_response_id: str | None = None
    store: bool | None = None
    metadata: dict[str, Any] | None = None
    usage: ResponsesAnswerUsage | None = None


class MessagesAnswerContentItem(Part):
    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None


class MessagesAnswerUsage(Part):
    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class MessagesAnswer(Answer):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[MessagesAnswerContentItem]
    stop_reason: str | None
    stop_sequence: str | None = None
    usage: MessagesAnswerUsage


class EmbeddingsAnswerDataItem(Part):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingsAnswerUsage(Part):
    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(Answer):
    object: Literal["list"]
    data: list[EmbeddingsAnswerDataItem]
    model: str
    usage: EmbeddingsAnswerUsage


class ImagesAnswerDataItem(Part):
    url: str
    b64_json: str | None = None


class ImagesAnswerUsage(Part):
    input_tokens: int
    output_tokens: int
    total_tokens: int


class ImagesAnswer(Answer):
    created: int
    data: list[ImagesAnswerDataItem]
    usage: ImagesAnswerUsage | None = None


class AccountAnswerDataLimits(Part):
    requests_per_minute: int | None = Field(default=None, alias="requestsPerMinute")
    requests_per_day: int | None = Field(default=None, alias="requestsPerDay")
    tokens_per_minute: int | None = Field(default=None, alias="tokensPerMinute")
    concurrency: int | None = None
    spend_total: str | None = Field(default=None, alias="spendTotal")
    spend_per_day: str | None = Field(default=None, alias="spendPerDay")
    spend_per_month: str | None = Field(default=None, alias="spendPerMonth")


class AccountAnswerDataLotsItem(Part):
    remaining: str
    ends_at: str | None = Field(alias="endsAt")
    products: list[str] | None


class AccountAnswerDataKeyLimits(Part):
    requests_per_minute: int | None = Field(default=None, alias="requestsPerMinute")
    requests_per_day: int | None = Field(default=None, alias="requestsPerDay")
    tokens_per_minute: int | None = Field(default=None, alias="tokensPerMinute")
    concurrency: int | None = None
    spend_total: str | None = Field(default=None, alias="spendTotal")
    spend_per_day: str | None = Field(default=None, alias="spendPerDay")
    spend_per_month: str | None = Field(default=None, alias="spendPerMonth")


class AccountAnswerDataKey(Part):
    id: str
    models: list[str] | None
    endpoints: list[str] | None
    expires_at: str | None = Field(alias="expiresAt")
    limits: AccountAnswerDataKeyLimits


class AccountAnswerData(Answer):
    id: str
    name: str
    balance: str
    held: str
    available: str
    limits: AccountAnswerDataLimits
    test: bool
    summary: str
    lots: list[AccountAnswerDataLotsItem]
    key: AccountAnswerDataKey


class QuoteAnswerDataLinesItem(Part):
    unit: Literal["input", "cachedInput", "cacheWrite", "cacheWriteHour", "inputAudio", "inputImage", "output", "outputAudio", "outputImage", "image", "second", "page", "character", "webSearch", "fileSearch", "codeRun", "call", "row", "byte", "metered"]
    quantity: int
    rate: str
    per: Literal[1000000]


class QuoteAnswerData(Answer):
    endpoint: str
    product: str
    unit: Literal["credits"]
    hold: str
    cost_at_most: str = Field(alias="costAtMost")
    hold_at_least: str = Field(alias="holdAtLeast")
    worst_case: dict[str, int] = Field(alias="worstCase")
    lines: list[QuoteAnswerDataLinesItem]
    available: str
    affordable: bool
    byok: bool
    catalog_version: int = Field(alias="catalogVersion")


class SocialUsersAnswerErrorsItem(Part):
    title: str | None = None
    detail: str | None = None
    type: str | None = None
    resource_id: str | None = None


class SocialUsersAnswer(Answer):
    data: SocialUser
    includes: SocialIncludes | None = None
    errors: list[SocialUsersAnswerErrorsItem] | None = None


class SocialUsersIdTweetsAnswerMeta(Part):
    result_count: int
    newest_id: str | None = None
    oldest_id: str | None = None
    next_token: str | None = None


class SocialUsersIdTweetsAnswerErrorsItem(Part):
    title: str | None = None
    detail: str | None = None
    type: str | None = None
    resource_id: str | None = None


class SocialUsersIdTweetsAnswer(Answer):
    data: list[Tweet]
    includes: SocialIncludes | None = None
    meta: SocialUsersIdTweetsAnswerMeta
    errors: list[SocialUsersIdTweetsAnswerErrorsItem] | None = None


class SiteanalyticsKeywordsSuggestionsAnswerRecordsItem(Part):
    keyword: str | None = None
    leading_site: str | None = Field(default=None, alias="leadingSite")
    primary_intent: str | None = Field(default=None, alias="primaryIntent")
    window_volume: float | None = Field(default=None, alias="windowVolume")
    average_volume: float | None = Field(default=None, alias="averageVolume")
    monthly_volume: float | None = Field(default=None, alias="monthlyVolume")
    clicks: float | None = None
    cpc: float | None = None
    difficulty: float | None = None
    score: float | None = None


class SiteanalyticsKeywordsSuggestionsAnswer(Answer):
    records: list[SiteanalyticsKeywordsSuggestionsAnswerRecordsItem] | None = None
    total_records: int | None = Field(default=None, alias="totalRecords")


class SiteanalyticsWebsitesBacklinksAnswerRecordsItem(Part):
    source_url: str | None = Field(default=None, alias="SourceUrl")
    source_domain: str | None = Field(default=None, alias="SourceDomain")
    target_url: str | None = Field(default=None, alias="TargetUrl")
    anchor_text: str | None = Field(default=None, alias="AnchorText")
    status: str | None = Field(default=None, alias="Status")
    follow_type: str | None = Field(default=None, alias="FollowType")
    domain_score: float | None = Field(default=None, alias="DomainScore")


class SiteanalyticsWebsitesBacklinksAnswer(Answer):
    records: list[SiteanalyticsWebsitesBacklinksAnswerRecordsItem] | None = Field(default=None, alias="Records")
    total_records: int | None = Field(default=None, alias="TotalRecords")


class SiteanalyticsWebsitesKeywordsAnswerDataRecordsItem(Part):
    keyword: str | None = Field(default=None, alias="Keyword")
    primary_intent: str | None = Field(default=None, alias="PrimaryIntent")
    top_url: str | None = Field(default=None, alias="TopUrl")
    clicks: float | None = Field(default=None, alias="Clicks")
    share: float | None = Field(default=None, alias="Share")
    difficulty: float | None = Field(default=None, alias="Difficulty")
    kw_volume: float | None = Field(default=None, alias="KwVolume")
    kw_volume_average: float | None = Field(default=None, alias="KwVolumeAverage")
    cpc: float | None = Field(default=None, alias="Cpc")


class SiteanalyticsWebsitesKeywordsAnswerData(Answer):
    records: list[SiteanalyticsWebsitesKeywordsAnswerDataRecordsItem] | None = Field(default=None, alias="Records")
    keywords_count: int | None = Field(default=None, alias="KeywordsCount")


class SiteanalyticsWebsitesKeywordsAnswer(Answer):
    total_count: int | None = Field(default=None, alias="TotalCount")
    data: SiteanalyticsWebsitesKeywordsAnswerData | None = Field(default=None, alias="Data")


class SiteanalyticsKeywordsWebsitesAnswerDataItem(Part):
    domain: str | None = Field(default=None, alias="Domain")
    url: str | None = Field(default=None, alias="Url")
    favicon: str | None = Field(default=None, alias="Favicon")
    share: float | None = Field(default=None, alias="Share")
    position: float | None = Field(default=None, alias="Position")


class SiteanalyticsKeywordsWebsitesAnswer(Answer):
    data: list[SiteanalyticsKeywordsWebsitesAnswerDataItem] | None = Field(default=None, alias="Data")
    total_count: int | None = Field(default=None, alias="TotalCount")


class SiteanalyticsWebsitesTrafficSourcesAnswerDataItem(Part):
    domain: str | None = Field(default=None, alias="Domain")
    source_type: str | None = Field(default=None, alias="SourceType")
    favicon: str | None = Field(default=None, alias="Favicon")
    share: float | None = Field(default=None, alias="Share")
    visits: float | None = Field(default=None, alias="Visits")
    rank: float | None = Field(default=None, alias="Rank")


class SiteanalyticsWebsitesTrafficSourcesAnswer(Answer):
    data: list[SiteanalyticsWebsitesTrafficSourcesAnswerDataItem] | None = Field(default=None, alias="Data")
    total_count: int | None = Field(default=None, alias="TotalCount")


class SiteanalyticsWebsitesOutgoingTrafficAnswerRecordsItem(Part):
    domain: str | None = Field(default=None, alias="Domain")
    favicon: str | None = Field(default=None, alias="Favicon")
    share: float | None = Field(default=None, alias="Share")
    change: float | None = Field(default=None, alias="Change")
    rank: float | None = Field(default=None, alias="Rank")


class SiteanalyticsWebsitesOutgoingTrafficAnswer(Answer):
    records: list[SiteanalyticsWebsitesOutgoingTrafficAnswerRecordsItem] | None = Field(default=None, alias="Records")
    total_count: int | None = Field(default=None, alias="TotalCount")


class SiteanalyticsWebsitesIncomingReferralsAnswerRecordsItem(Part):
    domain: str | None = Field(default=None, alias="Domain")
    category: str | None = Field(default=None, alias="Category")
    favicon: str | None = Field(default=None, alias="Favicon")
    share: float | None = Field(default=None, alias="Share")
    total_share: float | None = Field(default=None, alias="TotalShare")
    total_visits: float | None = Field(default=None, alias="TotalVisits")
    change: float | None = Field(default=None, alias="Change")
    rank: float | None = Field(default=None, alias="Rank")


class SiteanalyticsWebsitesIncomingReferralsAnswer(Answer):
    records: list[SiteanalyticsWebsitesIncomingReferralsAnswerRecordsItem] | None = Field(default=None, alias="Records")
    total_count: int | None = Field(default=None, alias="TotalCount")


class SiteanalyticsWebsitesBrandedKeywordsAnswerDataValue(Part):
    branded: float | None = Field(default=None, alias="Branded")
    none_branded: float | None = Field(default=None, alias="NoneBranded")


class SiteanalyticsWebsitesBrandedKeywordsAnswer(Answer):
    data: dict[str, SiteanalyticsWebsitesBrandedKeywordsAnswerDataValue] | None = Field(default=None, alias="Data")


class SiteanalyticsWebsitesGeographyAnswerDataItem(Part):
    country: float | None = Field(default=None, alias="Country")
    share: float | None = Field(default=None, alias="Share")
    users_share: float | None = Field(default=None, alias="UsersShare")
    rank: float | None = Field(default=None, alias="Rank")
    change: float | None = Field(default=None, alias="Change")
    avg_visit_duration: float | None = Field(default=None, alias="AvgVisitDuration")
    page_per_visit: float | None = Field(default=None, alias="PagePerVisit")
    bounce_rate: float | None = Field(default=None, alias="BounceRate")


class SiteanalyticsWebsitesGeographyAnswer(Answer):
    data: list[SiteanalyticsWebsitesGeographyAnswerDataItem] | None = Field(default=None, alias="Data")
    total_count: int | None = Field(default=None, alias="TotalCount")


class SiteanalyticsWebsitesDevicesAnswer(Answer):
    data: dict[str, dict[str, float | None]] | None = Field(default=None, alias="Data")


class SiteanalyticsWebsitesSearchPerformanceAnswerDataItem(Part):
    search_term: str | None = Field(default=None, alias="SearchTerm")
    total_share: float | None = Field(default=None, alias="TotalShare")
    total_visits: float | None = Field(default=None, alias="TotalVisits")


class SiteanalyticsWebsitesSearchPerformanceAnswer(Answer):
    data: list[SiteanalyticsWebsitesSearchPerformanceAnswerDataItem] | None = Field(default=None, alias="Data")
    total_count: int | None = Field(default=None, alias="TotalCount")


class SiteanalyticsWebsitesSocialTrafficAnswerDataValueValue(Part):
    share: float | None = Field(default=None, alias="Share")


class SiteanalyticsWebsitesSocialTrafficAnswer(Answer):
    data: dict[str, dict[str, SiteanalyticsWebsitesSocialTrafficAnswerDataValueValue]] | None = Field(default=None, alias="Data")


class SiteanalyticsWebsitesEngagementAnswerDataItem(Part):
    domain: str | None = Field(default=None, alias="Domain")
    avg_month_visits: float | None = Field(default=None, alias="AvgMonthVisits")
    unique_users: float | None = Field(default=None, alias="UniqueUsers")
    bounce_rate: float | None = Field(default=None, alias="BounceRate")
    pages_per_visit: float | None = Field(default=None, alias="PagesPerVisit")
    avg_visit_duration: float | None = Field(default=None, alias="AvgVisitDuration")
    visits_per_user: float | None = Field(default=None, alias="VisitsPerUser")
    total_pages_views: float | None = Field(default=None, alias="TotalPagesViews")


class SiteanalyticsWebsitesEngagementAnswer(Answer):
    data: list[SiteanalyticsWebsitesEngagementAnswerDataItem] | None = Field(default=None, alias="Data")
    total_count: int | None = Field(default=None, alias="TotalCount")


class SiteanalyticsWebsitesVisitsAnswerDataValueTrendItem(Part):
    key: str | None = Field(default=None, alias="Key")
    value: float | None = Field(default=None, alias="Value")


class SiteanalyticsWebsitesVisitsAnswerDataValue(Part):
    total_visits: float | None = Field(default=None, alias="TotalVisits")
    change: float | None = Field(default=None, alias="Change")
    share_of_visits: float | None = Field(default=None, alias="ShareOfVisits")
    trend: list[SiteanalyticsWebsitesVisitsAnswerDataValueTrendItem] | None = Field(default=None, alias="Trend")


class SiteanalyticsWebsitesVisitsAnswer(Answer):
    data: dict[str, SiteanalyticsWebsitesVisitsAnswerDataValue] | None = Field(default=None, alias="Data")


class SiteanalyticsWebsitesVisitsTableAnswerDataItem(Part):
    domain: str | None = Field(default=None, alias="Domain")
    favicon: str | None = Field(default=None, alias="Favicon")
    total_visits: float | None = Field(default=None, alias="TotalVisits")


class SiteanalyticsWebsitesVisitsTableAnswer(Answer):
    data: list[SiteanalyticsWebsitesVisitsTableAnswerDataItem] | None = Field(default=None, alias="Data")
    total_count: int | None = Field(default=None, alias="TotalCount")


class SiteanalyticsWebsitesVisitsTrendAnswerDataValueValueItemItem(Part):
    key: str | None = Field(default=None, alias="Key")
    value: float | None = Field(default=None, alias="Value")


class SiteanalyticsWebsitesVisitsTrendAnswer(Answer):
    data: dict[str, dict[str, list[list[SiteanalyticsWebsitesVisitsTrendAnswerDataValueValueItemItem]]]] | None = Field(default=None, alias="Data")


class SiteanalyticsWebsitesRanksAnswerDataValueGlobalRankTrendItem(Part):
    key: str | None = Field(default=None, alias="Key")
    value: float | None = Field(default=None, alias="Value")


class SiteanalyticsWebsitesRanksAnswerDataValueGlobalRank(Part):
    category: str | None = Field(default=None, alias="Category")
    value: float | None = Field(default=None, alias="Value")
    country: float | None = Field(default=None, alias="Country")
    trend: list[SiteanalyticsWebsitesRanksAnswerDataValueGlobalRankTrendItem] | None = Field(default=None, alias="Trend")


class SiteanalyticsWebsitesRanksAnswerDataValueCountryRankTrendItem(Part):
    key: str | None = Field(default=None, alias="Key")
    value: float | None = Field(default=None, alias="Value")


class SiteanalyticsWebsitesRanksAnswerDataValueCountryRank(Part):
    category: str | None = Field(default=None, alias="Category")
    value: float | None = Field(default=None, alias="Value")
    country: float | None = Field(default=None, alias="Country")
    trend: list[SiteanalyticsWebsitesRanksAnswerDataValueCountryRankTrendItem] | None = Field(default=None, alias="Trend")


class SiteanalyticsWebsitesRanksAnswerDataValueCategoryRankTrendItem(Part):
    key: str | None = Field(default=None, alias="Key")
    value: float | None = Field(default=None, alias="Value")


class SiteanalyticsWebsitesRanksAnswerDataValueCategoryRank(Part):
    category: str | None = Field(default=None, alias="Category")
    value: float | None = Field(default=None, alias="Value")
    country: float | None = Field(default=None, alias="Country")
    trend: list[SiteanalyticsWebsitesRanksAnswerDataValueCategoryRankTrendItem] | None = Field(default=None, alias="Trend")


class SiteanalyticsWebsitesRanksAnswerDataValue(Part):
    global_rank: SiteanalyticsWebsitesRanksAnswerDataValueGlobalRank | None = Field(default=None, alias="GlobalRank")
    country_rank: SiteanalyticsWebsitesRanksAnswerDataValueCountryRank | None = Field(default=None, alias="CountryRank")
    category_rank: SiteanalyticsWebsitesRanksAnswerDataValueCategoryRank | None = Field(default=None, alias="CategoryRank")


class SiteanalyticsWebsitesRanksAnswer(Answer):
    data: dict[str, SiteanalyticsWebsitesRanksAnswerDataValue] | None = Field(default=None, alias="Data")


class SiteanalyticsWebsitesRanksCountryAnswerDataItem(Part):
    domain: str | None = Field(default=None, alias="Domain")
    category: str | None = Field(default=None, alias="Category")
    favicon: str | None = Field(default=None, alias="Favicon")
    rank: float | None = Field(default=None, alias="Rank")
    change: float | None = Field(default=None, alias="Change")


class SiteanalyticsWebsitesRanksCountryAnswer(Answer):
    data: list[SiteanalyticsWebsitesRanksCountryAnswerDataItem] | None = Field(default=None, alias="Data")
    total_count: int | None = Field(default=None, alias="TotalCount")


class SiteanalyticsWebsitesRanksGlobalAnswerDataItem(Part):
    domain: str | None = Field(default=None, alias="Domain")
    category: str | None = Field(default=None, alias="Category")
    favicon: str | None = Field(default=None, alias="Favicon")
    rank: float | None = Field(default=None, alias="Rank")
    change: float | None = Field(default=None, alias="Change")


class SiteanalyticsWebsitesRanksGlobalAnswer(Answer):
    data: list[SiteanalyticsWebsitesRanksGlobalAnswerDataItem] | None = Field(default=None, alias="Data")
    total_count: int | None = Field(default=None, alias="TotalCount")


class SiteanalyticsWebsitesRanksCategoryAnswerDataItem(Part):
    domain: str | None = Field(default=None, alias="Domain")
    category: str | None = Field(default=None, alias="Category")
    favicon: str | None = Field(default=None, alias="Favicon")
    rank: float | None = Field(default=None, alias="Rank")
    change: float | None = Field(default=None, alias="Change")


class SiteanalyticsWebsitesRanksCategoryAnswer(Answer):
    data: list[SiteanalyticsWebsitesRanksCategoryAnswerDataItem] | None = Field(default=None, alias="Data")
    total_count: int | None = Field(default=None, alias="TotalCount")


class SiteanalyticsWebsitesChannelsAnswer(Answer):
    data: dict[str, dict[str, dict[str, float | None]]] | None = Field(default=None, alias="Data")


class SiteanalyticsWebsitesSimilarSitesAnswerDataItem(Part):
    domain: str | None = Field(default=None, alias="Domain")
    category: str | None = Field(default=None, alias="Category")
    favicon: str | None = Field(default=None, alias="Favicon")
    affinity: float | None = Field(default=None, alias="Affinity")
    rank: float | None = Field(default=None, alias="Rank")


class SiteanalyticsWebsitesSimilarSitesAnswer(Answer):
    data: list[SiteanalyticsWebsitesSimilarSitesAnswerDataItem] | None = Field(default=None, alias="Data")
    total_count: int | None = Field(default=None, alias="TotalCount")


class SiteanalyticsWebsitesSimilarSitesSuggestionsAnswerItem(Part):
    domain: str | None = Field(default=None, alias="Domain")
    domain_without_sub: str | None = Field(default=None, alias="DomainWithoutSub")
    favicon: str | None = Field(default=None, alias="Favicon")
    rank: float | None = Field(default=None, alias="Rank")


class SiteanalyticsWebsitesHistoryVisitsAnswerDataValueValueItemItem(Part):
    key: str | None = Field(default=None, alias="Key")
    value: float | None = Field(default=None, alias="Value")


class SiteanalyticsWebsitesHistoryVisitsAnswer(Answer):
    data: dict[str, dict[str, list[list[SiteanalyticsWebsitesHistoryVisitsAnswerDataValueValueItemItem]]]] | None = Field(default=None, alias="Data")


class SiteanalyticsWebsitesHistoryBounceRateAnswerDataValueValueItemItem(Part):
    key: str | None = Field(default=None, alias="Key")
    value: float | None = Field(default=None, alias="Value")


class SiteanalyticsWebsitesHistoryBounceRateAnswer(Answer):
    data: dict[str, dict[str, list[list[SiteanalyticsWebsitesHistoryBounceRateAnswerDataValueValueItemItem]]]] | None = Field(default=None, alias="Data")


class SiteanalyticsWebsitesHistoryVisitDurationAnswerDataValueValueItemItem(Part):
    key: str | None = Field(default=None, alias="Key")
    value: float | None = Field(default=None, alias="Value")


class SiteanalyticsWebsitesHistoryVisitDurationAnswer(Answer):
    data: dict[str, dict[str, list[list[SiteanalyticsWebsitesHistoryVisitDurationAnswerDataValueValueItemItem]]]] | None = Field(default=None, alias="Data")


class SiteanalyticsWebsitesHistoryPagesPerVisitAnswerDataValueValueItemItem(Part):
    key: str | None = Field(default=None, alias="Key")
    value: float | None = Field(default=None, alias="Value")


class SiteanalyticsWebsitesHistoryPagesPerVisitAnswer(Answer):
    data: dict[str, dict[str, list[list[SiteanalyticsWebsitesHistoryPagesPerVisitAnswerDataValueValueItemItem]]]] | None = Field(default=None, alias="Data")


class TokenCount(Answer):
    input_tokens: int


class ChatParams(TypedDict, total=False):
    #: A chat-capable id from GET /v1/models.
    model: Required[str]
    #: The conversation so far.
    messages: Required[Sequence[Mapping[str, Any]]]
    #: Commonly 0 to 2; the model has the last word.
    temperature: float
    #: Commonly 0 to 1; some models reject it.
    top_p: float
    #: Commonly -2 to 2.
    frequency_penalty: float
    #: Commonly -2 to 2.
    presence_penalty: float
    #: Where to stop; depends on the model.
    stop: str | Sequence[str]
    #: How many answers. Some models give only 1.
    n: int
    #: Most tokens of output; may cover reasoning as well as text.
    max_tokens: int
    #: Alternative to max_tokens; a model may take only one of the two.
    max_completion_tokens: int
    stream_options: Mapping[str, Any]
    #: Functions that the model may call.
    tools: Sequence[Mapping[str, Any]]
    #: none, auto, required, or one function.
    tool_choice: str | Mapping[str, Any]
    #: Whether several tools may be called at once.
    parallel_tool_calls: bool
    #: The form of the answer.
    response_format: Mapping[str, Any]
    #: none, minimal, low, medium, high, xhigh or max; models take different ones.
    reasoning_effort: str
    #: {"type":"disabled"} turns hidden reasoning off, where the model allows it.
    thinking: Mapping[str, Any]
    #: For repeatable sampling, where the model has it.
    seed: int
    #: Your own name for the end user.
    user: str
    #: Models to ask in turn when one fails.
    models: Sequence[str]
    #: Where the call may go, as OpenRouter has it. Vendors are named as the catalog names them.
    provider: Mapping[str, Any]


class ResponsesParams(TypedDict, total=False):
    #: An id from GET /v1/models that offers the Responses protocol.
    model: Required[str]
    #: Text, or items of the conversation: messages, calls of functions and their outputs.
    input: Required[str | Sequence[Mapping[str, Any]]]
    #: What a system turn would say.
    instructions: str
    #: Most tokens of output, reasoning included.
    max_output_tokens: int
    #: Functions that the model may call.
    tools: Sequence[Mapping[str, Any]]
    #: none, auto, required, or one tool.
    tool_choice: str | Mapping[str, Any]
    #: Whether several tools may be called at once.
    parallel_tool_calls: bool
    #: Form of the answer: format and verbosity.
    text: Mapping[str, Any]
    #: effort and summary.
    reasoning: Mapping[str, Any]
    #: Commonly 0 to 2; the model has the last word.
    temperature: float
    #: Commonly 0 to 1; some models reject it.
    top_p: float
    #: true answers at once with a response that is `queued`; ask for it by its id until it has ended.
    background: bool
    #: Models to ask in turn when one fails.
    models: Sequence[str]
    #: Where the call may go, as OpenRouter has it. Vendors are named as the catalog names them.
    provider: Mapping[str, Any]


class MessagesParams(TypedDict, total=False):
    #: An id from GET /v1/models that offers the Messages protocol.
    model: Required[str]
    #: The conversation so far.
    messages: Required[Sequence[Mapping[str, Any]]]
    #: Instructions before the conversation.
    system: str | Sequence[Mapping[str, Any]]
    #: Functions that the model may call, each with a `name`, and tools of the vendor, with a `type`.
    tools: Sequence[Mapping[str, Any]]
    #: auto, any, none, or one tool.
    tool_choice: Mapping[str, Any]
    #: enabled with a budget, adaptive, or disabled.
    thinking: Mapping[str, Any]
    #: Most tokens of output.
    max_tokens: Required[int]
    #: Where to stop.
    stop_sequences: Sequence[str]
    #: Commonly 0 to 2; the model has the last word.
    temperature: float
    #: Commonly 0 to 1; some models reject it.
    top_p: float
    #: user_id: your own name for the end user.
    metadata: Mapping[str, Any]
    #: Models to ask in turn when one fails.
    models: Sequence[str]
    #: Where the call may go, as OpenRouter has it. Vendors are named as the catalog names them.
    provider: Mapping[str, Any]


class EmbeddingsParams(TypedDict, total=False):
    #: An embedding model from GET /v1/models, such as alpha-embed-3-small.
    model: Required[str]
    #: What to embed: one input, or up to 2048 of them. None may be empty.
    input: Required[str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]]]
    #: How many numbers a vector has, where the model can shorten it.
    dimensions: int
    #: base64: the vector as little-endian 32-bit floats.
    encoding_format: Literal["float", "base64"]
    #: Your own name for the end user.
    user: str
    #: Where the call may go, as OpenRouter has it. Vendors are named as the catalog names them.
    provider: Mapping[str, Any]


class ImagesParams(TypedDict, total=False):
    #: An image model from GET /v1/models, such as alpha-image-2.
    model: str
    #: Subject, scene, composition, style, material, lighting, colors, and whether text appears.
    prompt: Required[str]
    #: Only 1.
    n: int
    #: A ratio, or pixels. Pixels win over `resolution`.
    size: Literal["auto", "1:1", "3:2", "2:3", "4:3", "3:4", "16:9", "9:16", "21:9", "9:21", "1024x1024", "2048x2048", "1536x1024", "2048x1360", "1024x1536", "1360x2048", "1024x768", "2048x1536", "768x1024", "1536x2048", "1536x864", "2048x1152", "3840x2160", "864x1536", "1152x2048", "2160x3840", "2016x864", "2688x1152", "3840x1648", "864x2016", "1152x2688", "1648x3840"]
    #: How much work goes into it; the price follows.
    quality: Literal["low", "medium", "high", "auto"]
    #: The tier that goes with a ratio. 4k only with 16:9, 9:16, 21:9 and 9:21.
    resolution: Literal["1k", "2k", "4k"]
    #: Reference images: public addresses or data URIs; each up to 20 MB, together up to 256 MB.
    image_urls: Sequence[Reference]
    #: The kind of file.
    output_format: Literal["png", "jpeg", "webp"]
    #: b64_json: the answer also contains the picture itself.
    response_format: Literal["url", "b64_json"]
    #: Where the call may go, as OpenRouter has it. Vendors are named as the catalog names them.
    provider: Mapping[str, Any]


class VideoParams(TypedDict, total=False):
    #: A video model from GET /v1/models: videogen-2.0 or videogen-2.5.
    model: str
    #: What the video shows: at most 32,000 characters, together with the texts of content.
    prompt: str
    #: Address or data URI of the first frame. Also: image, image_url, first_frame_url.
    first_frame: Reference
    #: Address or data URI of the last frame. Needs a first one. Also: last_frame_url, end_image.
    last_frame: Reference
    #: Reference images: addresses or data URIs. Also: images, reference_images.
    image_urls: Sequence[Reference]
    #: Addresses of reference videos. Also: videos, reference_videos.
    video_urls: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
    #: Addresses of reference sounds, beside at least one image or video. Also: audios, reference_audios.
    audio_urls: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
    #: The vendor's own parts, instead of the fields above: text, image_url, video_url, audio_url.
    content: Sequence[Mapping[str, Any]]
    #: Also: aspect_ratio.
    ratio: Literal["16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive"]
    #: Seconds: 4 to 15 for videogen-2.0, 4 to 30 for videogen-2.5. Also: seconds, duration_seconds.
    duration: int | str
    #: 480p, 720p or 1080p, which is only for videogen-2.0.
    resolution: str
    #: For repeatable results; -1 for any.
    seed: int
    #: Whether the video has sound. Also: with_audio, audio.
    generate_audio: bool
    #: Whether the vendor marks the video.
    watermark: bool
    #: Whether the last frame is stored as a picture as well.
    return_last_frame: bool
    #: A public address to which a signed notice is sent when the job has ended.
    callback_url: str


class CountTokensParams(TypedDict, total=False):
    #: An id from GET /v1/models that offers the Messages protocol.
    model: Required[str]
    #: The conversation so far.
    messages: Required[Sequence[Mapping[str, Any]]]
    #: Instructions before the conversation.
    system: str | Sequence[Mapping[str, Any]]
    #: Functions that the model may call, each with a `name`, and tools of the vendor, with a `type`.
    tools: Sequence[Mapping[str, Any]]
    #: auto, any, none, or one tool.
    tool_choice: Mapping[str, Any]
    #: enabled with a budget, adaptive, or disabled.
    thinking: Mapping[str, Any]


class SocialUsersParams(TypedDict, total=False):
    #: Fields of users besides id, name and username.
    user_fields: Sequence[Literal["affiliation", "confirmed_email", "connection_status", "created_at", "description", "entities", "id", "is_identity_verified", "location", "most_recent_tweet_id", "name", "parody", "pinned_tweet_id", "profile_banner_url", "profile_image_url", "protected", "public_metrics", "receives_your_dm", "subscribes_to_you", "subscription", "subscription_type", "url", "username", "verified", "verified_followers_count", "verified_type", "withheld"]]
    #: Objects to add under `includes`.
    expansions: Sequence[Literal["affiliation", "most_recent_tweet_id", "pinned_tweet_id"]]
    #: Fields of tweets besides id and text.
    tweet_fields: Sequence[Literal["article", "attachments", "author_id", "card_uri", "community_id", "context_annotations", "conversation_id", "created_at", "display_text_range", "edit_controls", "edit_history_tweet_ids", "entities", "geo", "id", "in_reply_to_user_id", "lang", "media_metadata", "non_public_metrics", "note_tweet", "organic_metrics", "possibly_sensitive", "promoted_metrics", "public_metrics", "referenced_tweets", "reply_settings", "scopes", "source", "text", "withheld"]]


class SocialUsersIdParams(TypedDict, total=False):
    #: Fields of users besides id, name and username.
    user_fields: Sequence[Literal["affiliation", "confirmed_email", "connection_status", "created_at", "description", "entities", "id", "is_identity_verified", "location", "most_recent_tweet_id", "name", "parody", "pinned_tweet_id", "profile_banner_url", "profile_image_url", "protected", "public_metrics", "receives_your_dm", "subscribes_to_you", "subscription", "subscription_type", "url", "username", "verified", "verified_followers_count", "verified_type", "withheld"]]
    #: Objects to add under `includes`.
    expansions: Sequence[Literal["affiliation", "most_recent_tweet_id", "pinned_tweet_id"]]
    #: Fields of tweets besides id and text.
    tweet_fields: Sequence[Literal["article", "attachments", "author_id", "card_uri", "community_id", "context_annotations", "conversation_id", "created_at", "display_text_range", "edit_controls", "edit_history_tweet_ids", "entities", "geo", "id", "in_reply_to_user_id", "lang", "media_metadata", "non_public_metrics", "note_tweet", "organic_metrics", "possibly_sensitive", "promoted_metrics", "public_metrics", "referenced_tweets", "reply_settings", "scopes", "source", "text", "withheld"]]


class SocialUsersIdTweetsParams(TypedDict, total=False):
    #: Most tweets on a page. Takes an integer from 1 to 100, in plain digits. Default: 10.
    max_results: int
    #: `meta.next_token` of the page before. Takes text of 1 to 2048 UTF-8 bytes.
    pagination_token: str
    #: Kinds of tweets to leave out.
    exclude: Sequence[Literal["replies", "retweets"]]
    #: Objects to add under `includes`.
    expansions: Sequence[Literal["article.cover_media", "article.media_entities", "attachments.media_keys", "attachments.media_source_tweet", "attachments.poll_ids", "author_id", "edit_history_tweet_ids", "entities.mentions.username", "entities.note.mentions.username", "geo.place_id", "in_reply_to_user_id", "referenced_tweets.id", "referenced_tweets.id.author_id"]]
    #: Fields of tweets besides id and text.
    tweet_fields: Sequence[Literal["article", "attachments", "author_id", "card_uri", "community_id", "context_annotations", "conversation_id", "created_at", "display_text_range", "edit_controls", "edit_history_tweet_ids", "entities", "geo", "id", "in_reply_to_user_id", "lang", "media_metadata", "non_public_metrics", "note_tweet", "organic_metrics", "possibly_sensitive", "promoted_metrics", "public_metrics", "referenced_tweets", "reply_settings", "scopes", "source", "text", "withheld"]]
    #: Fields of the users under `includes`.
    user_fields: Sequence[Literal["affiliation", "confirmed_email", "connection_status", "created_at", "description", "entities", "id", "is_identity_verified", "location", "most_recent_tweet_id", "name", "parody", "pinned_tweet_id", "profile_banner_url", "profile_image_url", "protected", "public_metrics", "receives_your_dm", "subscribes_to_you", "subscription", "subscription_type", "url", "username", "verified", "verified_followers_count", "verified_type", "withheld"]]
    #: Fields of media under `includes`.
    media_fields: Sequence[Literal["alt_text", "duration_ms", "height", "media_key", "non_public_metrics", "organic_metrics", "preview_image_url", "promoted_metrics", "public_metrics", "type", "url", "variants", "width"]]
    #: Fields of places under `includes`.
    place_fields: Sequence[Literal["contained_within", "country", "country_code", "full_name", "geo", "id", "name", "place_type"]]
    #: Fields of polls under `includes`.
    poll_fields: Sequence[Literal["duration_minutes", "end_datetime", "id", "options", "voting_status"]]
    #: Only tweets of this moment or later. Takes a UTC time as YYYY-MM-DDTHH:mm:ssZ.
    start_time: str | datetime
    #: Only tweets before this moment. Takes a UTC time as YYYY-MM-DDTHH:mm:ssZ.
    end_time: str | datetime
    #: Only tweets newer than this one. Takes a tweet id of 1 to 19 digits.
    since_id: str
    #: Only tweets older than this one. Takes a tweet id of 1 to 19 digits.
    until_id: str


class JobsListParams(TypedDict, total=False):
    #: How many. Takes an integer from 1 to 100, in plain digits. Default: 20.
    limit: int
    #: Only older jobs than this one. Takes the id of a job.
    before: str
    #: Only jobs in this status.
    status: Literal["PENDING", "CONNECT", "PROCESSING", "COMPLETED", "FAILED", "CANCELLED"]
