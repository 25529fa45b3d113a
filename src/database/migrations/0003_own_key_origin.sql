-- Where the vendor was when an account stored its key: it goes nowhere else. Keys from before have none, and are asked for again.
alter table own_key add column origin text;
