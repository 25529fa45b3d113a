-- What vendors took for answers that no caller pays: copies of calls, calls that were broken off, checks by moderation models. By the day (UTC): reports/unbilled.ts. Kept, as margins are.
create table unbilled_day (
  day date not null,
  kind text collate "C" not null,
  vendor text collate "C" not null,
  product text collate "C" not null,
  -- The product by the vendor's name of it.
  model text collate "C" not null,
  -- Empty: the vendor has one.
  credential text collate "C" not null,
  calls bigint not null check (calls > 0),
  input_tokens bigint not null check (input_tokens >= 0),
  output_tokens bigint not null check (output_tokens >= 0),
  -- Null: it is known of none of them.
  cost bigint check (cost >= 0),
  primary key (day, kind, vendor, product, model, credential)
);
