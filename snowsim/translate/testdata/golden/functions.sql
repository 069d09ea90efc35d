--! Functions and expressions: what Snowflake's documentation says, on Postgres.

SELECT 7 / 2, 7 % 3, 7 / 2.0, 1e3 / 4, 10 / 3, -7 / 2, DIV0(1, 0), 2 + 3 * 4
----
7 / 2 fixed | 7 % 3 fixed(38,0) | 7 / 2.0 fixed | 1E3 / 4 fixed | 10 / 3 fixed | -7 / 2 fixed | DIV0(1, 0) fixed | 2 + 3 * 4 fixed(38,0)
3.500000 | 1 | 3.500000 | 250.000000 | 3.333333 | -3.500000 | 0 | 14

SELECT 1 / 0
----
error 100051 (22012): Division by zero

SELECT IFF(1 > 2, 'a', 'b') AS iff, NVL(NULL, 'n') AS nvl, NVL2('x', 1, 2) AS nvl2, ZEROIFNULL(NULL::INT) AS z, NULLIFZERO(0) AS nz, COALESCE(NULL, 2) AS c, DECODE(2, 1, 'one', 2, 'two', 'many') AS d, EQUAL_NULL(NULL, NULL) AS e
----
IFF text | NVL text | NVL2 fixed(38,0) | Z fixed | NZ fixed(38,0) | C fixed(38,0) | D text | E boolean
b | n | 1 | 0 | NULL | 2 | two | t

SELECT GREATEST(1, 5, 3) AS g, GREATEST(1, NULL::INT) AS n, LEAST('b', 'a') AS l
----
G fixed(38,0) | N fixed | L text
5 | NULL | a

SELECT SUBSTR('hello', 2, 3) AS a, SUBSTR('hello', -3) AS b, LEFT('hello', 2) AS c, RIGHT('hello', 2) AS d, LENGTH('héllo') AS e, UPPER('é') AS f, CONCAT('a', 1, TRUE) AS g, SPLIT_PART('a-b-c', '-', 2) AS h, LPAD('7', 3, '0') AS i, REPLACE('aXb', 'X') AS j, CONTAINS('abc', 'b') AS k, STARTSWITH('abc', 'ab') AS l, ENDSWITH('abc', 'bc') AS m, TRIM('  x ') AS n, CHARINDEX('c', 'abc') AS o, POSITION('b' IN 'abc') AS p, INITCAP('one two') AS q
----
A text | B text | C text | D text | E fixed(38,0) | F text | G text | H text | I text | J text | K boolean | L boolean | M boolean | N text | O fixed(38,0) | P fixed(38,0) | Q text
ell | llo | he | lo | 5 | é | a1true | b | 007 | ab | t | t | t | x | 3 | 2 | One Two

SELECT 'a' || 1 || TRUE || NULL AS n, 'a' || 1 || TRUE AS x, 'x' LIKE 'X' AS l, 'x' ILIKE 'X' AS i, 'a_b' LIKE 'a\\_b' ESCAPE '\\' AS e, 'axb' LIKE 'a\\_b' ESCAPE '\\' AS ne, 'abc' RLIKE 'a.c' AS r, 'xabc' RLIKE 'a.c' AS nr, 'b' LIKE ANY ('a%', 'b%') AS any
----
N text | X text | L boolean | I boolean | E boolean | NE boolean | R boolean | NR boolean | ANY boolean
NULL | a1true | f | t | t | f | t | f | t

SELECT MD5('abc'), SHA2('abc'), LENGTH(UUID_STRING()) AS u
----
MD5('ABC') text | SHA2('ABC') text | U fixed(38,0)
900150983cd24fb0d6963f7d28e17f72 | ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad | 36

SELECT TO_VARCHAR(12.50) AS a, TO_NUMBER('12.7') AS b, TO_NUMBER('12.745', 10, 2) AS c, '5'::INT + 1 AS d, CAST('2024-01-31' AS DATE) AS e, TRY_TO_NUMBER('x') AS f, TRY_CAST('7' AS INT) AS g, TRY_CAST('x' AS DATE) AS h, TO_BOOLEAN('yes') AS i, 1::BOOLEAN AS j, TRUE::INT AS k, 'abc'::VARCHAR(2) AS l, TO_DOUBLE('1.5') AS m
----
A text | B fixed(38,0) | C fixed(10,2) | D fixed | E date | F fixed | G fixed | H date | I boolean | J boolean | K fixed(38,0) | L text | M real
12.50 | 13 | 12.75 | 6 | 2024-01-31 | NULL | 7 | NULL | t | t | 1 | ab | 1.5

SELECT TO_NUMBER('abc')
----
error 100038 (22018): Numeric value 'abc' is not recognized

SELECT TO_DATE('2024-13-01')
----
error 100040 (22007): Date '2024-13-01' is not recognized

SELECT TO_TIMESTAMP('when')
----
error 100035 (22007): Timestamp 'when' is not recognized

SELECT TO_BOOLEAN('perhaps')
----
error 100037 (22018): Boolean value 'perhaps' is not recognized

SELECT PARSE_JSON('{"a":')
----
error 100069 (22P02): Error parsing JSON: The input string ended unexpectedly.

SELECT DATEADD(day, 1, '2024-02-28'::DATE) AS a, DATEADD(month, 1, '2024-01-31'::DATE) AS b, DATEADD('hour', 1, '2024-01-01'::DATE) AS c, DATEADD(ms, 1500, '2024-01-01 00:00:00'::TIMESTAMP_NTZ) AS d, DATEADD(year, -1, TO_TIMESTAMP_NTZ('2024-02-29')) AS e, '2024-01-01'::DATE + 5 AS f, TIMESTAMPADD(minute, -90, '2024-01-01 00:00:00') AS g
----
A date | B date | C timestamp_ntz | D timestamp_ntz | E timestamp_ntz | F date | G timestamp_ntz
2024-02-29 | 2024-02-29 | 2024-01-01 01:00:00 | 2024-01-01 00:00:01.5 | 2023-02-28 00:00:00 | 2024-01-06 | 2023-12-31 22:30:00

SELECT DATEDIFF(day, '2024-01-01 23:59:59', '2024-01-02 00:00:01') AS d, DATEDIFF(hour, '2024-01-01 00:59:59', '2024-01-01 01:00:00') AS h, TIMESTAMPDIFF(second, '2024-01-01 00:00:00'::TIMESTAMP, '2024-01-01 00:01:00'::TIMESTAMP) AS s, DATEDIFF(month, '2024-01-31', '2024-02-01') AS m, DATEDIFF(year, '2023-12-31', '2024-01-01') AS y, DATEDIFF(millisecond, '2024-01-01 00:00:00', '2024-01-01 00:00:01.5') AS ms
----
D fixed(38,0) | H fixed(38,0) | S fixed(38,0) | M fixed(38,0) | Y fixed(38,0) | MS fixed(38,0)
1 | 1 | 60 | 1 | 1 | 1500

SELECT DATEDIFF(fortnight, '2024-01-01', '2024-01-02')
----
error 001076 (42601): SQL compilation error:\n'fortnight' is not a valid date/time component.

SELECT DATE_TRUNC('month', '2024-03-15'::DATE) AS a, DATE_TRUNC('hour', '2024-03-15 12:34:56'::TIMESTAMP) AS b, TRUNC('2024-03-15'::DATE, 'YEAR') AS c, EXTRACT(year FROM '2024-03-15'::DATE) AS d, DATE_PART(epoch_second, '1970-01-02'::TIMESTAMP) AS e, YEAR('2024-03-15'::DATE) AS f, DAYOFWEEK('2024-03-17'::DATE) AS g, LAST_DAY('2024-02-03'::DATE) AS h, DAYNAME('2024-03-15'::DATE) AS i, DATE_FROM_PARTS(2024, 2, 30) AS j, TO_VARCHAR('2024-03-15 01:02:03'::TIMESTAMP, 'YYYY/MM/DD HH24:MI:SS.FF3') AS k
----
A date | B timestamp_ntz | C date | D fixed(38,0) | E fixed(38,0) | F fixed(38,0) | G fixed(38,0) | H date | I text | J date | K text
2024-03-01 | 2024-03-15 12:00:00 | 2024-01-01 | 2024 | 86400 | 2024 | 0 | 2024-02-29 | Fri | 2024-03-01 | 2024/03/15 01:02:03.000

SELECT TO_TIMESTAMP(1700000000) AS a, TO_TIMESTAMP_NTZ(1700000000123, 3) AS b, TO_TIMESTAMP('1700000000') AS c, TO_TIMESTAMP_LTZ('2024-01-01 00:00:00 +0100') AS d, CONVERT_TIMEZONE('UTC', 'America/New_York', '2024-01-01 12:00:00'::TIMESTAMP_NTZ) AS e, TO_TIMESTAMP('31.12.2024 10:00', 'DD.MM.YYYY HH24:MI') AS f
----
A timestamp_ntz | B timestamp_ntz | C timestamp_ntz | D timestamp_ltz | E timestamp_ntz | F timestamp_ntz
2023-11-14 22:13:20 | 2023-11-14 22:13:20.123 | 2023-11-14 22:13:20 | 2023-12-31 23:00:00+00 | 2024-01-01 07:00:00 | 2024-12-31 10:00:00

SELECT CURRENT_TIMESTAMP() AS a, SYSDATE() AS b, CURRENT_DATE AS c, TO_VARCHAR(CURRENT_TIMESTAMP) AS d, DATEADD(day, -1, CURRENT_TIMESTAMP()) AS e
----
A timestamp_ltz | B timestamp_ntz | C date | D text | E timestamp_ltz
2026-03-01 12:00:00+00 | 2026-03-01 12:00:00 | 2026-03-01 | 2026-03-01 12:00:00.000 +0000 | 2026-02-28 12:00:00+00

SELECT ROUND(2.5), ROUND(-2.555, 2), FLOOR(2.7), CEIL(2.1), TRUNC(2.789, 1), ABS(-3), MOD(7, 3), SQRT(16), POWER(2, 10), SIGN(-2), LN(1)
----
ROUND(2.5) fixed | ROUND(-2.555, 2) fixed | FLOOR(2.7) fixed | CEIL(2.1) fixed | TRUNC(2.789, 1) fixed | ABS(-3) fixed(38,0) | MOD(7, 3) fixed(38,0) | SQRT(16) real | POWER(2, 10) real | SIGN(-2) fixed | LN(1) real
3 | -2.56 | 2 | 3 | 2.7 | 3 | 1 | 4 | 1024 | -1 | 0

SELECT 1 AS a UNION ALL SELECT 2 UNION SELECT 2 ORDER BY a DESC
----
A fixed(38,0)
2
1

SELECT CASE WHEN 1 = 1 THEN 'x' ELSE 'y' END AS c, CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' END AS d, NOT TRUE AS n, 3 BETWEEN 1 AND 5 AS b, 3 NOT IN (1, 2) AS i, NULL IS NULL AS nn, 1 IS DISTINCT FROM NULL AS dist
----
C text | D text | N boolean | B boolean | I boolean | NN boolean | DIST boolean
x | b | f | t | t | t | t

SELECT $1, $2 FROM VALUES (1, 'a'), (2, 'b') ORDER BY 1 LIMIT 1 OFFSET 1
----
COLUMN1 fixed(38,0) | COLUMN2 text
2 | b

SELECT column1 FROM (VALUES (3), (4)) ORDER BY 1
----
COLUMN1 fixed(38,0)
3
4

WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 4) SELECT SUM(n) AS total FROM c
----
TOTAL fixed(38,0)
10

WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM a, b
----
X fixed(38,0) | Y fixed(38,0)
1 | 2

SELECT COUNT(*) AS n, COUNT(DISTINCT SEQ8() % 3) AS d FROM TABLE(GENERATOR(ROWCOUNT => 10))
----
N fixed(38,0) | D fixed(38,0)
10 | 3

SELECT SEQ4() AS n, UNIFORM(1, 6, RANDOM(42)) AS die, LENGTH(RANDSTR(100, RANDOM(1))) AS len, RANDOM(5) = RANDOM(5) AS same FROM TABLE(GENERATOR(ROWCOUNT => 3)) ORDER BY n
----
N fixed(38,0) | DIE fixed(38,0) | LEN fixed(38,0) | SAME boolean
0 | 4 | 100 | t
1 | 3 | 100 | t
2 | 1 | 100 | t

SELECT MIN(u) >= 10 AND MAX(u) <= 20 AND COUNT(DISTINCT u) = 11 AS whole, MIN(f) >= 0 AND MAX(f) < 1 AS unit, AVG(g) BETWEEN 4.9 AND 5.1 AS mean FROM (SELECT UNIFORM(10, 20, RANDOM(1)) AS u, UNIFORM(0::FLOAT, 1::FLOAT, RANDOM(2)) AS f, NORMAL(5, 1, RANDOM(3)) AS g FROM TABLE(GENERATOR(ROWCOUNT => 10000)))
----
WHOLE boolean | UNIT boolean | MEAN boolean
t | t | t

CREATE TABLE g AS SELECT ROW_NUMBER() OVER (ORDER BY SEQ8()) AS id, MOD(SEQ8(), 3) AS grp, DATEADD(minute, SEQ4(), '2024-01-01'::TIMESTAMP_NTZ) AS at, RANDSTR(5, RANDOM(9)) AS name FROM TABLE(GENERATOR(ROWCOUNT => 1000))
----
status text
Table G successfully created.

SELECT grp, COUNT(*) AS n, MIN(id), MAX(at) FROM g GROUP BY ALL ORDER BY grp
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

SELECT * FROM g QUALIFY id <= 2 ORDER BY id LIMIT 1
----
ID fixed(38,0) | GRP fixed(38,0) | AT timestamp_ntz | NAME text
1 | 0 | 2024-01-01 00:00:00 | 8QQmg

SELECT PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY id) AS p95, MEDIAN(id) AS m, APPROX_PERCENTILE(id, 0.5) AS ap, LISTAGG(DISTINCT grp, ',') WITHIN GROUP (ORDER BY grp) AS l, COUNT_IF(grp = 0) AS c, ARRAY_AGG(DISTINCT grp) WITHIN GROUP (ORDER BY grp) AS a FROM g
----
P95 real | M real | AP real | L text | C fixed(38,0) | A variant
950.05 | 500.5 | 500.5 | 0,1,2 | 334 | [0, 1, 2]

SELECT FIRST_VALUE(id) OVER (PARTITION BY grp ORDER BY id) AS f, LAST_VALUE(id) OVER (PARTITION BY grp ORDER BY id) AS l, LAG(id) OVER (ORDER BY id) AS lag, SUM(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM g ORDER BY id LIMIT 2
----
F fixed | L fixed | LAG fixed | S fixed
1 | 1000 | NULL | 1
2 | 998 | 1 | 3

SELECT COUNT(*) FROM g SAMPLE (7 ROWS)
----
COUNT(*) fixed(38,0)
7

SELECT COUNT(*) BETWEEN 300 AND 700 AS about FROM g TABLESAMPLE BERNOULLI (50) SEED (3)
----
ABOUT boolean
t

SELECT COUNT(*) FROM g AS x SAMPLE (100)
----
COUNT(*) fixed(38,0)
1000

SELECT a.id, b.id AS bid FROM g a LEFT JOIN g b ON a.id = b.id + 999 WHERE a.id IN (1, 1000) ORDER BY a.id
----
ID fixed(38,0) | BID fixed(38,0)
1 | NULL
1000 | 1

SELECT id FROM g WHERE id = ANY (SELECT 5) OR EXISTS (SELECT 1 FROM g i WHERE i.id = g.id AND i.id = 7) ORDER BY 1
----
ID fixed(38,0)
5
7

SELECT public.g.id FROM public.g WHERE loadstone.public.g.id = 3
----
ID fixed(38,0)
3

UPDATE g SET name = s.name FROM (SELECT 1 AS id, 'one' AS name) s WHERE g.id = s.id
----
number of rows fixed(38,0)
1

DELETE FROM g USING (VALUES (2), (3)) AS v (id) WHERE g.id = v.id
----
number of rows fixed(38,0)
2

MERGE INTO g AS t USING (SELECT 1 AS id, 'merged' AS name UNION ALL SELECT 5000, 'new') AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)
----
number of rows fixed(38,0)
2

SELECT id, name FROM g WHERE id < 3 OR id > 1000 ORDER BY id
----
ID fixed(38,0) | NAME text
1 | merged
5000 | new

SET limit_of = 2
----
status text
Statement executed successfully.

SELECT COUNT(*) FROM g WHERE id <= $limit_of
----
COUNT(*) fixed(38,0)
1

SELECT COUNT(*) FROM TABLE('g') WHERE id <= 4
----
COUNT(*) fixed(38,0)
2

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
error 000002 (0A000): Unsupported feature 'FLATTEN'. It is not simulated: docs/snowflake.md lists the SQL that the stand-in understands.

SELECT id, COUNT(*) FROM g
----
error 000979 (42601): SQL compilation error:\n[G.ID] is not a valid group by expression

SELECT DATE '2024-01-01' AS d, TIMESTAMP '2024-01-01 01:02:03' AS t, INTERVAL '1 day' + '2024-01-01'::DATE AS i
----
D date | T timestamp_ntz | I timestamp_ntz
2024-01-01 | 2024-01-01 01:02:03 | 2024-01-02 00:00:00

