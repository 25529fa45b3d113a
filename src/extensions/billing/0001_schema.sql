-- The last number that was given out, by the issuer's series and year. The row is locked until the transaction ends, so
-- that a number is never skipped.
create table invoice_counter (
  -- That invoices customers of its own. Empty: the gateway invoices its accounts.
  account_id text collate "C" not null default '',
  series text not null,
  year integer not null,
  last integer not null,
  primary key (account_id, series, year)
);

create table invoice (
  account_id text collate "C" not null,
  id text collate "C" not null,
  number text not null,
  series text not null,
  year integer not null,
  sequence integer not null,
  -- payment, month or credit_note
  kind text not null,
  -- Of an invoice for a payment, and of the credit notes for its refunds.
  payment_id text,
  -- Of an invoice for a month: its first day, and the credits that it charges for.
  month date,
  credits bigint,
  -- Of a credit note: the invoice that it corrects.
  corrects text collate "C",
  currency text not null,
  -- In the currency's smallest unit, both without a sign.
  gross_minor bigint not null,
  tax_minor bigint not null,
  -- For the list: who was invoiced, by the name of then.
  customer text not null,
  issued_at timestamptz not null,
  -- Everything that stands on it.
  document jsonb not null,
  -- Of a customer of the account, which issued it.
  purse_id text collate "C",
  primary key (account_id, id)
);
create index invoice_id on invoice (id);
create unique index invoice_month on invoice (account_id, month) where kind = 'month';
create unique index invoice_number on invoice ((case when purse_id is null then '' else account_id end), series, year, sequence);
create unique index invoice_payment on invoice (account_id, payment_id) where kind = 'payment';

-- Made once from the document, and never again.
create table invoice_file (
  account_id text collate "C" not null,
  invoice_id text collate "C" not null,
  pdf bytea not null,
  sha256 bytea not null,
  primary key (account_id, invoice_id)
);
