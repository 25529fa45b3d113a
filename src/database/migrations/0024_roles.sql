-- Roles as data (identity/roles.ts has the table of what each may do; the names are checked there).
alter table person add column operator_role text;
update person set operator_role = 'operator' where operator;
alter table person drop column operator;
create index person_operator on person (operator_role) where operator_role is not null;

alter table membership drop constraint membership_role_check;
alter table invite drop constraint invite_role_check, drop constraint invite_check;
update invite set role = 'operator' where kind = 'operator';
alter table invite add check ((kind = 'member') = (account_id is not null) and (kind in ('member', 'operator')) = (role is not null));
