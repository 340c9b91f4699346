# Expressions over the columns of TYPED_TABLE in make_results.py, one of each type, for types.txt.
s
sum(s)
avg(s)
min(s)
max(s)
count(s)
variance(s)
var_pop(s)
stddev(s)
stddev_pop(s)
abs(s)
sign(s)
floor(s)
ceil(s)
ceiling(s)
round(s)
trunc(s)
sqrt(s)
exp(s)
ln(s)
log(s)
log10(s)
cbrt(s)
degrees(s)
radians(s)
sin(s)
atan(s)
-s
+s
nullif(s, 1)
nullif(1, s)
coalesce(s, 0)
coalesce(s, 0.5)
lag(s) over (order by i)
first_value(s) over (order by i)
sum(s) over (order by i)
avg(s) over (order by i)
max(s) over (partition by t)
sum(s) / count(*)
sum(s) / nullif(sum(i), 0)
(select max(s) from typed)
(select s from typed limit 1)
round(s::numeric, 2)
trunc(s::numeric, 1)
count(distinct s)
sum(distinct s)
to_char(s, '999')
s::text
interval '1 hour' * s
s + s
s - s
s * s
s / s
nullif(s, s)
coalesce(s, s)
case when bo then s else s end
greatest(s, s)
least(s, s)
(select s union all select s limit 1)
s % s
mod(s, s)
power(s, s)
s ^ s
corr(s, s)
regr_count(s, s)
covar_pop(s, s)
s = s
s + i
s - i
s * i
s / i
nullif(s, i)
coalesce(s, i)
case when bo then s else i end
greatest(s, i)
least(s, i)
(select s union all select i limit 1)
s % i
mod(s, i)
power(s, i)
s ^ i
corr(s, i)
regr_count(s, i)
covar_pop(s, i)
s = i
s + b
s - b
s * b
s / b
nullif(s, b)
coalesce(s, b)
case when bo then s else b end
greatest(s, b)
least(s, b)
(select s union all select b limit 1)
s % b
mod(s, b)
power(s, b)
s ^ b
corr(s, b)
regr_count(s, b)
covar_pop(s, b)
s = b
s + d
s - d
s * d
s / d
nullif(s, d)
coalesce(s, d)
case when bo then s else d end
greatest(s, d)
least(s, d)
(select s union all select d limit 1)
s % d
mod(s, d)
power(s, d)
s ^ d
corr(s, d)
regr_count(s, d)
covar_pop(s, d)
s = d
s + n
s - n
s * n
s / n
nullif(s, n)
coalesce(s, n)
case when bo then s else n end
greatest(s, n)
least(s, n)
(select s union all select n limit 1)
s % n
mod(s, n)
power(s, n)
s ^ n
corr(s, n)
regr_count(s, n)
covar_pop(s, n)
s = n
s + r
s - r
s * r
s / r
nullif(s, r)
coalesce(s, r)
case when bo then s else r end
greatest(s, r)
least(s, r)
(select s union all select r limit 1)
power(s, r)
s ^ r
corr(s, r)
regr_count(s, r)
covar_pop(s, r)
s = r
s + f
s - f
s * f
s / f
nullif(s, f)
coalesce(s, f)
case when bo then s else f end
greatest(s, f)
least(s, f)
(select s union all select f limit 1)
power(s, f)
s ^ f
corr(s, f)
regr_count(s, f)
covar_pop(s, f)
s = f
i
sum(i)
avg(i)
min(i)
max(i)
count(i)
variance(i)
var_pop(i)
stddev(i)
stddev_pop(i)
abs(i)
sign(i)
floor(i)
ceil(i)
ceiling(i)
round(i)
trunc(i)
sqrt(i)
exp(i)
ln(i)
log(i)
log10(i)
cbrt(i)
degrees(i)
radians(i)
sin(i)
atan(i)
-i
+i
nullif(i, 1)
nullif(1, i)
coalesce(i, 0)
coalesce(i, 0.5)
lag(i) over (order by i)
first_value(i) over (order by i)
sum(i) over (order by i)
avg(i) over (order by i)
max(i) over (partition by t)
sum(i) / count(*)
sum(i) / nullif(sum(i), 0)
(select max(i) from typed)
(select i from typed limit 1)
round(i::numeric, 2)
trunc(i::numeric, 1)
count(distinct i)
sum(distinct i)
to_char(i, '999')
i::text
interval '1 hour' * i
i + s
i - s
i * s
i / s
nullif(i, s)
coalesce(i, s)
case when bo then i else s end
greatest(i, s)
least(i, s)
(select i union all select s limit 1)
i % s
mod(i, s)
power(i, s)
i ^ s
corr(i, s)
regr_count(i, s)
covar_pop(i, s)
i = s
i + i
i - i
i * i
i / i
nullif(i, i)
coalesce(i, i)
case when bo then i else i end
greatest(i, i)
least(i, i)
(select i union all select i limit 1)
i % i
mod(i, i)
power(i, i)
i ^ i
corr(i, i)
regr_count(i, i)
covar_pop(i, i)
i = i
i + b
i - b
i * b
i / b
nullif(i, b)
coalesce(i, b)
case when bo then i else b end
greatest(i, b)
least(i, b)
(select i union all select b limit 1)
i % b
mod(i, b)
power(i, b)
i ^ b
corr(i, b)
regr_count(i, b)
covar_pop(i, b)
i = b
i + d
i - d
i * d
i / d
nullif(i, d)
coalesce(i, d)
case when bo then i else d end
greatest(i, d)
least(i, d)
(select i union all select d limit 1)
i % d
mod(i, d)
power(i, d)
i ^ d
corr(i, d)
regr_count(i, d)
covar_pop(i, d)
i = d
i + n
i - n
i * n
i / n
nullif(i, n)
coalesce(i, n)
case when bo then i else n end
greatest(i, n)
least(i, n)
(select i union all select n limit 1)
i % n
mod(i, n)
power(i, n)
i ^ n
corr(i, n)
regr_count(i, n)
covar_pop(i, n)
i = n
i + r
i - r
i * r
i / r
nullif(i, r)
coalesce(i, r)
case when bo then i else r end
greatest(i, r)
least(i, r)
(select i union all select r limit 1)
power(i, r)
i ^ r
corr(i, r)
regr_count(i, r)
covar_pop(i, r)
i = r
i + f
i - f
i * f
i / f
nullif(i, f)
coalesce(i, f)
case when bo then i else f end
greatest(i, f)
least(i, f)
(select i union all select f limit 1)
power(i, f)
i ^ f
corr(i, f)
regr_count(i, f)
covar_pop(i, f)
i = f
b
sum(b)
avg(b)
min(b)
max(b)
count(b)
variance(b)
var_pop(b)
stddev(b)
stddev_pop(b)
abs(b)
sign(b)
floor(b)
ceil(b)
ceiling(b)
round(b)
trunc(b)
sqrt(b)
exp(b)
ln(b)
log(b)
log10(b)
cbrt(b)
degrees(b)
radians(b)
sin(b)
atan(b)
-b
+b
nullif(b, 1)
nullif(1, b)
coalesce(b, 0)
coalesce(b, 0.5)
lag(b) over (order by i)
first_value(b) over (order by i)
sum(b) over (order by i)
avg(b) over (order by i)
max(b) over (partition by t)
sum(b) / count(*)
sum(b) / nullif(sum(i), 0)
(select max(b) from typed)
(select b from typed limit 1)
round(b::numeric, 2)
trunc(b::numeric, 1)
count(distinct b)
sum(distinct b)
to_char(b, '999')
b::text
interval '1 hour' * b
b + s
b - s
b * s
b / s
nullif(b, s)
coalesce(b, s)
case when bo then b else s end
greatest(b, s)
least(b, s)
(select b union all select s limit 1)
b % s
mod(b, s)
power(b, s)
b ^ s
corr(b, s)
regr_count(b, s)
covar_pop(b, s)
b = s
b + i
b - i
b * i
b / i
nullif(b, i)
coalesce(b, i)
case when bo then b else i end
greatest(b, i)
least(b, i)
(select b union all select i limit 1)
b % i
mod(b, i)
power(b, i)
b ^ i
corr(b, i)
regr_count(b, i)
covar_pop(b, i)
b = i
b + b
b - b
b * b
b / b
nullif(b, b)
coalesce(b, b)
case when bo then b else b end
greatest(b, b)
least(b, b)
(select b union all select b limit 1)
b % b
mod(b, b)
power(b, b)
b ^ b
corr(b, b)
regr_count(b, b)
covar_pop(b, b)
b = b
b + d
b - d
b * d
b / d
nullif(b, d)
coalesce(b, d)
case when bo then b else d end
greatest(b, d)
least(b, d)
(select b union all select d limit 1)
b % d
mod(b, d)
power(b, d)
b ^ d
corr(b, d)
regr_count(b, d)
covar_pop(b, d)
b = d
b + n
b - n
b * n
b / n
nullif(b, n)
coalesce(b, n)
case when bo then b else n end
greatest(b, n)
least(b, n)
(select b union all select n limit 1)
b % n
mod(b, n)
power(b, n)
b ^ n
corr(b, n)
regr_count(b, n)
covar_pop(b, n)
b = n
b + r
b - r
b * r
b / r
nullif(b, r)
coalesce(b, r)
case when bo then b else r end
greatest(b, r)
least(b, r)
(select b union all select r limit 1)
power(b, r)
b ^ r
corr(b, r)
regr_count(b, r)
covar_pop(b, r)
b = r
b + f
b - f
b * f
b / f
nullif(b, f)
coalesce(b, f)
case when bo then b else f end
greatest(b, f)
least(b, f)
(select b union all select f limit 1)
power(b, f)
b ^ f
corr(b, f)
regr_count(b, f)
covar_pop(b, f)
b = f
d
sum(d)
avg(d)
min(d)
max(d)
count(d)
variance(d)
var_pop(d)
stddev(d)
stddev_pop(d)
abs(d)
sign(d)
floor(d)
ceil(d)
ceiling(d)
round(d)
trunc(d)
sqrt(d)
exp(d)
ln(d)
log(d)
log10(d)
cbrt(d)
degrees(d)
radians(d)
sin(d)
atan(d)
-d
+d
nullif(d, 1)
nullif(1, d)
coalesce(d, 0)
coalesce(d, 0.5)
lag(d) over (order by i)
first_value(d) over (order by i)
sum(d) over (order by i)
avg(d) over (order by i)
max(d) over (partition by t)
sum(d) / count(*)
sum(d) / nullif(sum(i), 0)
(select max(d) from typed)
(select d from typed limit 1)
round(d::numeric, 2)
trunc(d::numeric, 1)
count(distinct d)
sum(distinct d)
to_char(d, '999')
d::text
interval '1 hour' * d
d + s
d - s
d * s
d / s
nullif(d, s)
coalesce(d, s)
case when bo then d else s end
greatest(d, s)
least(d, s)
(select d union all select s limit 1)
d % s
mod(d, s)
power(d, s)
d ^ s
corr(d, s)
regr_count(d, s)
covar_pop(d, s)
d = s
div(d, s)
log(d, s)
d + i
d - i
d * i
d / i
nullif(d, i)
coalesce(d, i)
case when bo then d else i end
greatest(d, i)
least(d, i)
(select d union all select i limit 1)
d % i
mod(d, i)
power(d, i)
d ^ i
corr(d, i)
regr_count(d, i)
covar_pop(d, i)
d = i
div(d, i)
log(d, i)
d + b
d - b
d * b
d / b
nullif(d, b)
coalesce(d, b)
case when bo then d else b end
greatest(d, b)
least(d, b)
(select d union all select b limit 1)
d % b
mod(d, b)
power(d, b)
d ^ b
corr(d, b)
regr_count(d, b)
covar_pop(d, b)
d = b
div(d, b)
log(d, b)
d + d
d - d
d * d
d / d
nullif(d, d)
coalesce(d, d)
case when bo then d else d end
greatest(d, d)
least(d, d)
(select d union all select d limit 1)
d % d
mod(d, d)
power(d, d)
d ^ d
corr(d, d)
regr_count(d, d)
covar_pop(d, d)
d = d
div(d, d)
log(d, d)
d + n
d - n
d * n
d / n
nullif(d, n)
coalesce(d, n)
case when bo then d else n end
greatest(d, n)
least(d, n)
(select d union all select n limit 1)
d % n
mod(d, n)
power(d, n)
d ^ n
corr(d, n)
regr_count(d, n)
covar_pop(d, n)
d = n
div(d, n)
log(d, n)
d + r
d - r
d * r
d / r
nullif(d, r)
coalesce(d, r)
case when bo then d else r end
greatest(d, r)
least(d, r)
(select d union all select r limit 1)
power(d, r)
d ^ r
corr(d, r)
regr_count(d, r)
covar_pop(d, r)
d = r
d + f
d - f
d * f
d / f
nullif(d, f)
coalesce(d, f)
case when bo then d else f end
greatest(d, f)
least(d, f)
(select d union all select f limit 1)
power(d, f)
d ^ f
corr(d, f)
regr_count(d, f)
covar_pop(d, f)
d = f
n
sum(n)
avg(n)
min(n)
max(n)
count(n)
variance(n)
var_pop(n)
stddev(n)
stddev_pop(n)
abs(n)
sign(n)
floor(n)
ceil(n)
ceiling(n)
round(n)
trunc(n)
sqrt(n)
exp(n)
ln(n)
log(n)
log10(n)
cbrt(n)
degrees(n)
radians(n)
sin(n)
atan(n)
-n
+n
nullif(n, 1)
nullif(1, n)
coalesce(n, 0)
coalesce(n, 0.5)
lag(n) over (order by i)
first_value(n) over (order by i)
sum(n) over (order by i)
avg(n) over (order by i)
max(n) over (partition by t)
sum(n) / count(*)
sum(n) / nullif(sum(i), 0)
(select max(n) from typed)
(select n from typed limit 1)
round(n::numeric, 2)
trunc(n::numeric, 1)
count(distinct n)
sum(distinct n)
to_char(n, '999')
n::text
interval '1 hour' * n
n + s
n - s
n * s
n / s
nullif(n, s)
coalesce(n, s)
case when bo then n else s end
greatest(n, s)
least(n, s)
(select n union all select s limit 1)
n % s
mod(n, s)
power(n, s)
n ^ s
corr(n, s)
regr_count(n, s)
covar_pop(n, s)
n = s
div(n, s)
log(n, s)
n + i
n - i
n * i
n / i
nullif(n, i)
coalesce(n, i)
case when bo then n else i end
greatest(n, i)
least(n, i)
(select n union all select i limit 1)
n % i
mod(n, i)
power(n, i)
n ^ i
corr(n, i)
regr_count(n, i)
covar_pop(n, i)
n = i
div(n, i)
log(n, i)
n + b
n - b
n * b
n / b
nullif(n, b)
coalesce(n, b)
case when bo then n else b end
greatest(n, b)
least(n, b)
(select n union all select b limit 1)
n % b
mod(n, b)
power(n, b)
n ^ b
corr(n, b)
regr_count(n, b)
covar_pop(n, b)
n = b
div(n, b)
log(n, b)
n + d
n - d
n * d
n / d
nullif(n, d)
coalesce(n, d)
case when bo then n else d end
greatest(n, d)
least(n, d)
(select n union all select d limit 1)
n % d
mod(n, d)
power(n, d)
n ^ d
corr(n, d)
regr_count(n, d)
covar_pop(n, d)
n = d
div(n, d)
log(n, d)
n + n
n - n
n * n
n / n
nullif(n, n)
coalesce(n, n)
case when bo then n else n end
greatest(n, n)
least(n, n)
(select n union all select n limit 1)
n % n
mod(n, n)
power(n, n)
n ^ n
corr(n, n)
regr_count(n, n)
covar_pop(n, n)
n = n
div(n, n)
log(n, n)
n + r
n - r
n * r
n / r
nullif(n, r)
coalesce(n, r)
case when bo then n else r end
greatest(n, r)
least(n, r)
(select n union all select r limit 1)
power(n, r)
n ^ r
corr(n, r)
regr_count(n, r)
covar_pop(n, r)
n = r
n + f
n - f
n * f
n / f
nullif(n, f)
coalesce(n, f)
case when bo then n else f end
greatest(n, f)
least(n, f)
(select n union all select f limit 1)
power(n, f)
n ^ f
corr(n, f)
regr_count(n, f)
covar_pop(n, f)
n = f
r
sum(r)
avg(r)
min(r)
max(r)
count(r)
variance(r)
var_pop(r)
stddev(r)
stddev_pop(r)
abs(r)
sign(r)
floor(r)
ceil(r)
ceiling(r)
round(r)
trunc(r)
sqrt(r)
exp(r)
ln(r)
log(r)
log10(r)
cbrt(r)
degrees(r)
radians(r)
sin(r)
atan(r)
-r
+r
nullif(r, 1)
nullif(1, r)
coalesce(r, 0)
coalesce(r, 0.5)
lag(r) over (order by i)
first_value(r) over (order by i)
sum(r) over (order by i)
avg(r) over (order by i)
max(r) over (partition by t)
sum(r) / count(*)
sum(r) / nullif(sum(i), 0)
(select max(r) from typed)
(select r from typed limit 1)
round(r::numeric, 2)
trunc(r::numeric, 1)
count(distinct r)
sum(distinct r)
to_char(r, '999')
r::text
interval '1 hour' * r
r + s
r - s
r * s
r / s
nullif(r, s)
coalesce(r, s)
case when bo then r else s end
greatest(r, s)
least(r, s)
(select r union all select s limit 1)
power(r, s)
r ^ s
corr(r, s)
regr_count(r, s)
covar_pop(r, s)
r = s
r + i
r - i
r * i
r / i
nullif(r, i)
coalesce(r, i)
case when bo then r else i end
greatest(r, i)
least(r, i)
(select r union all select i limit 1)
power(r, i)
r ^ i
corr(r, i)
regr_count(r, i)
covar_pop(r, i)
r = i
r + b
r - b
r * b
r / b
nullif(r, b)
coalesce(r, b)
case when bo then r else b end
greatest(r, b)
least(r, b)
(select r union all select b limit 1)
power(r, b)
r ^ b
corr(r, b)
regr_count(r, b)
covar_pop(r, b)
r = b
r + d
r - d
r * d
r / d
nullif(r, d)
coalesce(r, d)
case when bo then r else d end
greatest(r, d)
least(r, d)
(select r union all select d limit 1)
power(r, d)
r ^ d
corr(r, d)
regr_count(r, d)
covar_pop(r, d)
r = d
r + n
r - n
r * n
r / n
nullif(r, n)
coalesce(r, n)
case when bo then r else n end
greatest(r, n)
least(r, n)
(select r union all select n limit 1)
power(r, n)
r ^ n
corr(r, n)
regr_count(r, n)
covar_pop(r, n)
r = n
r + r
r - r
r * r
r / r
nullif(r, r)
coalesce(r, r)
case when bo then r else r end
greatest(r, r)
least(r, r)
(select r union all select r limit 1)
power(r, r)
r ^ r
corr(r, r)
regr_count(r, r)
covar_pop(r, r)
r = r
r + f
r - f
r * f
r / f
nullif(r, f)
coalesce(r, f)
case when bo then r else f end
greatest(r, f)
least(r, f)
(select r union all select f limit 1)
power(r, f)
r ^ f
corr(r, f)
regr_count(r, f)
covar_pop(r, f)
r = f
f
sum(f)
avg(f)
min(f)
max(f)
count(f)
variance(f)
var_pop(f)
stddev(f)
stddev_pop(f)
abs(f)
sign(f)
floor(f)
ceil(f)
ceiling(f)
round(f)
trunc(f)
sqrt(f)
exp(f)
ln(f)
log(f)
log10(f)
cbrt(f)
degrees(f)
radians(f)
sin(f)
atan(f)
-f
+f
nullif(f, 1)
nullif(1, f)
coalesce(f, 0)
coalesce(f, 0.5)
lag(f) over (order by i)
first_value(f) over (order by i)
sum(f) over (order by i)
avg(f) over (order by i)
max(f) over (partition by t)
sum(f) / count(*)
sum(f) / nullif(sum(i), 0)
(select max(f) from typed)
(select f from typed limit 1)
round(f::numeric, 2)
trunc(f::numeric, 1)
count(distinct f)
sum(distinct f)
to_char(f, '999')
f::text
interval '1 hour' * f
f + s
f - s
f * s
f / s
nullif(f, s)
coalesce(f, s)
case when bo then f else s end
greatest(f, s)
least(f, s)
(select f union all select s limit 1)
power(f, s)
f ^ s
corr(f, s)
regr_count(f, s)
covar_pop(f, s)
f = s
f + i
f - i
f * i
f / i
nullif(f, i)
coalesce(f, i)
case when bo then f else i end
greatest(f, i)
least(f, i)
(select f union all select i limit 1)
power(f, i)
f ^ i
corr(f, i)
regr_count(f, i)
covar_pop(f, i)
f = i
f + b
f - b
f * b
f / b
nullif(f, b)
coalesce(f, b)
case when bo then f else b end
greatest(f, b)
least(f, b)
(select f union all select b limit 1)
power(f, b)
f ^ b
corr(f, b)
regr_count(f, b)
covar_pop(f, b)
f = b
f + d
f - d
f * d
f / d
nullif(f, d)
coalesce(f, d)
case when bo then f else d end
greatest(f, d)
least(f, d)
(select f union all select d limit 1)
power(f, d)
f ^ d
corr(f, d)
regr_count(f, d)
covar_pop(f, d)
f = d
f + n
f - n
f * n
f / n
nullif(f, n)
coalesce(f, n)
case when bo then f else n end
greatest(f, n)
least(f, n)
(select f union all select n limit 1)
power(f, n)
f ^ n
corr(f, n)
regr_count(f, n)
covar_pop(f, n)
f = n
f + r
f - r
f * r
f / r
nullif(f, r)
coalesce(f, r)
case when bo then f else r end
greatest(f, r)
least(f, r)
(select f union all select r limit 1)
power(f, r)
f ^ r
corr(f, r)
regr_count(f, r)
covar_pop(f, r)
f = r
f + f
f - f
f * f
f / f
nullif(f, f)
coalesce(f, f)
case when bo then f else f end
greatest(f, f)
least(f, f)
(select f union all select f limit 1)
power(f, f)
f ^ f
corr(f, f)
regr_count(f, f)
covar_pop(f, f)
f = f
bit_and(s)
bit_or(s)
bit_xor(s)
~s
s << 1
s >> 1
chr(65 + s::integer)
dt + s::integer
s & s
s | s
s # s
gcd(s::bigint, s)
lcm(s::integer, s::integer)
s & i
s | i
s # i
gcd(s::bigint, i)
lcm(s::integer, i::integer)
s & b
s | b
s # b
gcd(s::bigint, b)
lcm(s::integer, b::integer)
gcd(s, s::integer)
bit_and(i)
bit_or(i)
bit_xor(i)
~i
i << 1
i >> 1
chr(65 + i::integer)
dt + i::integer
i & i
i & s
i | s
i # s
gcd(i::bigint, s)
lcm(i::integer, s::integer)
i | i
i # i
gcd(i::bigint, i)
lcm(i::integer, i::integer)
i & b
i | b
i # b
gcd(i::bigint, b)
lcm(i::integer, b::integer)
gcd(i, i::integer)
bit_and(b)
bit_or(b)
bit_xor(b)
~b
b << 1
b >> 1
chr(65 + b::integer)
dt + b::integer
b & b
b & s
b | s
b # s
gcd(b::bigint, s)
lcm(b::integer, s::integer)
b & i
b | i
b # i
gcd(b::bigint, i)
lcm(b::integer, i::integer)
b | b
b # b
gcd(b::bigint, b)
lcm(b::integer, b::integer)
gcd(b, b::bigint)
extract(year from ts)
extract(year from dt)
date_part('year', ts)
extract(year from iv)
extract(year from tz)
extract(month from ts)
extract(month from dt)
date_part('month', ts)
extract(month from iv)
extract(month from tz)
extract(day from ts)
extract(day from dt)
date_part('day', ts)
extract(day from iv)
extract(day from tz)
extract(hour from ts)
date_part('hour', ts)
extract(hour from iv)
extract(hour from tm)
extract(hour from tz)
extract(minute from ts)
date_part('minute', ts)
extract(minute from iv)
extract(minute from tm)
extract(minute from tz)
extract(second from ts)
date_part('second', ts)
extract(second from iv)
extract(second from tm)
extract(second from tz)
extract(epoch from ts)
extract(epoch from dt)
date_part('epoch', ts)
extract(epoch from iv)
extract(epoch from tm)
extract(epoch from tz)
extract(dow from ts)
extract(dow from dt)
date_part('dow', ts)
extract(dow from tz)
extract(doy from ts)
extract(doy from dt)
date_part('doy', ts)
extract(doy from tz)
extract(week from ts)
extract(week from dt)
date_part('week', ts)
extract(week from tz)
extract(quarter from ts)
extract(quarter from dt)
date_part('quarter', ts)
extract(quarter from tz)
extract(isodow from ts)
extract(isodow from dt)
date_part('isodow', ts)
extract(isodow from tz)
extract(century from ts)
extract(century from dt)
date_part('century', ts)
extract(century from tz)
extract(decade from ts)
extract(decade from dt)
date_part('decade', ts)
extract(decade from tz)
extract(millisecond from ts)
date_part('millisecond', ts)
extract(millisecond from tz)
extract(microsecond from ts)
date_part('microsecond', ts)
extract(microsecond from tz)
extract(hour from ts) + extract(minute from ts) / 60
extract(year from dt) / 10
sum(extract(year from dt))
round(extract(hour from ts) / 7, 3)
count(*) / sum(count(*) + 1) over ()
row_number() over ()
rank() over (order by i)
dense_rank() over (order by i)
percent_rank() over (order by i)
cume_dist() over (order by i)
ntile(4) over (order by i)
lead(i, 1, 0) over (order by i)
lead(i, 1, 0.5) over (order by i)
nth_value(t, 2) over (order by i)
count(*) over ()
count(*)
count(t)
max(t)
max(v)
min(c)
max(dt)
max(ts)
max(tz)
max(tm)
max(iv)
sum(iv)
avg(iv)
bool_and(bo)
bool_or(bo)
every(bo)
string_agg(t, ',')
length(t)
char_length(v)
octet_length(t)
bit_length(t)
strpos(t, v)
position(t in v)
ascii(t)
upper(v)
lower(c)
initcap(t)
left(t, 2)
right(v, 2)
substr(t, 1, 2)
substring(v from 1 for 2)
replace(t, v, c)
t || v
v || i
concat(i, t)
concat_ws(',', i, t)
trim(v)
ltrim(c)
lpad(t, 5)
repeat(t, 2)
reverse(v)
split_part(t, ',', 1)
starts_with(t, v)
md5(t)
md5(by)
sha256(by)
encode(by, 'hex')
decode(t, 'hex')
get_byte(by, 0)
get_bit(by, 0)
set_byte(by, 0, 1)
length(by)
by || by
substr(by, 1, 1)
regexp_count(t, v)
regexp_instr(t, v)
regexp_replace(t, v, c)
regexp_like(t, v)
regexp_substr(t, v)
dt - dt
dt + 1
dt - 1
dt + iv
ts - ts
tz - tz
tm - tm
ts + iv
tz + iv
tm + iv
iv + iv
iv / 2
dt + tm
age(ts, ts)
date_trunc('day', ts)
date_trunc('day', tz)
date_trunc('day', dt)
date_trunc('day', iv)
make_date(2020, 1, 2)
to_date(t, 'YYYY')
to_timestamp(t, 'YYYY')
to_timestamp(f)
justify_days(iv)
now()
current_date
current_timestamp
localtimestamp
localtime
ts at time zone 'UTC'
tz at time zone 'UTC'
ts::date
ts::time
tz::timestamp
t::varchar
t::varchar(3)
t::char(3)
i::smallint
i::bigint
i::numeric
i::numeric(5,1)
i::real
i::double precision
t = v
bo and bo
not bo
t is null
i in (1, 2)
exists (select 1)
i between 1 and 2
t like v
pi()
u
by
iv
tm
dt
ts
tz
t
v
c
bo
nullif(t, v)
nullif(v, v)
nullif(c, c)
nullif(dt, ts::date)
coalesce(t, v)
coalesce(v, v)
coalesce(c, c)
coalesce(dt, dt)
coalesce(dt, ts)
case when bo then 1 end
case when bo then null else 2 end
case when bo then v end
greatest(t, v)
least(dt, dt)
null
1
2147483647
2147483648
-2147483648
9223372036854775808
1.5
1e3
'a'
'a'::text
true
1 + 1
1 / 2
1 / 2.0
5 / nullif(2, 0.0)
2 ^ 3
2.0 ^ 3
1 % 2
abs(-1)
abs(-3000000000)
round(5)
round(5.5)
ceil(5)
sign(5)
mod(5, 3)
div(5, 3)
trunc(5)
power(2, 3)
sqrt(4)
exp(1)
ln(2)
length('abc')
sum(1)
sum(1.5)
avg(1)
sum(length(t))
max(length(t))
sum(count(*)) over ()
cast(1 as smallint)
coalesce(v, 'x')
coalesce('x', v)
coalesce(v, t)
coalesce(v, t, 'x')
case when bo then v else 'x' end
case when bo then 'x' else v end
case when bo then v end || 'x'
greatest('x', v)
least(v, 'x', null)
coalesce(v::varchar(3), v)
(select x from (values (null::bigint), (1)) y (x))
(select x from (values (1), (null::smallint)) y (x))
(select x from (values (null::bigint)) y (x))
(select x from (values (null::varchar(3)), ('x')) y (x))
coalesce(null::smallint, null::bigint)
case when bo then null::integer else null::numeric end
(select v from typed union select 'x')
(select v from typed union all select null)
(select t from typed union all select v)
(select b from typed union all select null::integer)
lag(v, 1, 'x') over ()
lag(i, 1, null::integer) over ()
first_value(coalesce(v, 'x')) over ()
