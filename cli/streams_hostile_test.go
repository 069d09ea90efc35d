package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
)

// TestHostileStatementsOverHTTP: what nobody writes by hand is refused at once, with a place, and leaves nothing; names
// of any letters are kept as they are written. The server lives.
func TestHostileStatementsOverHTTP(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	s := streamsServer{clitest.NewProgram(t).Serve()}
	s.done("CREATE LOGICAL SOURCE a(ts INT64, k TEXT); CREATE SINK s TYPE PRINT")
	const deep = 10_000
	many := func(part string, n int) string { return strings.Repeat(part, n) }
	before := s.done("SHOW LOGICAL SOURCES; SHOW SINKS; SHOW QUERIES")
	for what, sql := range map[string]string{
		"parentheses":            "SELECT " + many("(", deep) + "1" + many(")", deep) + " FROM a INTO s",
		"parentheses, open":      "SELECT " + many("(", deep),
		"NOT":                    "SELECT " + many("NOT ", deep) + "TRUE FROM a INTO s",
		"signs":                  "SELECT " + many("- ", deep) + "1 FROM a INTO s",
		"CASE":                   "SELECT " + many("CASE WHEN ", deep) + "TRUE" + many(" THEN 1 END", deep) + " FROM a",
		"functions":              "SELECT " + many("ABS(", deep) + "1" + many(")", deep) + " FROM a INTO s",
		"subqueries":             "SELECT ts FROM " + many("(SELECT ts FROM ", deep) + "a" + many(")", deep) + " INTO s",
		"casts":                  "SELECT ts" + many("::TEXT", 2*deep) + " FROM a INTO s",
		"sums":                   "SELECT ts" + many(" + 1", 2*deep) + " FROM a INTO s",
		"settings in each other": "CREATE SINK z TYPE PRINT SET(" + many("(", deep) + "1" + many(")", deep) + " AS X)",
		"a list":                 "SELECT ts FROM a WHERE ts IN (1" + many(", 1", 3*deep) + ") INTO s",
		"columns":                "CREATE LOGICAL SOURCE b(x0 TEXT" + many(", x TEXT", 2*deep) + ")",
		"a text of 900 kB":       "SELECT nothing FROM a WHERE k = '" + many("ä", 450_000) + "' INTO s",
		"a text above 1 MiB":     "SELECT ts FROM a WHERE k = '" + many("x", 1<<20+1) + "' INTO s",
		"a name of 900 kB":       "CREATE SINK " + many("n", 900_000) + " TYPE PRINT",
		"a quoted name of it":    "CREATE SINK `" + many("n", 900_000) + "` TYPE PRINT",
		"a name of 257 bytes":    "CREATE SINK `" + many("n", 257) + "` TYPE PRINT",
		"an empty name":          "CREATE SINK `` TYPE PRINT",
		"a comment alone":        "/*" + many("*", 900_000) + "*/",
		"comments alone":         many("--\n", 300_000),
		"semicolons alone":       many(";", 900_000),
		"an open comment":        "SELECT ts FROM a /* INTO s",
		"an open inner comment":  "SELECT ts FROM a /* /* */ INTO s",
		"an open text":           "SELECT 'it''s FROM a INTO s",
		"a text open by escape":  `SELECT 'it\' FROM a INTO s`,
		"an open name":           "SELECT `ts FROM a INTO s",
		"an open quoted name":    `SELECT "ts FROM a INTO s`,
		"a number":               "SELECT " + many("9", 900_000) + " FROM a INTO s",
		"a fraction":             "SELECT 1e" + many("9", 1000) + " FROM a INTO s",
		"a NUL":                  "SELECT ts\x00 FROM a INTO s",
		"a direction mark":       "SELECT \u202ets FROM a INTO s",
		"a line of its own":      "SELECT ts\u2028FROM b INTO s",
		"half a letter":          "SELECT ts FROM \xff\xfe INTO s",
		"another WINDOW":         "SELECT ts FROM a WINDOW TUMBLING(ts, SIZE 1e300 YEARS) INTO s",
	} {
		began := time.Now()
		status, body, p := s.statements(sql)
		if status != 422 && status != 400 && status != 413 || len(body) > 20_000 ||
			p.Detail == "" && len(p.Errors) == 0 {
			t.Errorf("%s: %d %s", what, status, body[:min(len(body), 500)])
		}
		// What is no text that can be sent is refused before it is read, without a place.
		if unread := strings.HasPrefix(p.Detail, "The request has a field"); len(p.Errors) == 1 && !unread &&
			p.Errors[0].Line == 0 {
			t.Errorf("%s: no place: %s", what, body[:min(len(body), 500)])
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: it took %v", what, took)
		}
	}
	if after := s.done("SHOW LOGICAL SOURCES; SHOW SINKS; SHOW QUERIES"); after != before {
		t.Errorf("it has left %s", after)
	}
	for _, name := range []string{"é", "e\u0301", "日本語", "🚀", "ａ", "ß", "نقطة", "a b", "a'b", "--", "/*", "select", `"`,
		"\u200b", strings.Repeat("ä", 128)} {
		quoted := "`" + name + "`"
		s.done(fmt.Sprintf("CREATE LOGICAL SOURCE %[1]s(%[1]s INT64, ts INT64); CREATE SINK %[1]s TYPE PRINT", quoted))
		if shown := s.done("GET SINK " + quoted); !strings.Contains(shown, "PRINT") {
			t.Errorf("%q is shown as %s", name, shown)
		}
		s.done(fmt.Sprintf("CREATE PHYSICAL SOURCE FOR %[1]s TYPE FILE SET('a.csv' AS SOURCE.FILE_PATH, "+
			"'CSV' AS PARSER.TYPE); CREATE QUERY %[1]s AS SELECT %[1]s FROM %[1]s WHERE %[1]s "+
			"> 1 INTO %[1]s; DROP QUERY %[1]s", quoted))
		s.until(name, "")
	}
	s.Stop()
}
