package cli

import "testing"

// TestWhoAnswersAStatement: a continuous query with a mistake in it is refused by who reads such queries, with the
// place, and not by the results database, which takes INTO for the mistake.
func TestWhoAnswersAStatement(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT 1":                  false,
		"SELECT a FROM t, u INTO s": true,
		"-- what is slow\n/* all of it */ select cpu from x into s": true,
		"EXPLAIN SELECT FROM INTO s":                                true,
		"EXPLAIN SELECT * FROM run_summary":                         false,
		"SELECT 'INTO', \"INTO\" FROM t -- INTO s":                  false,
		"SELECT (SELECT 1 INTO s) FROM t":                           false,
		"SELECT 1; SELECT a FROM b INTO s":                          false,
		"-- made\nCREATE SINK s TYPE PRINT":                         true,
		"SHOW SINKS":                                                true,
		"SHOW":                                                      true,
		"show querys":                                               true,
		"SHOW LOGICAL SOURCES":                                      true,
		"SHOW WORKERS":                                              true,
		"SHOW server_version":                                       false,
		"SHOW work_mem":                                             false,
		"show log_statement;":                                       false,
		"SHOW ALL":                                                  false,
		"SHOW TIME ZONE":                                            false,
		"RESUME QUERY q":                                            true,
		"WITH x AS (SELECT 1) TABLE x":                              false,
		"UPDATE t SET a = 1":                                        false,
		"SELECT 'not closed INTO s":                                 false,
		"":                                                          false,
	} {
		if got := isStreamStatement(sql); got != want {
			t.Errorf("%q: %v", sql, got)
		}
	}
}
