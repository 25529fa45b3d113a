-- A team whose members are those of a group of the company's directory (SCIM), by the group's name.
alter table team add column scim_group text;

-- Who is in a team. Rows of team_member count until the directory has sent the group, and of a team without one.
create view team_person as
  select account_id, team_id, person_id from team_member
  union
  select t.account_id, t.id, n.person_id from team t
    join scim_group g on g.scope = t.account_id and lower(g.display_name) = lower(t.scim_group)
    join scim_group_member n on n.scope = g.scope and n.group_id = g.id
    join membership s on s.account_id = t.account_id and s.person_id = n.person_id;
