-- What an analyst asks of a table of events: run by nam and by DuckDB in turn (bench/analyst.py). The first statement
-- makes the table; `%s` stands for the number of rows. A query follows its name. Its last column, an integer, must be
-- the same on both sides.

-- events
create table events as
select i as event_id,
       timestamp '2024-01-01 00:00:00' + interval '1 second' * (i * 7 % 15552000) as ts,
       cast(i * 7919 % 30000 as int) as user_id,
       case i * 31 % 5 when 0 then 'view' when 1 then 'click' when 2 then 'cart' when 3 then 'buy' else 'leave' end
         as event_type,
       cast(i * 104729 % 100000 as decimal(10, 2)) / 100 as price,
       'country ' || cast(i * 613 % 20 as varchar(8)) as country
from generate_series(1, %s) as g(i);

-- page by time
select ts, event_type, event_id from events order by ts desc, event_id limit 3 offset 10;

-- latest of each user
select user_id, max(event_id) from (
  select distinct on (user_id) user_id, event_id from events order by user_id, ts desc, event_id) as latest
group by user_id order by user_id limit 100;

-- top 3 of each country
select country, event_id from (
  select country, event_id, row_number() over (partition by country order by price desc, event_id) as place
  from events) as ranked
where place <= 3 order by country, event_id;

-- sessions
select count(*), sum(first) from (
  select case when lag(ts) over (partition by user_id order by ts, event_id) > ts - interval '30 minutes'
              then 0 else 1 end as first
  from events) as marked;

-- running total
select user_id, count(*) from (
  select user_id, sum(price) over (partition by user_id order by ts, event_id) as spent from events) as totals
where spent > 40000 group by user_id order by 2 desc, user_id limit 10;

-- join with two rows
select kind, count(*) from events, (values ('buy', 'sale'), ('cart', 'hope')) as named(event_type, kind)
where events.event_type = named.event_type group by kind order by kind;

-- join with a series
select s.n, count(*) from events, generate_series(1, 1000, 10) as s(n) where events.user_id = s.n
group by s.n order by s.n limit 5;

-- join by a range
select named.label, count(*) from events, (values (0, 10, 'low'), (990, 1000, 'high')) as named(least, most, label)
where events.price >= named.least and events.price < named.most group by named.label order by named.label;

-- by day and type
select cast(ts as date) as day, event_type, count(distinct user_id) from events group by 1, 2 order by 1, 2 limit 20;

-- funnel
select count(*) from (
  select user_id from events where event_type = 'view'
  intersect select user_id from events where event_type = 'buy'
  except select user_id from events where event_type = 'leave' and price > 995) as buyers;
