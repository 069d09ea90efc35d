"""Uses Snowflake's own connector as anybody would, and fails where it finds something else than it put in."""
import datetime
import decimal
import json
import sys

import snowflake.connector

about = json.loads(sys.argv[1])
file = about.pop("file")
connection = snowflake.connector.connect(protocol="http", login_timeout=20, network_timeout=30, **about)
cursor = connection.cursor()


def same(sql, *want):
    got = cursor.execute(sql).fetchall()
    assert got == list(want), f"{sql}: {got}, not {want}"


same(
    "SELECT 42, -1.50::NUMBER(10,2), 99999999999999999999999999999999999999, 0.25::FLOAT, 'ä\"', NULL, TRUE",
    (42, decimal.Decimal("-1.50"), 99999999999999999999999999999999999999, 0.25, 'ä"', None, True),
)
same(
    "SELECT '1969-12-31'::DATE, '2026-11-22 12:00:00.123456'::TIMESTAMP_NTZ, '01:02:03.5'::TIME",
    (
        datetime.date(1969, 12, 31),
        datetime.datetime(2026, 11, 22, 12, 0, 0, 123456),
        datetime.time(1, 2, 3, 500000),
    ),
)
cursor.execute("CREATE TABLE T (ID NUMBER, NAME VARCHAR)")
cursor.execute("INSERT INTO T SELECT ROW_NUMBER() OVER (ORDER BY SEQ8()), 'name' FROM TABLE(GENERATOR(ROWCOUNT => 5000))")
same("SELECT COUNT(*), SUM(ID) FROM T", (5000, 12502500))
rows = cursor.execute("SELECT ID, NAME FROM T ORDER BY ID").fetchall()
assert rows == [(i, "name") for i in range(1, 5001)], f"{len(rows)} rows"
assert cursor.execute("SELECT ID FROM T WHERE ID < 0").fetchall() == []
put = cursor.execute(
    f"PUT 'file://{file}' '@~/p/' AUTO_COMPRESS = FALSE SOURCE_COMPRESSION = NONE OVERWRITE = TRUE"
).fetchall()
assert put[0][6] == "UPLOADED", put
listed = cursor.execute("LIST @~/p").fetchall()
assert [row[0] for row in listed] == ["p/file.parquet"], listed
connection.close()
