package translate

// functions are the functions that are one expression of Postgres; see expand
// for the templates. What Postgres does not have is in prelude.sql.
var functions = map[string]string{
	// Numbers.
	"ABS": "abs({1})", "CEIL": "ceil({1})", "FLOOR": "floor({1})", "ROUND": "round({1n}) ¦ round({1n}, {2i})",
	"MOD": "mod({1}, {2})",
	// Conditions.
	"COALESCE": "coalesce({*})", "NVL": "coalesce({1}, {2})", "IFNULL": "coalesce({1}, {2})",
	"NULLIF": "nullif({1}, {2})", "IFF": "(CASE WHEN {1} THEN {2} ELSE {3} END)",
	// Text.
	"UPPER": "upper({1t})", "LOWER": "lower({1t})", "LENGTH": "length({1t})",
	"LEFT": "left({1t}, greatest({2i}, 0))", "RIGHT": "right({1t}, greatest({2i}, 0))",
	"LPAD": "lpad({1t}, {2i}) ¦ lpad({1t}, {2i}, {3t})", "TRIM": "btrim({1t})",
	"CONTAINS": "(strpos({1t}, {2t}) > 0)", "HASH": "hashtextextended(concat_ws(chr(31), {*}), 0)",
	// Times.
	"DATE_PART": "snowsim.date_part({1}, {2d})",
	// Semi-structured data.
	"PARSE_JSON": "({1t})::jsonb", "TO_JSON": "({1})::jsonb::text",
	// What waits.
	"SYSTEM$WAIT": "snowsim.wait({1n}, 'SECONDS') ¦ snowsim.wait({1n}, {2t})",
}

// windowFunctions need OVER.
var windowFunctions = map[string]string{"ROW_NUMBER": "row_number", "RANK": "rank", "DENSE_RANK": "dense_rank",
	"LAG": "lag", "LEAD": "lead"}

// contextFunctions may be called without parentheses.
var contextFunctions = wordSet("CURRENT_TIMESTAMP CURRENT_USER")
