package translate

// functions are the functions that are one expression of Postgres; see expand
// for the templates. What Postgres does not have is in prelude.sql.
var functions = map[string]string{
	// Numbers.
	"ABS": "abs({1})", "CEIL": "ceil({1}) ¦ snowsim.ceil({1n}, {2i})", "FLOOR": "floor({1}) ¦ snowsim.floor({1n}, {2i})",
	"ROUND": "round({1n}) ¦ round({1n}, {2i})", "SQRT": "sqrt({1})", "SQUARE": "({1} * {1})", "POWER": "power({1}, {2})",
	"POW": "power({1}, {2})",
	"EXP": "exp({1})", "LN": "ln({1})", "LOG": "log({1n}, {2n})", "SIGN": "sign({1n})", "MOD": "mod({1}, {2})",
	"PI":  "pi()",
	"SIN": "sin({1})", "COS": "cos({1})", "TAN": "tan({1})", "ASIN": "asin({1})", "ACOS": "acos({1})", "ATAN": "atan({1})",
	"ATAN2":   "atan2({1}, {2})",
	"DEGREES": "degrees({1})", "RADIANS": "radians({1})", "CBRT": "cbrt({1})", "FACTORIAL": "factorial({1i})",
	"DIV0": "snowsim.div0({1}, {2})", "DIV0NULL": "snowsim.div0({1}, coalesce({2}, 0))",
	"WIDTH_BUCKET": "width_bucket({1n}, {2n}, {3n}, {4i})",
	"BITAND":       "(({1})::bigint & ({2})::bigint)", "BITOR": "(({1})::bigint | ({2})::bigint)",
	"BITXOR":       "(({1})::bigint # ({2})::bigint)",
	"BITSHIFTLEFT": "(({1})::bigint << {2i})", "BITSHIFTRIGHT": "(({1})::bigint >> {2i})",
	// Conditions.
	"COALESCE": "coalesce({*})", "NVL": "coalesce({1}, {2})", "IFNULL": "coalesce({1}, {2})", "NULLIF": "nullif({1}, {2})",
	"NVL2": "(CASE WHEN {1} IS NOT NULL THEN {2} ELSE {3} END)", "IFF": "(CASE WHEN {1} THEN {2} ELSE {3} END)",
	"ZEROIFNULL": "coalesce({1}, 0)", "NULLIFZERO": "nullif({1}, 0)", "EQUAL_NULL": "({1} IS NOT DISTINCT FROM {2})",
	"GREATEST_IGNORE_NULLS": "greatest({*})", "LEAST_IGNORE_NULLS": "least({*})",
	// Text.
	"UPPER": "upper({1t})", "LOWER": "lower({1t})", "LENGTH": "length({1t})", "LEN": "length({1t})",
	"OCTET_LENGTH": "octet_length({1t})",
	"SUBSTR":       "snowsim.substr({1t}, {2i}) ¦ snowsim.substr({1t}, {2i}, {3i})",
	"SUBSTRING":    "snowsim.substr({1t}, {2i}) ¦ snowsim.substr({1t}, {2i}, {3i})",
	"LEFT":         "left({1t}, greatest({2i}, 0))", "RIGHT": "right({1t}, greatest({2i}, 0))",
	"LPAD": "lpad({1t}, {2i}) ¦ lpad({1t}, {2i}, {3t})", "RPAD": "rpad({1t}, {2i}) ¦ rpad({1t}, {2i}, {3t})",
	"TRIM": "btrim({1t}) ¦ btrim({1t}, {2t})", "LTRIM": "ltrim({1t}) ¦ ltrim({1t}, {2t})",
	"RTRIM":   "rtrim({1t}) ¦ rtrim({1t}, {2t})",
	"REPLACE": "replace({1t}, {2t}, '') ¦ replace({1t}, {2t}, {3t})", "SPLIT_PART": "split_part({1t}, {2t}, {3i})",
	"REPEAT":  "repeat({1t}, {2i})",
	"REVERSE": "reverse({1t})", "INITCAP": "initcap({1t})", "CHARINDEX": "strpos({2t}, {1t})",
	"POSITION":   "strpos({2t}, {1t})",
	"STARTSWITH": "starts_with({1t}, {2t})", "ENDSWITH": "(right({1t}, length({2t})) = {2t})",
	"CONTAINS": "(strpos({1t}, {2t}) > 0)",
	"ASCII":    "ascii({1t})", "CHR": "chr({1i})", "CHAR": "chr({1i})", "TRANSLATE": "translate({1t}, {2t}, {3t})",
	"SPACE": "repeat(' ', {1i})",
	"MD5":   "md5({1t})", "MD5_HEX": "md5({1t})", "SHA1": "snowsim.sha1({1t})",
	"SHA2":          "encode(sha256(convert_to({1t}, 'UTF8')), 'hex') ¦ snowsim.sha2({1t}, {2i})",
	"HEX_ENCODE":    "upper(encode(convert_to({1t}, 'UTF8'), 'hex'))",
	"BASE64_ENCODE": "encode(convert_to({1t}, 'UTF8'), 'base64')",
	"HASH":          "hashtextextended(concat_ws(chr(31), {*}), 0)", "UUID_STRING": "gen_random_uuid()::text",
	"REGEXP_LIKE": "({1t} ~ ('^(?:' || {2t} || ')$'))", "RLIKE": "({1t} ~ ('^(?:' || {2t} || ')$'))",
	"REGEXP_REPLACE": "regexp_replace({1t}, {2t}, '', 'g') ¦ regexp_replace({1t}, {2t}, {3t}, 'g')",
	"REGEXP_SUBSTR":  "regexp_substr({1t}, {2t})",
	"REGEXP_COUNT":   "regexp_count({1t}, {2t})", "REGEXP_INSTR": "regexp_instr({1t}, {2t})",
	"EDITDISTANCE": "snowsim.editdistance({1t}, {2t})",
	// Times.
	"YEAR": "snowsim.date_part('year', {1d})", "QUARTER": "snowsim.date_part('quarter', {1d})",
	"MONTH": "snowsim.date_part('month', {1d})",
	"WEEK":  "snowsim.date_part('week', {1d})", "DAY": "snowsim.date_part('day', {1d})",
	"DAYOFMONTH": "snowsim.date_part('day', {1d})",
	"DAYOFWEEK":  "snowsim.date_part('dow', {1d})", "DAYOFWEEKISO": "snowsim.date_part('isodow', {1d})",
	"DAYOFYEAR":  "snowsim.date_part('doy', {1d})",
	"WEEKOFYEAR": "snowsim.date_part('week', {1d})", "HOUR": "snowsim.date_part('hour', {1d})",
	"MINUTE": "snowsim.date_part('minute', {1d})", "SECOND": "snowsim.date_part('second', {1d})",
	"DATE_PART": "snowsim.date_part({1}, {2d})", "EXTRACT": "snowsim.date_part({1}, {2d})",
	"LAST_DAY":                 "(date_trunc('month', {1d}) + interval '1 month' - interval '1 day')::date",
	"DATE_FROM_PARTS":          "(make_date({1i}, 1, 1) + make_interval(months => {2i} - 1, days => {3i} - 1))::date",
	"TIMESTAMP_FROM_PARTS":     "(make_date({1i}, 1, 1) + make_interval(0, {2i} - 1, 0, {3i} - 1, {4i}, {5i}, {6}))",
	"TIMESTAMP_NTZ_FROM_PARTS": "(make_date({1i}, 1, 1) + make_interval(0, {2i} - 1, 0, {3i} - 1, {4i}, {5i}, {6}))",
	"TIME_FROM_PARTS":          "make_time({1i}, {2i}, {3})",
	"DAYNAME":                  "to_char({1d}, 'Dy')", "MONTHNAME": "to_char({1d}, 'Mon')",
	"ADD_MONTHS":       "({1d} + make_interval(months => {2i}))",
	"MONTHS_BETWEEN":   "snowsim.datediff('month', {2d}, {1d})",
	"CONVERT_TIMEZONE": "snowsim.at_offset({2d}, {1t}) ¦ (({3d} AT TIME ZONE {1t}) AT TIME ZONE {2t})",
	// Semi-structured data.
	"PARSE_JSON": "({1t})::jsonb", "TRY_PARSE_JSON": "snowsim.try_json({1t})", "TO_JSON": "({1})::jsonb::text",
	"CHECK_JSON": "(CASE WHEN snowsim.try_json({1t}) IS NULL THEN 'Error parsing JSON' END)",
	"TO_VARIANT": "to_jsonb({1})", "TO_OBJECT": "to_jsonb({1})", "TO_ARRAY": "to_jsonb({1})",
	"ARRAY_CONSTRUCT":            "'[]'::jsonb ¦ jsonb_build_array({*})",
	"OBJECT_CONSTRUCT":           "'{}'::jsonb ¦ jsonb_strip_nulls(jsonb_build_object({*}))",
	"OBJECT_CONSTRUCT_KEEP_NULL": "jsonb_build_object({*})",
	"ARRAY_SIZE":                 "jsonb_array_length({1})", "GET": "snowsim.get({1}, {2})",
	"TYPEOF":         "upper(jsonb_typeof({1}))",
	"ARRAY_CONTAINS": "({2} @> {1})",
	"OBJECT_KEYS":    "snowsim.object_keys({1})", "AS_VARCHAR": "({1} #>> '{}')",
	// What checks a statement's privileges or waits.
	"SYSTEM$WAIT": "snowsim.wait({1n}, 'SECONDS') ¦ snowsim.wait({1n}, {2t})", "SYSTEM$TYPEOF": "snowsim.type_of({1})",
}

// jsonFunctions return jsonb.
var jsonFunctions = Words("PARSE_JSON TRY_PARSE_JSON TO_VARIANT TO_OBJECT TO_ARRAY ARRAY_CONSTRUCT " +
	"OBJECT_CONSTRUCT " +
	"OBJECT_CONSTRUCT_KEEP_NULL GET OBJECT_KEYS")

// windowFunctions need OVER.
var windowFunctions = map[string]string{"ROW_NUMBER": "row_number", "RANK": "rank", "DENSE_RANK": "dense_rank",
	"NTILE": "ntile", "LAG": "lag",
	"LEAD": "lead", "FIRST_VALUE": "first_value", "LAST_VALUE": "last_value", "NTH_VALUE": "nth_value",
	"CUME_DIST": "cume_dist", "PERCENT_RANK": "percent_rank"}

// contextFunctions may be called without parentheses.
var contextFunctions = Words(
	"CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME LOCALTIME LOCALTIMESTAMP CURRENT_USER SYSDATE")
