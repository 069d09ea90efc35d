// Package snowsimtest has what tests of clients give a stand-in.
package snowsimtest

// HostileParameters is a value of each session parameter with which a client that relies on Snowflake's defaults goes
// wrong, slow or unseen: an account or a user may have any of them.
func HostileParameters() map[string]string {
	return map[string]string{
		"AUTOCOMMIT":                          "false",
		"TRANSACTION_ABORT_ON_ERROR":          "true",
		"ABORT_DETACHED_QUERY":                "false",
		"USE_CACHED_RESULT":                   "true",
		"ROWS_PER_RESULTSET":                  "1",
		"MULTI_STATEMENT_COUNT":               "2",
		"QUERY_TAG":                           "theirs",
		"STATEMENT_TIMEOUT_IN_SECONDS":        "1",
		"STATEMENT_QUEUED_TIMEOUT_IN_SECONDS": "1",
		"LOCK_TIMEOUT":                        "0",
		"HYBRID_TABLE_LOCK_TIMEOUT":           "0",
		"QUOTED_IDENTIFIERS_IGNORE_CASE":      "true",
		"TIMEZONE":                            "Asia/Kathmandu",
		"TIMESTAMP_TYPE_MAPPING":              "TIMESTAMP_TZ",
		"TIMESTAMP_DAY_IS_ALWAYS_24H":         "true",
		"TWO_DIGIT_CENTURY_START":             "1900",
		"WEEK_START":                          "7",
		"WEEK_OF_YEAR_POLICY":                 "1",
		"DATE_INPUT_FORMAT":                   "DD.MM.YYYY",
		"TIME_INPUT_FORMAT":                   "HH12:MI AM",
		"TIMESTAMP_INPUT_FORMAT":              "DD.MM.YYYY HH24:MI",
		"DATE_OUTPUT_FORMAT":                  "DD.MM.YYYY",
		"TIME_OUTPUT_FORMAT":                  "HH12:MI AM",
		"TIMESTAMP_OUTPUT_FORMAT":             "DD.MM.YYYY",
		"TIMESTAMP_NTZ_OUTPUT_FORMAT":         "DD.MM.YYYY",
		"TIMESTAMP_LTZ_OUTPUT_FORMAT":         "DD.MM.YYYY",
		"TIMESTAMP_TZ_OUTPUT_FORMAT":          "DD.MM.YYYY",
		"BINARY_INPUT_FORMAT":                 "BASE64",
		"BINARY_OUTPUT_FORMAT":                "BASE64",
		"JSON_INDENT":                         "9",
		"ERROR_ON_NONDETERMINISTIC_MERGE":     "false",
		"ERROR_ON_NONDETERMINISTIC_UPDATE":    "true",
	}
}
