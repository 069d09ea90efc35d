--! Functions and expressions: what Snowflake's documentation says, on Postgres.

SELECT 7 / 2, 7 % 3, 7 / 2.0, 1e3 / 4, 10 / 3, -7 / 2, 2 + 3 * 4
----
7 / 2 fixed | 7 % 3 fixed(38,0) | 7 / 2.0 fixed | 1E3 / 4 fixed | 10 / 3 fixed | -7 / 2 fixed | 2 + 3 * 4 fixed(38,0)
3.500000 | 1 | 3.500000 | 250.000000 | 3.333333 | -3.500000 | 14

SELECT 1 / 0
----
error 100051 (22012): Division by zero

SELECT IFF(1 > 2, 'a', 'b') AS iff, NVL(NULL, 'n') AS nvl, NULLIF(0, 0) AS nz, COALESCE(NULL, 2) AS c
----
IFF text | NVL text | NZ fixed(38,0) | C fixed(38,0)
b | n | NULL | 2

SELECT GREATEST(1, 5, 3) AS g, GREATEST(1, NULL::INT) AS n, LEAST('b', 'a') AS l
----
G fixed(38,0) | N fixed | L text
5 | NULL | a

SELECT LEFT('hello', 2) AS c, RIGHT('hello', 2) AS d, LENGTH('héllo') AS e, UPPER('é') AS f, CONCAT_WS('-', 'a', 1, TRUE) AS g, LPAD('7', 3, '0') AS i, CONTAINS('abc', 'b') AS k, TRIM('  x ') AS n
----
C text | D text | E fixed(38,0) | F text | G text | I text | K boolean | N text
he | lo | 5 | é | a-1-true | 007 | t | x

SELECT 'a' || 1 || TRUE || NULL AS n, 'a' || 1 || TRUE AS x, 'x' LIKE 'X' AS l, 'x' ILIKE 'X' AS i, 'a_b' LIKE 'a\\_b' ESCAPE '\\' AS e, 'axb' LIKE 'a\\_b' ESCAPE '\\' AS ne
----
N text | X text | L boolean | I boolean | E boolean | NE boolean
NULL | a1true | f | t | t | f

SELECT TO_VARCHAR(12.50) AS a, TO_NUMBER('12.7') AS b, '5'::INT + 1 AS d, CAST('2024-01-31' AS DATE) AS e, 1::BOOLEAN AS j, TRUE::INT AS k, 'abc'::VARCHAR(2) AS l
----
A text | B fixed(38,0) | D fixed | E date | J boolean | K fixed(38,0) | L text
12.50 | 13 | 6 | 2024-01-31 | t | 1 | ab

SELECT TO_NUMBER('abc')
----
error 100038 (22018): Numeric value 'abc' is not recognized

SELECT TO_DATE('2024-13-01')
----
error 100040 (22007): Date '2024-13-01' is not recognized

SELECT TO_TIMESTAMP('when')
----
error 100035 (22007): Timestamp 'when' is not recognized

SELECT PARSE_JSON('{"a":')
----
error 100069 (22P02): Error parsing JSON: The input string ended unexpectedly.

SELECT DATEADD(day, 1, '2024-02-28'::DATE) AS a, DATEADD(month, 1, '2024-01-31'::DATE) AS b, DATEADD('hour', 1, '2024-01-01'::DATE) AS c, DATEADD(ms, 1500, '2024-01-01 00:00:00'::TIMESTAMP_NTZ) AS d, DATEADD(year, -1, TO_TIMESTAMP_NTZ('2024-02-29')) AS e, '2024-01-01'::DATE + 5 AS f, DATEADD(minute, -90, '2024-01-01 00:00:00') AS g
----
A date | B date | C timestamp_ntz | D timestamp_ntz | E timestamp_ntz | F date | G timestamp_ntz
2024-02-29 | 2024-02-29 | 2024-01-01 01:00:00 | 2024-01-01 00:00:01.5 | 2023-02-28 00:00:00 | 2024-01-06 | 2023-12-31 22:30:00

SELECT DATEDIFF(day, '2024-01-01 23:59:59', '2024-01-02 00:00:01') AS d, DATEDIFF(hour, '2024-01-01 00:59:59', '2024-01-01 01:00:00') AS h, DATEDIFF(second, '2024-01-01 00:00:00'::TIMESTAMP, '2024-01-01 00:01:00'::TIMESTAMP) AS s, DATEDIFF(month, '2024-01-31', '2024-02-01') AS m, DATEDIFF(year, '2023-12-31', '2024-01-01') AS y, DATEDIFF(millisecond, '2024-01-01 00:00:00', '2024-01-01 00:00:01.5') AS ms
----
D fixed(38,0) | H fixed(38,0) | S fixed(38,0) | M fixed(38,0) | Y fixed(38,0) | MS fixed(38,0)
1 | 1 | 60 | 1 | 1 | 1500

SELECT DATEDIFF(fortnight, '2024-01-01', '2024-01-02')
----
error 001076 (42601): SQL compilation error:\n'fortnight' is not a valid date/time component.

SELECT DATE_PART(epoch_second, '1970-01-02'::TIMESTAMP) AS e, DATE_PART(year, '2024-03-15'::DATE) AS f, TO_VARCHAR('2024-03-15 01:02:03'::TIMESTAMP, 'YYYY/MM/DD HH24:MI:SS.FF3') AS k
----
E fixed(38,0) | F fixed(38,0) | K text
86400 | 2024 | 2024/03/15 01:02:03.000

SELECT TO_TIMESTAMP(1700000000) AS a, TO_TIMESTAMP_NTZ(1700000000123, 3) AS b, TO_TIMESTAMP('1700000000') AS c, TO_TIMESTAMP_LTZ('2024-01-01 00:00:00 +0100') AS d
----
A timestamp_ntz | B timestamp_ntz | C timestamp_ntz | D timestamp_ltz
2023-11-14 22:13:20 | 2023-11-14 22:13:20.123 | 2023-11-14 22:13:20 | 2023-12-31 23:00:00+00

SELECT CURRENT_TIMESTAMP() AS a, TO_VARCHAR(CURRENT_TIMESTAMP) AS d, DATEADD(day, -1, CURRENT_TIMESTAMP()) AS e
----
A timestamp_ltz | D text | E timestamp_ltz
2026-03-01 12:00:00+00 | 2026-03-01 12:00:00.000 +0000 | 2026-02-28 12:00:00+00

SELECT ROUND(2.5), ROUND(-2.555, 2), FLOOR(2.7), CEIL(2.1), ABS(-3), MOD(7, 3)
----
ROUND(2.5) fixed | ROUND(-2.555, 2) fixed | FLOOR(2.7) fixed | CEIL(2.1) fixed | ABS(-3) fixed(38,0) | MOD(7, 3) fixed(38,0)
3 | -2.56 | 2 | 3 | 3 | 1

SELECT 1 AS a UNION ALL SELECT 2 UNION SELECT 2 ORDER BY a DESC
----
A fixed(38,0)
2
1

SELECT CASE WHEN 1 = 1 THEN 'x' ELSE 'y' END AS c, CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' END AS d, NOT TRUE AS n, 3 BETWEEN 1 AND 5 AS b, 3 NOT IN (1, 2) AS i, NULL IS NULL AS nn
----
C text | D text | N boolean | B boolean | I boolean | NN boolean
x | b | f | t | t | t

WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM a, b
----
X fixed(38,0) | Y fixed(38,0)
1 | 2

SELECT COUNT(*) AS n, COUNT(DISTINCT SEQ8() % 3) AS d FROM TABLE(GENERATOR(ROWCOUNT => 10))
----
N fixed(38,0) | D fixed(38,0)
10 | 3

CREATE TABLE g AS SELECT ROW_NUMBER() OVER (ORDER BY SEQ8()) AS id, MOD(SEQ8(), 3) AS grp, DATEADD(minute, SEQ4(), '2024-01-01'::TIMESTAMP_NTZ) AS at, RANDSTR(5, SEQ8()) AS name FROM TABLE(GENERATOR(ROWCOUNT => 1000))
----
status text
Table G successfully created.

SELECT grp, COUNT(*) AS n, MIN(id), MAX(at) FROM g GROUP BY grp ORDER BY grp
----
GRP fixed(38,0) | N fixed(38,0) | MIN(ID) fixed | MAX(AT) timestamp_ntz
0 | 334 | 1 | 2024-01-01 16:39:00
1 | 333 | 2 | 2024-01-01 16:37:00
2 | 333 | 3 | 2024-01-01 16:38:00

SELECT grp, id FROM g QUALIFY ROW_NUMBER() OVER (PARTITION BY grp ORDER BY id DESC) = 1 ORDER BY grp
----
GRP fixed(38,0) | ID fixed(38,0)
0 | 1000
1 | 998
2 | 999

SELECT id, grp FROM g QUALIFY id <= 2 ORDER BY id LIMIT 1
----
ID fixed(38,0) | GRP fixed(38,0)
1 | 0

SELECT PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY id) AS p95, LENGTH(LISTAGG(grp, ',') WITHIN GROUP (ORDER BY grp)) AS l, COUNT_IF(grp = 0) AS c FROM g
----
P95 real | L fixed(38,0) | C fixed(38,0)
950.05 | 1999 | 334

SELECT LAG(id) OVER (ORDER BY id) AS lag, SUM(id) OVER (ORDER BY id) AS s FROM g ORDER BY id LIMIT 2
----
LAG fixed | S fixed
NULL | 1
1 | 3

SELECT COUNT(*) FROM g SAMPLE SYSTEM (100)
----
COUNT(*) fixed(38,0)
1000

SELECT COUNT(*) BETWEEN 300 AND 700 AS about FROM g SAMPLE BERNOULLI (50) SEED (3)
----
ABOUT boolean
t

SELECT COUNT(*) FROM g SAMPLE (100) AS x
----
COUNT(*) fixed(38,0)
1000

SELECT a.id, b.id AS bid FROM g a LEFT JOIN g b ON a.id = b.id + 999 WHERE a.id IN (1, 1000) ORDER BY a.id
----
ID fixed(38,0) | BID fixed(38,0)
1 | NULL
1000 | 1

SELECT id FROM g WHERE id IN (SELECT 5) OR EXISTS (SELECT 1 FROM g i WHERE i.id = g.id AND i.id = 7) ORDER BY 1
----
ID fixed(38,0)
5
7

SELECT public.g.id FROM public.g WHERE loadstone.public.g.id = 3
----
ID fixed(38,0)
3

SELECT NO_SUCH_FUNCTION(1)
----
error 002140 (42601): SQL compilation error:\nUnknown function NO_SUCH_FUNCTION.

SELECT PG_SLEEP(1)
----
error 002140 (42601): SQL compilation error:\nUnknown function PG_SLEEP.

SELECT ROW_NUMBER() FROM g
----
error 002303 (42601): SQL compilation error:\nMissing window specification for window function [ROW_NUMBER].

SELECT IFF(1)
----
error 000939 (22023): SQL compilation error:\nwrong number of arguments for function [IFF(…)], got 1

SELECT SYSTEM$WAIT(1, 'MILLISECONDS')
----
SYSTEM$WAIT(1, 'MILLISECONDS') text
waited 1 milliseconds

SELECT * FROM TABLE(FLATTEN(INPUT => PARSE_JSON('[1]')))
----
SEQ fixed(38,0) | KEY text | PATH text | INDEX fixed(38,0) | VALUE variant
1 | NULL | [0] | 0 | 1

SELECT id, COUNT(*) FROM g
----
error 000979 (42601): SQL compilation error:\n[G.ID] is not a valid group by expression

SELECT DATE '2024-01-01' AS d, TIMESTAMP '2024-01-01 01:02:03' AS t
----
D date | T timestamp_ntz
2024-01-01 | 2024-01-01 01:02:03

