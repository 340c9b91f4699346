# Casts
'12'::integer
' 12 '::smallint
'12.5'::numeric(5,1)
'abc'::integer
'12a'::bigint
''::integer
'99999'::smallint
99999::smallint
'3000000000'::integer
2147483648::integer
9223372036854775807::bigint
'9223372036854775808'::bigint
1.5::integer
2.5::integer
(-2.5)::integer
2.5::double precision::integer
3.5::double precision::integer
(-2.5)::double precision::integer
1e10::double precision::integer
'NaN'::double precision::integer
1e20::double precision::bigint
1234.5::numeric(5,1)
12345.6::numeric(5,1)
0.05::numeric(3,1)
123::numeric(4,2)
true::text
false::text
true::integer
false::integer
true::bigint
1::boolean
0::boolean
2::integer::boolean
'yes'::boolean
'of'::boolean
'o'::boolean
'maybe'::boolean
' TRUE '::boolean
'1.5'::double precision
'1e3'::double precision
'1e400'::double precision
'1e-400'::double precision
'-inf'::double precision
'Infinity'::double precision
'nan'::double precision
'x'::double precision
''::double precision
'1.5x'::double precision
'0x10'::double precision
'1e40'::real
'1e-60'::real
'3.4e38'::real
1e40::double precision::real
1e-50::double precision::real
0.1::real
0.1::real::double precision
0.1::double precision
1e15::double precision
1e14::double precision
123456789012345678::double precision
0.0001::double precision
0.00001::double precision
1e-7::double precision
-0.0::double precision
'-0'::double precision
1::double precision / 3
1::real / 3
100000::real
1000000::real
123456.7::real
1e6::real
'2020-02-29'::date
'2021-02-29'::date
'2020-13-01'::date
'20200131'::date
'2020/1/5'::date
'2020-1-5'::date
'abc'::date
''::date
'2020-01-31 10:00:00'::date
'2020-01-31 10:00:00'::timestamp
'2020-01-31T10:00:00.123456'::timestamp
'2020-01-31 10:00:00.1234567'::timestamp
'2020-01-31 24:00:00'::timestamp
'2020-01-31 25:00:00'::timestamp
'2020-01-31 10:60:00'::timestamp
'2020-01-31 10:00:60'::timestamp
'2020-01-31 1:2:3'::timestamp
'2020-01-31'::timestamp
' 2020-01-31 '::timestamp
'2020-01-31x'::timestamp
'2020-01-31 10:00:00'::timestamp::date
'2020-01-31'::date::timestamp
'2020-01-31'::date::text
'2020-01-31 10:00:00.5'::timestamp::text
1.50::text
'abc'::varchar(2)
'abc'::char(2)
'ab  '::char(6) || 'x'
'ab  '::varchar(3) || 'x'
length('ab  '::char(6))
octet_length('ab  '::char(6))
12345::varchar(3)
concat('ab'::char(4), 'x')
'a'::char(3) = 'a  '
1::date
'2020-01-01'::date::integer
true::double precision
1.5::boolean
null::integer
null::text || 'x'
# Intervals
'1 year 2 months'::interval
'1 day'::interval
'1.5 days'::interval
'1.5 hours'::interval
'-1 day 2 hours'::interval
'1 year -1 month'::interval
'3 days ago'::interval
'2 weeks'::interval
'1 decade'::interval
'1 century'::interval
'1 mon 30 days'::interval
'04:05:06.789'::interval
'-04:05:06'::interval
'04:05'::interval
'1 04:05:06'::interval
'1 day 04:05:06'::interval
'P1Y2M3DT4H5M6S'::interval
'PT36H'::interval
'P2W'::interval
'90 seconds'::interval
'1.5 months'::interval
'0.5 years'::interval
'1.1 years'::interval
'100 milliseconds'::interval
'5 us'::interval
'@ 1 minute'::interval
'1y 2mon'::interval
'foo'::interval
''::interval
'1 foo'::interval
'1 year 2'::interval
'3000000000 days'::interval
'200000000 years'::interval
interval '3' month
interval '3' year
interval '1 day 2:03:04' day
interval '5' hour
interval '90' second
interval '1 year 5 months' year
'1 day'::interval + '1 hour'::interval
'1 month'::interval - '1 day'::interval
- '1 day 2 hours'::interval
'1 day'::interval * 2
2 * '1 day'::interval
'1 day'::interval * 1.5
'1 month'::interval * 0.5
'1 month'::interval / 3
'1 day'::interval / 0
'1 year'::interval * 1.25
'1 month 3 days 04:00'::interval * -2.5
'30 days'::interval = '1 month'::interval
'24 hours'::interval = '1 day'::interval
'31 days'::interval > '1 month'::interval
'1 day'::interval < '23 hours'::interval
'178000000 years'::interval * 20
extract(epoch from '1 day'::interval)
extract(epoch from '1 year 1 month'::interval)
extract(year from '1 year 14 months'::interval)
extract(month from '1 year 14 months'::interval)
extract(day from '40 days 25 hours'::interval)
extract(hour from '40 days 25 hours'::interval)
extract(minute from '-90 seconds'::interval)
extract(second from '-90.5 seconds'::interval)
extract(quarter from '7 months'::interval)
extract(decade from '35 years'::interval)
extract(century from '350 years'::interval)
extract(week from '30 days'::interval)
extract(dow from '30 days'::interval)
extract(foo from '30 days'::interval)
date_trunc('hour', '1 day 04:05:06'::interval)
date_trunc('month', '1 year 2 months 3 days'::interval)
date_trunc('quarter', '1 year 8 months 3 days'::interval)
date_trunc('year', '1 year 8 months 3 days'::interval)
date_trunc('decade', '15 years'::interval)
date_trunc('week', '15 days'::interval)
# Timestamps
date '1994-01-01' + interval '1 month'
date '1994-01-31' + interval '1 month'
date '1996-02-29' + interval '1 year'
date '1994-01-01' - interval '1 day'
date '1994-01-01' + 5
5 + date '1994-01-01'
date '1994-03-01' - date '1994-02-01'
timestamp '1994-01-01 10:00' + interval '90 minutes'
interval '90 minutes' + timestamp '1994-01-01 10:00'
timestamp '1994-01-02' - timestamp '1994-01-01 01:02:03'
timestamp '1994-01-01' - timestamp '1994-01-02 01:02:03'
date '1994-01-05' - timestamp '1994-01-02 01:02:03'
timestamp '2020-03-31' - interval '1 month'
timestamp '2020-03-31 12:00' - interval '1 month 1 day 1 hour'
date '1994-01-01' = timestamp '1994-01-01'
date '1994-01-01' < timestamp '1994-01-01 00:00:01'
age(timestamp '2020-03-15', timestamp '2019-01-20')
age(timestamp '2019-01-20', timestamp '2020-03-15')
age(timestamp '2020-03-31', timestamp '2020-02-29 12:00')
age(date '2001-04-10', date '1957-06-13')
age(timestamp '2020-03-01', timestamp '2020-01-31')
extract(year from date '2020-02-29')
extract(month from date '2020-02-29')
extract(day from date '2020-02-29')
extract(dow from date '2020-02-29')
extract(isodow from date '2020-03-01')
extract(doy from date '2020-12-31')
extract(week from date '2021-01-03')
extract(week from date '2020-12-31')
extract(isoyear from date '2021-01-03')
extract(quarter from date '2020-12-31')
extract(decade from date '2019-12-31')
extract(century from date '2000-12-31')
extract(century from date '2001-01-01')
extract(millennium from date '2001-01-01')
extract(epoch from date '2020-01-01')
extract(epoch from timestamp '2020-01-01 00:00:00.5')
extract(hour from timestamp '2020-01-01 13:14:15.678')
extract(minute from timestamp '2020-01-01 13:14:15.678')
extract(second from timestamp '2020-01-01 13:14:15.678')
extract(milliseconds from timestamp '2020-01-01 13:14:15.678')
extract(microseconds from timestamp '2020-01-01 13:14:15.678')
extract(hour from date '2020-01-01')
extract(foo from date '2020-01-01')
extract(timezone from timestamp '2020-01-01')
date_part('year', date '2020-02-29')
date_part('hour', date '2020-02-29')
date_part('second', timestamp '2020-01-01 13:14:15.678')
date_part('epoch', timestamp '2020-01-01 13:14:15.678')
date_part('DOW', timestamp '2020-01-01 13:14:15.678')
date_part('foo', timestamp '2020-01-01 13:14:15.678')
date_trunc('year', timestamp '2020-05-17 13:14:15.678')
date_trunc('quarter', timestamp '2020-05-17 13:14:15.678')
date_trunc('month', '2020-05-17')
date_part('month', '2020-05-17')
to_char('1', '9')
abs('-3')
age('2020-05-17', '2020-05-16')
date_trunc('month', timestamp '2020-05-17 13:14:15.678')
date_trunc('week', timestamp '2020-05-17 13:14:15.678')
date_trunc('day', timestamp '2020-05-17 13:14:15.678')
date_trunc('hour', timestamp '2020-05-17 13:14:15.678')
date_trunc('minute', timestamp '2020-05-17 13:14:15.678')
date_trunc('second', timestamp '2020-05-17 13:14:15.678')
date_trunc('milliseconds', timestamp '2020-05-17 13:14:15.678912')
date_trunc('decade', timestamp '2019-05-17 13:14:15.678')
date_trunc('century', timestamp '2000-05-17 13:14:15.678')
date_trunc('millennium', timestamp '2001-05-17 13:14:15.678')
date_trunc('foo', timestamp '2001-05-17 13:14:15.678')
date_trunc('dow', timestamp '2001-05-17 13:14:15.678')
make_date(2020, 2, 29)
make_date(2021, 2, 29)
make_date(2020, 13, 1)
# Times
'10:11'::time
time '10:11:12.5'
time '10:11:12.1234567'
time '24:00:00'
time '24:00:01'
time '25:00'
time 'x'
time '101112'
time '1011'
time '2024-01-02 10:11:12'
time '10:11:12+02'
time '10:11'::text
time '10:11'::interval
'26:30'::interval::time
'-1:30'::interval::time
'1 day 2 hours'::interval::time
timestamp '1969-12-31 23:30'::time
date '2024-01-01'::time
time '10:00'::timestamp
1::time
time '10:00' + interval '15 hours'
interval '1 day 1 hour' + time '10:00'
time '10:00' - interval '11 hours'
time '24:00' + interval '0'
time '10:00' - time '12:30'
date '2024-01-31' + time '10:00'
time '10:00' + date '2024-01-31'
timestamp '2024-01-31 20:00' + time '10:00'
interval '3 hours' - time '1:00'
time '10:00' < time '10:00:00.000001'
time '10:00' = '10:00'
time '10:00' between '9:00' and '11:00'
time '10:00' in ('9:00', '10:00')
time '10:00' = timestamp '2024-01-01 10:00'
extract(hour from time '13:14:15.678')
extract(second from time '13:14:15.678')
extract(epoch from time '13:14:15.678')
extract(microseconds from time '13:14:15.678')
extract(day from time '13:14:15.678')
extract(foo from time '13:14:15.678')
date_part('minute', time '13:14:15.678')
date_trunc('hour', time '13:14:15.678')
to_char(time '13:04:05.678', 'HH24:MI:SS.MS HH12 AM')
greatest(time '10:00', time '11:00')
coalesce(null, time '10:00')
case when true then time '10:00' else '11:00' end
# Timestamps with time zone
timestamptz '2024-01-01 10:00+02'
timestamptz '2024-01-01 10:00:00.123456-05:30'
timestamptz '2024-01-01 10:00 +0530'
timestamptz '2024-01-01T10:00:00Z'
timestamptz '2024-01-01 10:00 UTC'
timestamptz '2024-01-01 10:00 utc'
timestamptz '2024-01-01 10:00 PST'
timestamptz '2024-07-01 10:00 CEST'
timestamptz '2024-07-01 10:00 Europe/Berlin'
timestamptz '2024-01-01 10:00 Europe/Berlin'
timestamptz '2024-01-01 10:00 europe/berlin'
timestamptz '2024-03-31 02:30 Europe/Berlin'
timestamptz '2024-10-27 02:30 Europe/Berlin'
timestamptz '2024-01-01 10:00 America/New_York'
timestamptz '1850-01-01 10:00 Europe/Berlin'
timestamptz '2099-07-01 10:00 Europe/Berlin'
timestamptz '2024-01-01 10:00 Nowhere/Else'
timestamptz '2024-01-01 10:00+16'
timestamptz '2024-01-01'
timestamptz '2024-01-01 10:00'
timestamptz '2024-13-01 10:00+02'
timestamptz 'x'
'2024-01-01 10:00+02'::timestamp with time zone
timestamp '2024-01-01 10:00+02'
date '2024-01-01 10:00+02'
timestamptz '2024-01-01 10:00+02'::text
timestamptz '2024-01-01 10:00+02'::varchar(10)
timestamptz '2024-01-01 00:30+02'::timestamp
timestamptz '2024-01-01 00:30+02'::date
timestamptz '2024-01-01 00:30+02'::time
date '2024-01-01'::timestamptz
timestamp '2024-01-01 10:00'::timestamptz
time '10:00'::timestamptz
1::timestamptz
timestamptz '2024-01-01'::integer
timestamptz '2024-01-01 10:00+02' = timestamptz '2024-01-01 08:00+00'
timestamptz '2024-01-01 10:00+02' = timestamp '2024-01-01 08:00'
timestamptz '2024-01-01 10:00+02' > date '2024-01-01'
date '2024-01-01' = timestamptz '2024-01-01 00:00+00'
timestamptz '2024-01-01 10:00+02' < '2024-01-01 09:00'
timestamptz '2024-01-01 10:00+02' in ('2024-01-01 08:00', '2024-01-02')
timestamptz '2024-01-01 10:00+02' between '2024-01-01' and '2024-01-02'
timestamptz '2024-01-31 10:00+02' + interval '1 month'
interval '1 day' + timestamptz '2024-01-31 10:00+02'
timestamptz '2024-03-31 10:00+02' - interval '1 month 1 hour'
timestamptz '2024-01-31 10:00+02' + time '1:00'
timestamptz '2024-01-31 10:00+02' - timestamptz '2024-01-01 10:00+00'
timestamptz '2024-01-31 10:00+02' - timestamp '2024-01-01 10:00'
timestamptz '2024-01-31 10:00+02' - date '2024-01-01'
date '2024-01-31' - timestamptz '2024-01-01 10:00+00'
timestamptz '2024-01-31 10:00+02' + 1
timestamptz '2024-01-31 10:00+02' at time zone 'Europe/Berlin'
timestamptz '2024-07-31 10:00+02' at time zone 'america/new_york'
timestamptz '2024-01-31 10:00+02' at time zone '+02'
timestamptz '2024-01-31 10:00+02' at time zone 'UTC-3'
timestamptz '2024-01-31 10:00+02' at time zone 'PST'
timestamptz '2024-01-31 10:00+02' at time zone interval '-3:30'
timestamptz '2024-01-31 10:00+02' at time zone 'Nowhere/Else'
timestamp '2024-01-31 10:00' at time zone 'Europe/Berlin'
timestamp '2024-07-31 10:00' at time zone 'Europe/Berlin'
timestamp '2024-07-31 10:00' at time zone 'utc' at time zone 'Asia/Kolkata'
date '2024-07-31' at time zone 'Europe/Berlin'
timezone('Asia/Tokyo', timestamptz '2024-01-31 10:00+02')
extract(hour from timestamptz '2024-01-31 10:11:12.5+02')
extract(epoch from timestamptz '2024-01-31 10:11:12.5+02')
extract(year from timestamptz '2024-01-01 00:30+02')
extract(timezone from timestamptz '2024-01-31 10:11:12.5+02')
extract(timezone_hour from timestamptz '2024-01-31 10:11:12.5+02')
extract(dow from timestamptz '2024-01-31 10:11:12.5+02')
date_part('hour', timestamptz '2024-01-31 10:11:12.5+02')
date_part('epoch', timestamptz '2024-01-31 10:11:12.5+02')
date_trunc('month', timestamptz '2024-02-01 00:30+02')
date_trunc('hour', timestamptz '2024-01-31 10:11:12.5+02')
date_trunc('day', timestamptz '2024-01-31 10:11:12.5+02', 'Europe/Berlin')
date_trunc('day', timestamptz '2024-07-31 23:11:12.5+00', 'America/New_York')
date_trunc('foo', timestamptz '2024-01-31 10:11:12.5+02')
date_trunc('month', date '2024-02-15')
age(timestamptz '2024-03-15 00:00+02', timestamptz '2023-01-20 00:00+02')
to_char(timestamptz '2024-01-31 10:11:12.5+02', 'YYYY-MM-DD HH24:MI:SS TZ OF TZH:TZM tz')
to_timestamp(1700000000)
to_timestamp(1700000000.123456)
to_timestamp(-0.5)
greatest(timestamptz '2024-01-01 10:00+02', timestamp '2024-01-01 09:00')
coalesce(date '2024-01-01', timestamptz '2024-01-01 10:00+02')
case when true then timestamp '2024-01-01 10:00' else timestamptz '2024-01-01 10:00+02' end
nullif(timestamptz '2024-01-01 10:00+02', '2024-01-01 08:00')
timestamptz '2024-01-01 10:00+02' || 'x'
to_char(timestamp '2020-05-07 03:04:05.678', 'YYYY-MM-DD HH24:MI:SS')
to_char(timestamp '2020-05-07 15:04:05.678', 'HH12:MI AM')
to_char(timestamp '2020-05-07 15:04:05.678', 'hh:mi p.m.')
to_char(timestamp '2020-05-07 00:04:05.678', 'HH:MI:SS.MS US')
to_char(timestamp '2020-05-07', 'Day DAY day Dy DY dy')
to_char(timestamp '2020-05-07', 'FMDay, FMDD Month YYYY')
to_char(timestamp '2020-05-07', 'Month MONTH month Mon MON mon')
to_char(timestamp '2020-05-07', 'FMMonth|FMMM|FMDDD|DDD')
to_char(timestamp '2020-05-01', 'DDth FMDDth DDTH')
to_char(timestamp '2020-05-12', 'DDth')
to_char(timestamp '2020-05-22', 'FMDDth')
to_char(timestamp '2020-12-31', 'IYYY-IW-ID IDDD WW W Q CC J')
to_char(timestamp '2020-12-31', 'YYY YY Y Y,YYY')
to_char(timestamp '2020-12-31', 'RM rm FMRM')
to_char(timestamp '2020-12-31 23:59:59', 'SSSS SSSSS')
to_char(timestamp '2020-12-31 23:59:59.123456', 'FF1 FF2 FF3 FF4 FF5 FF6')
to_char(timestamp '2020-12-31', '"Year: "YYYY')
to_char(timestamp '2020-12-31', 'YYYY\"MM')
to_char(timestamp '2020-12-31', 'AD BC ad A.D. b.c.')
to_char(timestamp '2020-12-31', 'D d')
to_char(timestamp '2020-12-31', 'xyz é YYYY')
to_char(date '2020-12-31', 'DD.MM.YYYY')
to_char(timestamp '0099-01-02', 'YYYY FMYYYY IYYY')
to_char(timestamp '2020-12-31', 'TMMonth TMDay')
to_char(timestamp '2020-12-31', '')
# Numbers
7 / 2
-7 / 2
7 % 3
-7 % 3
7.5 % 2
mod(7, 3)
mod(-7.5, 2)
mod(7, 0)
div(7, 2)
div(-7.5, 2)
div(7, 0)
7::double precision / 2
1 / 0
1.0 / 0
1::double precision / 0
0::double precision / 0
1e308::double precision * 10
'1e308'::double precision * 10
'1e308'::double precision + '1e308'::double precision
1e-308::double precision * 1e-308
1e308::double precision + 1e308
'Infinity'::double precision - 'Infinity'::double precision
'Infinity'::double precision + 1
'NaN'::double precision = 'NaN'::double precision
'NaN'::double precision > 'Infinity'::double precision
0.1::double precision + 0.2::double precision
0.1::real + 0.2::real
0.1::real + 0.2::double precision
1 + 1.5::double precision
1.5 + 1.5::real
0.1::real = 0.1::double precision
2 = 2.0::double precision
- 1.5::double precision
1.5::double precision > 1
2 ^ 10
2 ^ 0.5
2.0 ^ 3
abs(-5)
abs(-5.5)
abs(-5.5::double precision)
@ -5
sign(-5.5)
sign(0)
sign(3)
floor(5.7)
floor(-5.7)
ceil(5.2)
ceiling(-5.2)
floor(5.7::double precision)
ceil(-0.5::double precision)
trunc(5.79)
trunc(-5.79)
trunc(5.789, 2)
trunc(1234.5, -2)
trunc(5.789::double precision)
round(2.5)
round(-2.5)
round(3.5)
round(2.5::double precision)
round(3.5::double precision)
round(2.345, 2)
round(-2.345, 2)
round(1234.5, -2)
round(1250, -2)
round(2.5, 3)
round(1.5::double precision, 1)
power(2, 3)
power(2::double precision, 0.5)
power(0::double precision, -1)
power(-8::double precision, 1.0/3)
power(10::double precision, 400)
sqrt(2::double precision)
sqrt(16)
sqrt(-1::double precision)
sqrt(-1.0)
|/ 25
cbrt(27)
||/ 27
ln(1::double precision)
ln(0::double precision)
ln(-1::double precision)
ln(0.0)
log(100::double precision)
log(100)
log10(1000::double precision)
log(-1.5)
exp(0::double precision)
exp(1::double precision)
exp(1000::double precision)
exp(-1000::double precision)
degrees(pi())
radians(180)
sin(0)
sin(1)
cos(1)
tan(1)
asin(1)
acos(0)
atan(1)
atan2(1, 2)
asin(2)
sin('Infinity'::double precision)
pi()
greatest(1, 2, 3)
least(1, 2, 3)
greatest(1, null, 3)
least(null::integer, null)
greatest(1, 2.5)
greatest('a', 'b')
greatest(date '2020-01-01', date '2021-01-01')
greatest(1.5::double precision, 2)
to_char(1234.5, '9999.99')
to_char(-1234.5, '9999.99')
to_char(1234.5, '9,999.99')
to_char(1234567, '9,999,999')
to_char(1234, '9,999,999')
to_char(1234.5, 'FM9999.99')
to_char(1234.5, 'FM9999.00')
to_char(1234, 'FM9999.99')
to_char(0.1, '9.9')
to_char(0.1, '0.9')
to_char(0.1, 'FM9.9')
to_char(0, '9.9')
to_char(0, 'FM9.9')
to_char(-0.1, '9.9')
to_char(-0.1, '99.99')
to_char(12, '00000')
to_char(-12, '00000')
to_char(12, 'FM00000')
to_char(12, '90000')
to_char(12, '99099')
to_char(485, '999')
to_char(-485, '999')
to_char(485, '9 9 9')
to_char(1485, '9,999')
to_char(1485, '9G999')
to_char(148.5, '999.999')
to_char(148.5, 'FM999.999')
to_char(148.5, 'FM999.990')
to_char(3148.5, '9G999D999')
to_char(-485, '999S')
to_char(-485, '999MI')
to_char(485, '999MI')
to_char(485, 'FM999MI')
to_char(485, 'PL999')
to_char(-485, 'PL999')
to_char(485, 'SG999')
to_char(-485, 'SG999')
to_char(-485, '9SG99')
to_char(-485, '999PR')
to_char(485, '999PR')
to_char(485, 'L999')
to_char(485, 'RN')
to_char(485, 'FMRN')
to_char(5.2, 'FMRN')
to_char(4000, 'RN')
to_char(482, '999th')
to_char(1, '9th')
to_char(11, '99TH')
to_char(485, '"Good number:"999')
to_char(485.8, '"Pre:"999" Post:" .999')
to_char(12, '99V999')
to_char(12.4, '99V999')
to_char(12.45, '99V9')
to_char(0.0004859, '9.99EEEE')
to_char(1234567, '9.99EEEE')
to_char(-1234567.8, '9.999EEEE')
to_char(12345, '999')
to_char(-12345, '999')
to_char(12345.678, '999.99')
to_char(1.5::double precision, '99.99')
to_char(-1.5::double precision, 'FM99.99')
to_char(1234.5678::double precision, '9999.9')
to_char(0.5::double precision, '9')
to_char(1.5::double precision, '9.99EEEE')
to_char(123456789012345678::double precision, '999999999999999999999.99')
to_char(12, 'S99')
to_char(-12, 'S99')
to_char(12, '99S')
to_char(12, 'S00.0')
to_char(12, 'B99')
to_char(12, '99 "x\"y"')
to_char(12, '')
to_char(12, 'abc')
to_char(12, '9.9.9')
to_char(12, 'S9S')
to_char(12, 'PR9')
to_char(12, '9EEEE9')
# Numbers whose scale depends on the values
1.0 / 3
2 / 3.0
10 / 4.0
-10 / 4.0
5 / 1e7
1 / 3.00
1.00 / 3
100 / 3.0
12345 / 7.0
1.5 / 0.25
0.0001 / 3
1 / 12345678.0
1/(3/12345678.0)
1.0 / 9999999999999999
9999999999999999 / 1.0
123456789012345678901234567890 / 7.0
1e20 / 3
1e-20 / 3
0 / 5.0
0.000 / 5
1.0 / 0.0
1 / 0.0
3 / 12345678.0
3.0 / 2 * 2
3.0 / 2 + 1
1 - 1.0 / 3
-(1.0 / 3)
(1.0 / 3) * 3
(1.0 / 3) = 0.33333333333333333333
(1.0 / 3)::text
(1.0 / 4)::text
(1.0 / 3)::numeric(10,2)
(2.0 / 3)::numeric(10,2)
(2.0 / 3)::int
(5.0 / 2)::bigint
(-5.0 / 2)::bigint
(1.0 / 3)::double precision
(1.0 / 3)::real
(1e30 / 3)::int
(1e30 / 3)::numeric(10,2)
(2.0 / 3)::numeric
abs(-1.0 / 3)
sign(-1.0 / 3)
floor(-1.0 / 3)
ceil(1.0 / 3)
ceil(-1.0 / 3)
trunc(5.0 / 3)
trunc(5.0 / 3, 3)
trunc(-5.0 / 3, 3)
trunc(500.0 / 3, -1)
round(5.0 / 3)
round(5.0 / 3, 4)
round(-5.0 / 3, 4)
round(500.0 / 3, -1)
round(5.0 / 3, 25)
round(99999999999999999999999999999999999.95, 0)
round(9999999999999999999999999999999999999.5)
round(1.2345, 1 + 1)
div(7.0 / 2, 1)
div(7.5, 2)
div(-7.0 / 2, 0.7)
mod(7.0 / 2, 1)
(7.0 / 3) % 2
-(7.0 / 3) % 2
(7.0 / 3) % 0
greatest(1.0 / 3, 0.5)
least(1.0 / 3, 0.5, 2)
coalesce(null, 1.0 / 3)
case when true then 1.0 / 3 else 2 end
case when true then 2.50 else 1.0 / 3 end
nullif(1.0 / 4, 0.25)
nullif(1.0 / 3, 0.25)
1.0 / 4 in (0.25, 1)
1.0 / 4 in (0.5, null)
0.25 in (1.0 / 4, 3)
1.0 / 4 between 0.25 and 0.250
1.0 / 3 > 0
1.0 / 3 < 0.33333333333333333334
1.0 / 3 <> 1.00 / 3
1.0 / 8 = 0.125
1.0 / 8 = 0.125::double precision
1.0 / 8 = 1
1.0 / 3 is null
(1.0 / 3) is distinct from (2.0 / 6)
1.0 / null
null / 2.0
1.0::numeric / 2
'1.50'::numeric
'1e3'::numeric
'1e-3'::numeric
' 12.500 '::numeric
'-.5'::numeric
'1.'::numeric
'abc'::numeric
''::numeric
'1e'::numeric
lower('1.50')::numeric
'1.50'::numeric + 1
'1.50'::numeric * 2.000
'1.50'::numeric = 1.5
('1.50'::numeric)::text
(0.1::double precision * 3)::numeric
(1.0::double precision / 3)::numeric
1e20::double precision::numeric
1e-7::double precision::numeric
123456789.123456789::double precision::numeric
0.1::real::numeric
1234567.8::real::numeric
'NaN'::double precision::int
power(2.0, 10)
power(2.0, -2)
power(2.0, 0.5)
power(1.1, 20)
pow(1.5, 2.5)
2.0 ^ 80
2.0 ^ 0.5
2 ^ 3.0
power(0.5, 10)
power(10.0, -5)
power(1.0001, 10000)
power(-2.0, 3)
power(-2.0, 0.5)
power(0.0, -1)
power(0.0, 0)
power(0.0, 2)
power(7.0, 0)
power(-999999999.999, 2)
power(1+0.05/12, 360)
200000*(0.05/12)
sqrt(2.0)
sqrt(16.0)
sqrt(0.0)
sqrt(0.0001)
sqrt(12345678901234567890.0)
sqrt(1.0 / 3)
exp(1.0)
exp(0.0)
exp(-1.0)
exp(10.5)
exp(52.0)
exp(-20.0)
ln(2.0)
ln(10.0)
ln(0.5)
ln(1.0)
ln(1.0000001)
ln(123456.789)
ln(-1.0)
log(100.0)
log(2.0)
log(2.0, 8.0)
log(10, 1000)
log(3.0, 10)
log(1.0, 10)
log10(2.0)
log(0.5, 0.25)
1.19*1.19*1.19*1.19*1.19
1.19*1.19*1.19*1.19*1.19*1.19*1.19*1.19*1.19*1.19*1.19*1.19*1.19*1.19*1.19*1.19*1.19*1.19*1.19*1.19
to_char(1.0 / 3, '9.999')
to_char(200.0 / 3, '999D99')
length((1.0 / 3)::text)
1.0 / 3 || 'x'
extract(epoch from interval '1 second') / 3
extract(hour from timestamp '2024-01-01 10:30') + extract(minute from timestamp '2024-01-01 10:30') / 60
interval '1 hour' * (1.0 / 3)
pg_typeof(1.0 / 3)
pg_typeof(sqrt(2.0))
pg_typeof('1.5'::numeric)

# Text
'a' || 'b'
'a' || 1
1 || 'a'
'a' || true
'a' || date '2020-01-01'
'a' || null
concat('a', 1, null, true, date '2020-01-01')
concat_ws(',', 'a', null, 'b', 1)
concat_ws(null, 'a', 'b')
concat_ws(',', null, null)
upper('abcäß')
lower('ABCÄ')
initcap('hELLO wORLD-foo bar2baz äb')
length('héllo')
char_length('日本')
character_length('abc')
octet_length('日本')
bit_length('abc')
substring('hello', 2)
substring('hello', 2, 3)
substring('hello' from 2 for 3)
substring('hello' from 2)
substring('hello' for 2)
substring('hello', -1, 4)
substring('hello', 0)
substring('hello', 10)
substring('hello', 2, -1)
substring('hello', 2, 2147483647)
substr('日本語', 2, 1)
position('l' in 'hello')
position('' in 'hello')
position('x' in 'hello')
strpos('héllo', 'l')
trim('  a  ')
trim(both 'x' from 'xxaxx')
trim(leading 'x' from 'xxaxx')
trim(trailing from 'a  ')
btrim('xyaxy', 'xy')
ltrim('  a')
ltrim('äaä', 'ä')
rtrim('a  ')
rtrim('axx', 'x')
rtrim('abc', '')
replace('hello', 'l', 'LL')
replace('hello', '', 'x')
replace('aaa', 'aa', 'b')
translate('12345', '143', 'ax')
translate('hello', 'lo', 'ä')
left('hello', 2)
left('hello', -2)
left('hello', -10)
right('hello', 2)
right('hello', -2)
right('héllo', 4)
lpad('hi', 5)
lpad('hi', 5, 'xy')
lpad('hello', 2)
lpad('hi', -1)
lpad('hi', 5, '')
rpad('hi', 5, 'xy')
rpad('hi', 5)
repeat('ab', 3)
repeat('ab', 0)
repeat('ab', -1)
reverse('héllo')
split_part('a,b,c', ',', 2)
split_part('a,b,c', ',', 4)
split_part('a,b,c', ',', -1)
split_part('a,b,c', ',', 0)
split_part('a,b,c', '', 1)
split_part('a,b,c', '', 2)
starts_with('hello', 'he')
starts_with('hello', 'lo')
'hello' ^@ 'he'
ascii('a')
ascii('é')
ascii('')
chr(65)
chr(233)
chr(0)
chr(-1)
chr(1114112)
md5('abc')
md5('')
'hello' like 'h%'
'hello' like 'h_l%'
'a%b' like 'a\%b'
'a%b' like 'a#%b' escape '#'
'axb' like 'a#%b' escape '#'
'a\b' like 'a\b' escape ''
'abc' like 'a__' escape 'ab'
'abc' like 'abc\'
'HELLO' ilike 'h%'
'ÄB' ilike 'äb'
'abc' not ilike 'B%'
'hello' ~ 'l+'
'hello' ~ '^h.*o$'
'hello' ~* 'HELLO'
'hello' !~ 'x'
'hello' !~* 'HELLO'
'a.b' ~ 'a\.b'
'a1' ~ '^[[:alpha:]]\d$'
E'a\nb' ~ 'a.b'
'abc' ~ '^(a|b)+c'
'aaa' ~ 'a{3}'
'aaa' ~ '^a{4}$'
'ab' ~ '(?:a)b'
'foo bar' ~ '\sbar'
'[' ~ '['
'a' ~ '(a'
'a' ~ 'a**'
'a' ~ '*a'
'x' ~ ''
'ABC' ~ '(?i)abc'
'' ~ '^$'
'héllo' ~ '^\w+$'
'a-b' ~ '[a\-]b'
# Conditions
1 is distinct from 2
1 is distinct from null
null is distinct from null
1 is not distinct from 1
null::integer is not distinct from null
true is true
null::boolean is true
null::boolean is not true
false is false
null::boolean is unknown
true is not unknown
(1, 2) = (1, 2)
(1, 2) <> (1, 3)
(1, 2) < (1, 3)
(1, null::integer) < (2, 3)
(1, null::integer) = (2, 3)
(1, null::integer) = (1, 3)
(2, 1) >= (1, 9)
(1, 2) in ((3, 4), (1, 2))
(1, 2) not in ((3, 4), (1, null))
(1, 2) = (1, 2, 3)
row(null, null) is null
(1, null) is null
(1, null) is not null
(1, 2) is distinct from (1, null::integer)
case when 1 > 2 then 'a' when 2 > 1 then 'b' else 'c' end
case 3 when 1 then 'a' when 3 then 'b' end
case when false then 1 end
case when true then 1 else 2.5 end
case when true then 1 else 2.5::double precision end
coalesce(null, null, 3)
coalesce(null::integer, 2.5)
coalesce('a', 'b')
nullif(1, 1)
nullif(1, 2)
nullif('a', 'b')
1.5 in (1, 2, 1.5)
1.5::double precision in (1, 1.5)
3 between 1 and 5
interval '1 day' in (interval '24 hours', interval '2 days')
# uuid
'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid
'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid
'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'::uuid
'a0eebc999c0b4ef8bb6d6bb9bd380a11'::uuid
'a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11'::uuid
'{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}'::uuid
'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid
'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'::uuid
'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1'::uuid
'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111'::uuid
'a-0eebc999c0b4ef8bb6d6bb9bd380a11'::uuid
'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380g11'::uuid
' a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid
''::uuid
uuid 'ffffffff-ffff-ffff-ffff-ffffffffffff'
uuid '00000000-0000-0000-0000-000000000000'::text
'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid = 'A0EEBC999C0B4EF8BB6D6BB9BD380A11'
uuid '00000000-0000-0000-0000-000000000001' < uuid '80000000-0000-0000-0000-000000000000'
uuid '7fffffff-ffff-ffff-ffff-ffffffffffff' < uuid '80000000-0000-0000-0000-000000000000'
uuid 'ffffffff-ffff-ffff-ffff-ffffffffffff' > uuid '00000000-0000-0000-0000-000000000000'
greatest(uuid '7fffffff-ffff-ffff-ffff-ffffffffffff', uuid '80000000-0000-0000-0000-000000000000')
uuid 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' || 'x'
5::uuid
uuid 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::integer
uuid 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::bytea
uuid 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' = 'a'::text
coalesce(null::uuid, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')
uuid 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' in ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12')
null::uuid
# bytea
'\xDEADBEEF'::bytea
'\xdead beef'::bytea
'\x'::bytea
''::bytea
'\xabc'::bytea
'\xa b'::bytea
'\xag'::bytea
'\xé0'::bytea
'abc'::bytea
'a\\b'::bytea
'a\000b'::bytea
'\377\001'::bytea
'\400'::bytea
'a\b'::bytea
'\'::bytea
'é'::bytea
bytea '\x00'
'\X00'::bytea
'\x4142'::bytea::text
'abc'::text::bytea
'\x41'::bytea = 'A'
'\x41'::bytea < '\x4100'
'\x4100'::bytea > '\x41'
'\xff'::bytea > '\x7f'::bytea
'\x00'::bytea < '\x0000'::bytea
'\x4142'::bytea || '\x43'
'\x4142'::bytea || '\x43'::bytea
'A' || '\x4142'::bytea
'\x4142'::bytea || 'C'::text
'\x4142'::bytea || 5
length('\x00ff00'::bytea)
octet_length('\x00ff00'::bytea)
bit_length('\x00ff00'::bytea)
length(''::bytea)
substring('\x0102030405'::bytea from 2 for 3)
substring('\x0102030405'::bytea, 2)
substring('\x0102030405'::bytea, -1, 3)
substring('\x0102030405'::bytea, 0)
substring('\x0102030405'::bytea, 4, 100)
substring('\x0102030405'::bytea, 2, -1)
substring('\x0102030405'::bytea, 9)
substr('\x0102030405'::bytea, 3, 2)
position('\x03'::bytea in '\x0102030405'::bytea)
position('\x0304' in '\x0102030405'::bytea)
position('\x09'::bytea in '\x0102030405'::bytea)
position(''::bytea in '\x0102'::bytea)
btrim('\x000102000100'::bytea, '\x00'::bytea)
ltrim('\x000102000100'::bytea, '\x0001'::bytea)
rtrim('\x000102000100'::bytea, '\x0001'::bytea)
trim(both '\x00'::bytea from '\x000100'::bytea)
btrim('\x0001'::bytea, ''::bytea)
md5('\x00ff'::bytea)
md5('abc'::bytea)
sha224('abc'::bytea)
sha256('abc')
sha384('abc'::bytea)
sha512('abc'::bytea)
encode('\x00ff41'::bytea, 'hex')
encode('\x00ff415c'::bytea, 'escape')
encode('\x00ff41'::bytea, 'base64')
encode('\x00ff'::bytea, 'BASE64')
encode('\x00'::bytea, 'base64')
encode(''::bytea, 'base64')
encode('\x00'::bytea, 'rot13')
length(encode('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'::bytea, 'base64'))
decode('00ff41', 'hex')
decode('00 ff\n', 'hex')
decode('0', 'hex')
decode('0g', 'hex')
decode('\\a\001', 'escape')
decode('\9', 'escape')
decode('AP9B', 'base64')
decode('AP9B ' || chr(10) || 'AA==', 'base64')
decode('A', 'base64')
decode('AA=', 'base64')
decode('AA==AA==', 'base64')
decode('A===', 'base64')
decode('AAA=', 'base64')
decode('A?==', 'base64')
decode('', 'base64')
decode('00', 'base32')
get_byte('\x00ff41'::bytea, 1)
get_byte('\x00ff41'::bytea, 3)
get_byte('\x00ff41'::bytea, -1)
set_byte('\x00ff41'::bytea, 1, 7)
set_byte('\x00ff41'::bytea, 1, 256)
get_bit('\x00ff41'::bytea, 16)
get_bit('\x00ff41'::bytea, 24)
set_bit('\x00ff41'::bytea, 0, 1)
set_bit('\x00ff41'::bytea, 0, 2)
convert_from('\x414243'::bytea, 'UTF8')
convert_from('\xff'::bytea, 'UTF8')
convert_from('\x00'::bytea, 'utf-8')
convert_to('é', 'UTF8')
'\x41'::bytea::integer
5::bytea
'\x41'::bytea = 5
concat('\x41'::bytea, 'x')
greatest('\x41'::bytea, '\x4100', '\x40ff')
case when true then '\x41'::bytea else 'B' end
coalesce(null::bytea, '\x01')
'\x41'::bytea is distinct from '\x41'
upper('\x41'::bytea)
'\x41'::bytea in ('A', '\x42')
nullif('\x41'::bytea, 'A')
# intervals
interval '1 year 2 mons' year to month
interval '1 year 2 mons 3 days' year to month
interval '5' year to month
interval '1 10:20:30' day to hour
interval '1 10:20:30' day to minute
interval '1 10:20:30.5' day to second
interval '10:20:30' hour to minute
interval '10:20:30' hour to second
interval '1:30' minute to second
interval '5' day to hour
interval '5' hour to minute
5::interval
1.5::interval
true::interval
to_char(interval '1 year 2 mons 3 days 04:05:06.789', 'YYYY-MM-DD HH24:MI:SS.MS')
to_char(interval '15 hours 2 minutes 12 seconds', 'HH24:MI:SS')
to_char(interval '15 hours 2 minutes 12 seconds', 'HH12:MI:SS AM')
to_char(interval '-15 hours -2 minutes -12 seconds', 'HH24:MI:SS')
to_char(interval '100 hours', 'HH24')
to_char(interval '100 hours', 'SSSS')
to_char(interval '14 mons', 'YY MM')
to_char(interval '14 mons', 'FMYYYY FMMM')
to_char(interval '14 mons 40 days', 'DDD DD Q CC RM W')
to_char(interval '-14 mons', 'YYYY MM')
to_char(interval '-1 months', 'rm')
to_char(interval '-2 months', 'RM')
to_char(interval '-11 months', 'RM')
to_char(interval '-12 months', 'RM')
to_char(interval '-13 months', 'FMRM')
to_char(interval '12 months', 'RM')
to_char(interval '11 months', 'RM')
to_char(interval '0 months', 'RM')
to_char(interval '3 mons', 'Month')
to_char(interval '3 days', 'Day')
to_char(interval '1 second 5 ms', 'US FF3')
to_char(interval '1 day', '')
to_char(interval '0', 'HH12 AM')
to_char(interval '30 hours', 'HH PM')
# casts
3::smallint::boolean
3::bigint::boolean
3::integer::boolean
3::boolean
true::smallint
date '2024-01-01'::numeric
timestamp '2024-01-01'::numeric
true::numeric
interval '1 day'::numeric
# dates
'Jan 5 2024'::date
'January 5, 2024'::date
'5 Jan 2024'::date
'2024 Jan 5'::date
'Jan 5 24'::date
'Jan 5'::date
'Fri Jan 05 2024'::date
'08-Jan-1999'::date
'Jan-08-1999'::date
'1999-Jan-08'::date
'08-Jan-99'::date
'08-Jan-69'::date
'08-Jan-70'::date
'1/8/1999'::date
'1/18/1999'::date
'18/1/1999'::date
'01/02/03'::date
'1-8-1999'::date
'1.8.1999'::date
'1999/1/8'::date
'990108'::date
'190108'::date
'991308'::date
'J2451187'::date
'j2451187'::date
'J99999999'::date
'epoch'::date
'epoch'::timestamp
'EPOCH'::timestamp
'Feb 30 2024'::date
'Foo 30 2024'::date
'2024-01-01 10:00 PM'::timestamp
'2024-01-01 10:00PM'::timestamp
'2024-01-01 12:00 AM'::timestamp
'2024-01-01 12:30 PM'::timestamp
'2024-01-01 13:00 PM'::timestamp
'2024-01-01 10:00:05.5 pm'::timestamp
'2024-01-01 101112'::timestamp
'2024-01-01 1011'::timestamp
'20240101 101112'::timestamp
'Jan 5 2024 10:11:12'::timestamp
'Jan 5 10:11:12 2024'::timestamp
'Fri Jan 05 10:11:12 2024'::timestamp
'10:11 1/8/1999'::timestamp
'08-Jan-1999 10:11 PM'::timestamp
'J2451187 10:00'::timestamp
'990108 101112'::timestamp
'Jan 5 2024 pm'::timestamp
'am'::date
'Jan'::date
'1/8'::date
'now'::text
(time '10:00', time '11:00') overlaps (time '10:30', time '12:00')
(time '10:00', time '11:00') overlaps (time '11:00', time '12:00')
(time '11:00', time '10:00') overlaps (time '10:00', null)
(time '10:00', time '10:00') overlaps (time '10:00', time '10:00')
(time '23:00', interval '2 hours') overlaps (time '00:30', time '01:30')
(time '10:00', null) overlaps ('10:00', '11:00')
(timestamptz '2024-01-01 00:00+00', timestamptz '2024-01-02 00:00+00') overlaps (timestamptz '2024-01-01 23:59+00', interval '1 hour')
(date '2024-01-01', date '2024-01-05') overlaps (date '2024-01-05', interval '1 day')
(date '2024-01-01', null) overlaps (timestamp '2024-01-01', timestamp '2024-01-01')
('2024-01-01', '2024-02-01') overlaps ('2024-01-31', '2024-03-01')
(timestamptz '2024-01-01 00:00+00', null) overlaps (null, timestamptz '2024-01-01 00:00+00')
(1, 2) overlaps (2, 3)
(time '10:00', time '11:00') overlaps (timestamp '2024-01-01', timestamp '2024-01-02')
to_char(time '24:00', 'HH24:MI HH12 AM')
to_char(time '12:00', 'HH12 p.m.')
extract(year from '2024-01-01')
extract(year from null)
date_trunc('month', '2024-01-01')
overlay('\x0102030405'::bytea placing '\xaabb'::bytea from 2)
overlay('\x0102030405'::bytea placing '\xaabb' from 2 for 3)
overlay('\x0102'::bytea placing ''::bytea from 1 for 9)
overlay('\x0102'::bytea placing '\xff'::bytea from 7 for 0)
overlay('\x0102'::bytea placing '\xff'::bytea from 0)
overlay('\x0102'::bytea placing '\xff'::bytea from 2 for -1)
overlay('abc' placing 'x' from 2 for -1)
# Dates and times in other ways
timestamptz '2024-01-02+02'
timestamptz '2024-01-02 +05:30'
timestamptz '2024-01-02 -05'
timestamptz '2024-01-02-05'
timestamptz '2024/01/02-05'
timestamptz '20240102+02'
timestamptz '20240102T101112-05'
timestamptz 'Jan 5 2024 +02'
timestamptz '2024-01-02 allballs'
timestamptz '2024-01-02 10:00 allballs'
date '2024-01-02+02'
date '2024-01-02 +02'
date '2024-01-02-05'
date '2024-01-02 allballs'
date 'allballs'
date '2024-01-02 AD'
date '0044-03-15 BC'
date '10000-01-01'
date '2024.366'
date '2024-366'
date '2023-366'
date '1999.008'
date '2024-000'
date '2024-01-02,'
timestamp '2024-01-02, 10:11'
timestamp '2024-01-02+02'
timestamp '2024-01-02 101112.5'
timestamp '2024-01-02 1011.5'
timestamp '20240102T101112'
timestamp '20240102 101112.25'
timestamp '2024-01-02 10:11:'
timestamp '2024-01-02 10:11:.5'
timestamp '2024-01-02 10:11:12.'
timestamp '2024-01-02 10:11:12.1234565'
timestamp '2024-01-02 10:11:12.1234575'
timestamp '2024-01-02 10:11:12.9999999'
time 'allballs'
time ' ALLBALLS '
time 'T10:11'
time 't101112'
time '101112.5'
time '10:11 Europe/Berlin'
time '2024-01-02 10:11 Europe/Berlin'
time 'infinity'
# Literals whose operator tells no type, and times as intervals
'3' * date '2024-01-31'
date '2024-01-31' / '3'
'3' * timestamp '2024-01-31 10:30'
'3' + true
uuid 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' - '3'
bytea 'a' + '3'
'3' + '4'
null * null
-'3'
-null
+'3'
time '10:30' * 3
2.5 * time '10:30'
time '10:30' / 2
time '10:30' * '3'
'3' * time '10:30'
'3' / time '10:30'
time '10:30' % '3'
time '10:00' + time '12:00'
time '10:00' = interval '10 hours'
interval '1 day' > time '10:30'
extract(year from '2024-12-30')
extract(hour from null)
case when true then 1 else 'x'::integer end
case when true then 1 else extract(year from '2024-99-99'::date) end
coalesce(1, 'x'::integer)
9223372036854775807::boolean
int4('5')
int2(70000)
int8(2.5)
float8(1.5)
float4('x')
text(true)
int4(date '2024-01-01')
date_part('timezone', timestamp '2024-12-30 10:11')
date_trunc('timezone', timestamp '2024-12-30 10:11')
date_trunc('julian', timestamp '2024-12-30 10:11')
to_char(date '2024-12-30', 'TZ OF')
(null, null) overlaps (date '2024-01-01', null)
(null, '2024-01-02') overlaps (date '2024-01-01', '2024-01-03')
(timestamp '2024-01-01', '2024-01-02') overlaps (timestamp '2024-01-01', timestamp '2024-01-03')
(timestamptz '2024-01-01', interval '1 day') overlaps (timestamptz '2024-01-01', null)
(null, interval '1 day') overlaps (null, interval '1 day')
(null, interval '1 day') overlaps (null, null)
(null, time '10:00') overlaps (time '09:00', time '11:00')
(time '10:00', '1 hour') overlaps (time '09:00', time '11:00')
to_char(interval '-1 days -12:00:00', 'DD HH24:MI:SS')
to_char(interval '-12 days', 'DD DDD FMDD')
to_char(interval '-1 mons', 'MM DD DDD')
to_char(interval '-1 days', 'DDD DD')
to_char(interval '5 days', 'DDD DD FMDDD')
to_char('NaN'::double precision, '999.99')
to_char('-Infinity'::double precision, 'S99999999999')
('x'::text, interval '1 day') overlaps (null, null)

# The declared type chooses the operator.
round(5 / nullif(2, 0.0), 4)
7 / nullif(2, 0)
nullif(2, 0.0::double precision) / 4
round(extract(hour from timestamp '2024-01-02 10:30') + extract(minute from timestamp '2024-01-02 10:30') / 60, 3)
round(extract(year from date '2024-05-06') / 5, 3)
round(extract(minute from timestamp '2024-01-02 10:30') / 7, 2)
mod(extract(day from date '2024-05-06'), 4)
extract(day from date '2024-05-06') % 4
2147483648 / 3
abs(1.1::real)
abs(-2.5::real)
+'3'
pg_typeof(1)
pg_typeof(1.5)
pg_typeof('a')
pg_typeof(null)
pg_typeof('a'::varchar(3))
pg_typeof(3000000000)
pg_typeof(2::smallint)
pg_typeof(extract(hour from time '10:00'))
repeat('a', extract(hour from time '03:00'))
date '2024-01-01' + extract(day from date '2024-05-06')
