-- From which network address a program was registered: each has a share of the registrations of an hour.
alter table oauth_object add column origin text collate "C";
