timestamptz '2024-07-01 10:00'
timestamptz '2024-01-01 10:00'
timestamptz '2024-07-01 10:00+00'
timestamptz '2024-03-31 02:30'
timestamptz '2024-10-27 02:30'
timestamptz '1850-01-01 10:00'
timestamp '2024-07-01 10:00'::timestamptz
date '2024-07-01'::timestamptz
timestamptz '2024-07-01 23:30+00'::date
timestamptz '2024-07-01 23:30+00'::timestamp
timestamptz '2024-07-01 23:30+00'::time
timestamptz '2024-03-30 12:00' + interval '1 day'
timestamptz '2024-03-30 12:00' + interval '24 hours'
timestamptz '2024-10-26 12:00' + interval '1 day 1 hour'
timestamptz '2024-04-30 12:00' - interval '1 month 1 day'
timestamptz '2024-04-01' - timestamptz '2024-03-01'
timestamptz '2024-07-01 10:00' - timestamp '2024-07-01 08:00'
timestamptz '2024-07-01 10:00' = timestamp '2024-07-01 10:00'
timestamptz '2024-07-01 10:00+00' > date '2024-07-01'
timestamptz '2024-07-01 10:00' in ('2024-07-01 10:00', '2024-07-02')
extract(hour from timestamptz '2024-07-01 10:00+00')
extract(epoch from timestamptz '2024-07-01 10:00+00')
extract(timezone from timestamptz '2024-07-01 10:00+00')
extract(timezone_hour from timestamptz '2024-07-01 10:00+00')
extract(timezone_minute from timestamptz '2024-07-01 10:00+00')
date_part('hour', timestamptz '2024-07-01 10:00+00')
date_part('timezone', timestamptz '2024-07-01 10:00+00')
date_trunc('day', timestamptz '2024-07-01 23:30+00')
date_trunc('hour', timestamptz '2024-10-27 02:30+02')
date_trunc('hour', timestamptz '2024-10-27 02:30+01')
date_trunc('month', date '2024-07-15')
date_trunc('week', timestamptz '2024-04-03 10:00')
to_char(timestamptz '2024-07-01 10:00+00', 'YYYY-MM-DD HH24:MI:SS TZ tz OF TZH:TZM')
to_timestamp(1700000000)
to_timestamp('2024-01-02 12:05', 'YYYY-MM-DD HH24:MI')
to_timestamp('2024-07-02 12:05', 'YYYY-MM-DD HH24:MI')
to_timestamp('2024-03-31 02:30', 'YYYY-MM-DD HH24:MI')
to_timestamp('2024-07-02', 'YYYY-MM-DD')::date
extract(epoch from to_timestamp('2024-07-02', 'YYYY-MM-DD'))
age(timestamptz '2024-07-01 00:30', timestamptz '2024-01-01 00:30')
timestamptz '2024-07-01 10:00' at time zone 'UTC'
timestamp '2024-07-01 10:00' at time zone 'UTC'
greatest(timestamptz '2024-07-01 10:00', timestamp '2024-07-01 11:00', date '2024-07-01')
timestamptz '2024-07-01 10:00' || ''
concat(timestamptz '2024-07-01 10:00', 1)
timestamptz 'epoch'
format('%s', timestamptz '2024-07-01 10:00+00')
(date '2024-03-31', interval '36 hours') overlaps (timestamptz '2024-04-01 10:30+00', timestamptz '2024-04-01 11:30+00')
(timestamp '2024-03-31 00:00', timestamp '2024-04-01 00:00') overlaps (timestamptz '2024-03-31 22:00+00', timestamptz '2024-03-31 23:30+00')
to_char(date '2024-07-01', 'TZ OF')
to_char(date '2024-07-01', 'HH24')
timestamptz '2024-07-01 allballs'
timestamptz '2024-07-01+02'
timestamptz '2024-07-01'
