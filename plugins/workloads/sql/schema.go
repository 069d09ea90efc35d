package main

const parameterSchema = `{
"$schema":"https://json-schema.org/draft/2020-12/schema",
"type":"object","additionalProperties":false,"required":["statements"],
"properties":{
"statements":{"title":"Statements","description":"A list of {id, weight, sql, binds}, or of {id, weight, transaction: [{id, sql, binds}]}.",
"type":"array","minItems":1,"maxItems":1000,"items":{
"type":"object","additionalProperties":false,"required":["id"],
"properties":{
"id":{"title":"Id","description":"The statement's name in figures: letters, digits, _ and -.","type":"string","pattern":"^[A-Za-z0-9_-]{1,100}$"},
"weight":{"title":"Weight","description":"Relative frequency, default 1.","type":"number","minimum":0,"maximum":1000000},
"transaction":{"title":"Transaction","description":"Statements between BEGIN and COMMIT on one connection. The binds beside it are drawn once for all.",
"type":"array","minItems":1,"maxItems":256,"items":{"type":"object","additionalProperties":false,"required":["id","sql"],"properties":{` + idSchema + statementSchema + `}}},
"rollback_percent":{"title":"Rolled back","description":"Percent of transactions that end with ROLLBACK.","type":"number","minimum":0,"maximum":100},
` + statementSchema + `}}}}}`

const idSchema = `"id":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,100}$"},`

const statementSchema = `
"sql":{"title":"SQL","description":"One SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES, TABLE, CALL, EXECUTE or COPY … TO STDOUT or FROM STDIN, the first also behind WITH; PREPARE name AS …; EXECUTE name(:a) prepares a statement under its name on each connection; in a transaction also SAVEPOINT, RELEASE, ROLLBACK TO, SET LOCAL, SET CONSTRAINTS, LOCK, DECLARE, FETCH, MOVE and CLOSE. {table} is the table of the template.","type":"string","minLength":1,"maxLength":100000},
"kind":{"title":"Kind","description":"Kind in figures; by default from the verb, GENERIC_SQL for SELECT.","enum":["POINT_LOOKUP","RANGE_SCAN","INSERT","UPDATE","DELETE","GENERIC_SQL"]},
"writes":{"title":"Writes","description":"For a SELECT or CALL that writes.","type":"boolean"},
"rows":{"title":"Rows","description":"Rows of an INSERT … VALUES (…), MERGE … USING (VALUES (…)) or COPY … FROM STDIN, each with its own values. Default 1; rows times parameters at most 255.","type":"integer","minimum":1,"maximum":255},
"columns":{"title":"Result columns","description":"Result columns in order, for refs of later statements.","type":"array","maxItems":255,"items":{"type":"string","minLength":1}},
"binds":{"title":"Parameters","description":"Where the values of :name come from.","type":"array","maxItems":255,"items":{
"type":"object","additionalProperties":false,"required":["name"],
"properties":{
"name":{"title":"Name","description":"As in the SQL, without the colon; for COPY … FROM STDIN the name of a column.","type":"string","minLength":1,"maxLength":63},
"generator":{"title":"Generator","description":"sequence: start, start+step … each number once in the whole run. uniform, zipfian: from min to max. normal: mean, stddev. choice: one of values, by weights. uuid. text: length, alphabet or pattern. timestamp: from, to. constant: value. key: a key of the table. new_key: an integer key that the table does not have yet. row: a column of a sampled row.",
"enum":["sequence","uniform","zipfian","normal","choice","uuid","text","timestamp","constant","key","new_key","row"]},
"type":{"title":"Type","description":"By default the generator's: i64, or f64 with fractions; text for numeric columns.","enum":["i64","f64","text","bytes","bool","timestamp"]},
"nulls":{"title":"Nulls","description":"Percent of NULL values.","type":"number","minimum":0,"maximum":100},
"ref":{"title":"Reference","description":"In a transaction, instead of a generator: statement.column of the first row of an earlier statement.","type":"string"},
"min":{"type":"number"},"max":{"type":"number"},
"decimals":{"title":"Decimals","description":"Digits behind the point, for uniform numbers as text.","type":"integer","minimum":0,"maximum":9},
"theta":{"title":"Skew","description":"Of zipfian (0.99 when left out), and of key (uniform when left out).","type":"number","minimum":0,"maximum":5},
"scrambled":{"title":"Scrambled","description":"Zipfian: spread hot values over the range. Default true.","type":"boolean"},
"mean":{"type":"number"},"stddev":{"type":"number","minimum":0},
"start":{"type":"integer"},"step":{"type":"integer","minimum":1,"maximum":1000000000},
"values":{"title":"Values","type":"array","minItems":1,"maxItems":10000,"items":{"type":["string","number","boolean","null"]}},
"weights":{"title":"Weights of the values","type":"array","items":{"type":"number","minimum":0,"maximum":1000000}},
"value":{"title":"Value","type":["string","number","boolean","null"]},
"length":{"type":"integer","minimum":0,"maximum":65536},"min_length":{"type":"integer","minimum":0,"maximum":65536},"max_length":{"type":"integer","minimum":0,"maximum":65536},
"alphabet":{"title":"Alphabet","description":"The characters of a text; letters when left out.","type":"string","minLength":1,"maxLength":1000},
"pattern":{"title":"Pattern","description":"# is a digit, ? a lower-case letter, * either; a backslash makes the next character stand for itself.","type":"string","minLength":1,"maxLength":1000},
"from":{"title":"From","description":"2024-01-31, or 2024-01-31T12:00:00Z","type":"string"},"to":{"title":"To","type":"string"},
"column":{"title":"Column","description":"For key and row: a column of the table.","type":"string"}
}}}`
