-- lookup
SELECT "v""", "DOC" FROM "S"."T" WHERE "A" = ? AND "B" = ?
-- lookup of all columns
SELECT "A", "B", "C", "v""", "DOC" FROM "S"."T" WHERE "A" = ?
-- scan
SELECT "A" FROM "S"."T" WHERE "A" >= ? ORDER BY "A" LIMIT 7
-- scan with a bound limit
SELECT "A" FROM "S"."T" WHERE "A" >= ? ORDER BY "A" LIMIT ?
-- scan of two columns
SELECT "A" FROM "S"."T" WHERE "A" >= ? AND ("A" > ? OR "A" = ? AND "B" >= ?) ORDER BY "A", "B" LIMIT ? -- [0,0,0,1,2]
-- scan of three columns
SELECT "A" FROM "S"."T" WHERE "A" >= ? AND ("A" > ? OR "A" = ? AND ("B" > ? OR "B" = ? AND "C" >= ?)) ORDER BY "A", "B", "C" LIMIT 5 -- [0,0,0,1,1,2]
-- insert
INSERT INTO "S"."T" ("A", "v""") VALUES (?, ?)
-- insert of JSON
INSERT INTO "S"."T" ("A", "DOC") SELECT ?, PARSE_JSON(?)
-- update
UPDATE "S"."T" SET "v""" = ?, "DOC" = PARSE_JSON(?) WHERE "A" = ? AND "B" = ?
-- delete
DELETE FROM "S"."T" WHERE "A" = ? AND "B" = ?
-- own SQL
SELECT ?, ?, ? FROM "S"."T" -- [1,0,1]
-- SQL over tables
SELECT 3 FROM "S"."T"
refused: statement "SQL over an unknown table": its SQL names {table:u}, but there is no table "u"
refused: statement "delete without a key": it names no key, and would touch every row
refused: statement "update without a key": it names no key, and would touch every row
refused: statement "update of nothing": an update needs a column to set before the key
refused: statement "insert of nothing": the database fills every column itself, which Snowflake has no INSERT for
refused: statement "unknown column": table "S"."T" has no column "x"
refused: statement "unknown table": there is no table "u"
refused: statement "no SQL": a GENERIC_SQL statement needs SQL of its own for snowflake
refused: statement "scan without a limit": a range scan needs a limit
