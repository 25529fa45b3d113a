// Top-ups of purses, against the movements under their ids: what was paid for was put in once, and for money that went
// back as much was taken as was there.
import { sql } from '../../database/database.ts'
import type { AccountRule } from '../../extension.ts'

export const verifyTopUps: AccountRule = async (tx, account) => {
  const wrong = await tx.query<{ id: string; problem: string }>(WRONG, [account])
  const strays = await tx.query<{ id: string; purse: string }>(STRAYS, [account])
  return [
    ...wrong.map(({ id, problem }) => `Account ${account}: top-up ${id} ${problem}.`),
    ...strays.map(({ id, purse }) => `Account ${account}: purse ${purse} has ${id} of a top-up that does not exist.`),
  ]
}

// What went back stands under the id of the top-up, a hyphen and an id of its own. Movements of before the oldest one
// that is kept say nothing.
const WRONG = sql('verify_topups')`with topup as (
     select t.*, p.base_hash, case when t.dispute in ('open', 'lost') then t.disputed_minor else 0 end as disputed from purse_topup t
       join purse p on p.account_id = t.account_id and p.id = t.purse_id where t.account_id = $1
   ), known as (
     select t.*, least(t.amount_minor, t.refunded_minor + t.disputed)::numeric as gone, g.given, coalesce(b.back, 0) as back,
       g.given is not null or t.base_hash is null or coalesce(t.paid_at > (select min(m.moved_at) from purse_movement m where m.account_id = $1 and m.purse_id = t.purse_id), false) as kept
     from topup t
       left join lateral (select sum(case m.kind when 'topup' then m.amount else 0 end) as given from purse_movement m
         where m.account_id = $1 and m.purse_id = t.purse_id and m.reference = t.id) g on true
       left join lateral (select sum(case m.kind when 'takeback' then m.amount else -m.amount end) as back from purse_movement m
         where m.account_id = $1 and m.purse_id = t.purse_id and m.reference > t.id || '-' and m.reference < t.id || '.') b on true
   )
   select k.id, x.problem from known k cross join lateral (values
     (case when granted then state <> case when disputed > 0 then 'disputed' when refunded_minor = amount_minor then 'refunded' else 'paid' end
        else state in ('paid', 'disputed') end, 'is ' || state || ', but its money says otherwise'),
     (granted and amount_minor <> price_minor, 'brought credits for another amount than was asked for'),
     (refunded_minor < 0 or refunded_minor > amount_minor, 'says that more was refunded than was paid'),
     (granted and kept and given is distinct from credits,
       'put ' || coalesce(given, 0) || ' micro-credits into ' || purse_id || ', but stands for ' || credits),
     (not granted and given is not null, 'put credits into ' || purse_id || ', and is ' || state),
     (taken + lost <> case when not granted then 0 when gone = amount_minor then credits else trunc(credits * gone / amount_minor) end,
       'took back ' || taken || ' and lost ' || lost || ' micro-credits, but its money that went back says otherwise'),
     (kept and back <> taken, 'took back ' || taken || ' micro-credits, but ' || back || ' by its movements')
   ) x(wrong, problem) where x.wrong order by k.id limit 1000`
const STRAYS = sql('verify_topup_strays')`
  select m.id, m.purse_id as purse from purse_movement m where m.account_id = $1 and m.reference >= 'top_' and m.reference < 'top\`'
     and not exists (select 1 from purse_topup t where t.account_id = $1 and t.id = split_part(m.reference, '-', 1) and t.purse_id = m.purse_id) limit 100`
