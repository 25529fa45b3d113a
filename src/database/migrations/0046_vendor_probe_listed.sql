-- The address at which the vendor has answered probes: only there does an answer that is no list count against it.
alter table vendor_probe add column listed_url text;
