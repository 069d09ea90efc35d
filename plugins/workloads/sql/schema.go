package main

const parameterSchema = `{
"$schema":"https://json-schema.org/draft/2020-12/schema",
"type":"object","additionalProperties":false,"required":["statements"],
"properties":{
"statements":{"title":"Statements","description":"What is issued: a list of {id, weight, sql, binds}, or of {id, weight, transaction: [{id, sql, binds}]} for statements that belong together.",
"type":"array","minItems":1,"maxItems":1000,"items":{
"type":"object","additionalProperties":false,"required":["id"],
"properties":{
"id":{"title":"Id","description":"The statement's name in figures: letters, digits, _ and -.","type":"string","pattern":"^[A-Za-z0-9_-]{1,100}$"},
"weight":{"title":"Weight","description":"How often it is issued, relative to the others. 1 when left out.","type":"number","minimum":0,"maximum":1000000},
"transaction":{"title":"Transaction","description":"Statements that run one after the other on one connection between BEGIN and COMMIT. The binds beside it are drawn once for all of them.",
"type":"array","minItems":1,"maxItems":256,"items":{"type":"object","additionalProperties":false,"required":["id","sql"],"properties":{` + idSchema + statementSchema + `}}},
"rollback_percent":{"title":"Rolled back","description":"How many of 100 transactions end with ROLLBACK instead of COMMIT.","type":"number","minimum":0,"maximum":100},
` + statementSchema + `}}}}}`

const idSchema = `"id":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,100}$"},`

const statementSchema = `
"sql":{"title":"SQL","description":"One SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES, TABLE, CALL, EXECUTE or COPY … TO STDOUT or FROM STDIN, the first also behind WITH; PREPARE name AS …; EXECUTE name(:a) prepares a statement under its name on each connection; in a transaction also SAVEPOINT, RELEASE, ROLLBACK TO, SET LOCAL, SET CONSTRAINTS, LOCK, DECLARE, FETCH, MOVE and CLOSE. {table} is the table of the template.","type":"string","minLength":1,"maxLength":100000},
"kind":{"title":"Kind","description":"How its figures are grouped. Told by the verb when left out; GENERIC_SQL for SELECT.","enum":["POINT_LOOKUP","RANGE_SCAN","INSERT","UPDATE","DELETE","GENERIC_SQL"]},
"writes":{"title":"Writes","description":"For a SELECT or CALL: whether it changes something.","type":"boolean"},
"rows":{"title":"Rows","description":"For an INSERT … VALUES (…), a MERGE … USING (VALUES (…)), and COPY table (…) FROM STDIN: how many rows it has, each with values of its own. 1 when left out; rows times parameters are at most 255.","type":"integer","minimum":1,"maximum":255},
"columns":{"title":"Result columns","description":"The columns of its result, in their order, where a later statement of the transaction refers to them.","type":"array","maxItems":255,"items":{"type":"string","minLength":1}},
"binds":{"title":"Parameters","description":"Where the values of :name come from.","type":"array","maxItems":255,"items":{
"type":"object","additionalProperties":false,"required":["name"],
"properties":{
"name":{"title":"Name","description":"As in the SQL, without the colon; for COPY … FROM STDIN the name of a column.","type":"string","minLength":1,"maxLength":63},
"generator":{"title":"Generator","description":"sequence: start, start+step … each number once in the whole run. uniform, zipfian: from min to max. normal: mean, stddev. choice: one of values, by weights. uuid. text: length, alphabet or pattern. timestamp: from, to. constant: value. key: a key of the table. new_key: an integer key that the table does not have yet. row: a column of a sampled row.",
"enum":["sequence","uniform","zipfian","normal","choice","uuid","text","timestamp","constant","key","new_key","row"]},
"type":{"title":"Type","description":"Told by the generator when left out: numbers are i64, or f64 with fractions; with decimals, and type text, they travel as text, as numeric columns want them.","enum":["i64","f64","text","bytes","bool","timestamp"]},
"nulls":{"title":"Nulls","description":"How many of 100 values are NULL.","type":"number","minimum":0,"maximum":100},
"ref":{"title":"Reference","description":"Instead of a generator, in a transaction: statement.column, from the first row of that earlier statement's result.","type":"string"},
"min":{"type":"number"},"max":{"type":"number"},
"decimals":{"title":"Decimals","description":"Digits behind the point, for uniform numbers as text.","type":"integer","minimum":0,"maximum":9},
"theta":{"title":"Skew","description":"Of zipfian (0.99 when left out), and of key (uniform when left out).","type":"number","minimum":0,"maximum":5},
"scrambled":{"title":"Scrambled","description":"Whether the hot values of zipfian are spread over the range instead of at its beginning. Yes when left out.","type":"boolean"},
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
