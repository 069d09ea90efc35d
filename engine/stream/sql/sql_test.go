package sql

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// good are statements that are read, each of the syntax once at least.
var good = []string{
	"CREATE WORKER 'host-1' SET(8080 AS GRPC_PORT, 9090 AS DATA_PORT, 4 AS NUM_SLOTS, ('a', 'b') AS PEERS)",
	"CREATE LOGICAL SOURCE größe(`select` INT64 NOT NULL, \"a b\" DECIMAL(10, 2), end TIMESTAMP, \u4e2d\u6587 TEXT)",
	"create physical source for lrb type tcp set('localhost' as `SOURCE`.SOCKET_HOST, 50501 as `SOURCE`.SOCKET_PORT, " +
		"'CSV' as PARSER.`TYPE`, '\\n' as PARSER.TUPLE_DELIMITER, ',' as PARSER.FIELD_DELIMITER)",
	"CREATE PHYSICAL SOURCE FOR lrb ON WORKER w1 TYPE File SET(-1 AS A, -1.5e3 AS B, TRUE AS C, false AS D)",
	"CREATE SINK s(a INT8) TYPE File SET('results.csv' as `SINK`.FILE_PATH, false as `SINK`.APPEND) ON w1",
	"CREATE SINK s TYPE PRINT", "CREATE QUERY AS SELECT a FROM b INTO c", "CREATE QUERY q AS SELECT a FROM b INTO c",
	"DROP QUERY q GRACEFUL", "DROP QUERY q MODE HARD; DROP WORKER 'h'; DROP PHYSICAL SOURCE 3;; DROP SINK s;",
	"GET LOGICAL SOURCE lrb", "SHOW LOGICAL SOURCES BY NAME lrb",
	"GET PHYSICAL SOURCES FOR LOGICAL lrb ON NODE w BY TYPE TCP",
	"SHOW SINKS s ON w TYPE File", "SHOW QUERIES WITH STATE RUNNING ON w",
	"GET QUERY BY ID q", "GET WORKERS WITH CAPACITY 4",
	"EXPLAIN SELECT a FROM b", "EXPLAIN CREATE QUERY q AS SELECT a FROM b INTO c",
	"WATCH SELECT id, state, capacity FROM workers WHERE state = 'ACTIVE'",
	"SELECT * FROM b INTO c -- a comment\n", "/* a /* nested */ comment */ SELECT b.*, a x, a AS `y y` FROM b bb INTO c",
	"SELECT start, end FROM b WINDOW TUMBLING(size = 5s) INTO c",
	"SELECT a FROM b WINDOW SLIDING(b.ts, SIZE 5 MINUTES, ADVANCE BY 1 SEC, LATENESS = 10ms) " +
		"GROUP BY (a, x) HAVING a > 1 INTO c",
	"SELECT a FROM b GROUP BY (a) + 1, b HAVING NOT a WINDOW TUMBLING(ts, SIZE 1.5 HOURS) ON OVERFLOW DROP INTO c",
	"SELECT a FROM (SELECT a FROM b) x INNER JOIN c ON x.a = c.a WINDOW TUMBLING(SIZE 1 MIN) WHERE a IS NOT NULL INTO c",
	"SELECT LAG(a, 2) OVER (PARTITION BY b, c) - 1, LAG(a) OVER () FROM b INTO c",
	"SELECT CASE WHEN a THEN 1 ELSE -2 END, CASE end WHEN 1 THEN 'it''s\\n' END, a::INT8::TEXT, " +
		"CAST(a AS DECIMAL(3, 1)) FROM b INTO c",
	"SELECT a NOT IN (1, 2), a NOT BETWEEN 1 AND 2, a NOT LIKE 'x', a IN (1) OR NOT NOT a, " +
		"FLOAT32(40), COUNT(*) FROM b INTO c",
	"SELECT TIMESTAMP '2026-01-01', - - a, -(1), 1e3, .5, a == b, a != b, -9223372036854775808 FROM b INTO c",
}

// TestGoodStatements are read, and every expression is read again from its text to the same text.
func TestGoodStatements(t *testing.T) {
	for _, source := range good {
		parsed, err := Parse(source)
		if err != nil {
			t.Errorf("%s\n%v", source, err)
			continue
		}
		again(t, parsed)
	}
}

// again reads the texts of expressions.
func again(t *testing.T, parsed []Parsed) {
	t.Helper()
	for _, p := range parsed {
		q, ok := p.Statement.(*CreateQuery)
		if !ok {
			continue
		}
		all := append([]Expr{q.Select.Where, q.Select.Having}, q.Select.Group...)
		for _, i := range q.Select.Items {
			all = append(all, i.Expr)
		}
		for _, e := range all {
			if e == nil {
				continue
			}
			text := Text(e)
			second, err := Parse("SELECT " + text + " FROM a INTO b")
			if err != nil && strings.Contains(err.Error(), "at most") {
				continue // the text has more parentheses than the statement had
			}
			if err != nil {
				t.Fatalf("%s\n%v", text, err)
			}
			if to := Text(second[0].Statement.(*CreateQuery).Select.Items[0].Expr); to != text {
				t.Fatalf("%s became %s", text, to)
			}
		}
	}
}

// TestBadStatements: the place, the sentence and the hint of what is wrong.
func TestBadStatements(t *testing.T) {
	deep := func(open, in, shut string, n int) string {
		return "SELECT " + strings.Repeat(open, n) + in + strings.Repeat(shut, n) + " FROM b INTO c"
	}
	for _, c := range []struct {
		source, says string
		line, column int
	}{
		{"SELEC a FROM b", "did you mean SELECT?", 1, 1},
		{"SELECT a\nFROM b\nWINDOW TUMBLNG(ts, SIZE 5 SEC)", "did you mean TUMBLING?", 3, 8},
		{"SELECT a FROM b WINDWO TUMBLING(ts, SIZE 5 SEC)", "did you mean WINDOW?", 1, 17},
		{"SELECT a FROM b WINDOW TUMBLING(ts, SIZ 5 SEC) INTO c", "did you mean SIZE?", 1, 37},
		{"SELECT a FROM b WINDOW TUMBLING(ts, SIZE 5 SECNDS) INTO c", "did you mean SECONDS?", 1, 44},
		{"SELECT a FROM b WINDOW TUMBLING(ts) INTO c", "a window needs its SIZE", 1, 32},
		{"SELECT a FROM b WINDOW SLIDING(ts, SIZE 1s) INTO c", "needs ADVANCE", 1, 31},
		{"SELECT a FROM b WINDOW TUMBLING(SIZE 1s, ADVANCE 1s) INTO c", "did you mean SLIDING?", 1, 32},
		{"SELECT a FROM b WINDOW TUMBLING(SIZE 1s, SIZE 1s) INTO c", "given twice", 1, 42},
		{"SELECT a FROM b WINDOW TUMBLING(SIZE 1e300 YEARS) INTO c", "at most 100 years", 1, 38},
		{"SELECT a FROM b", "add INTO", 1, 16},
		{"SELECT a FROM b WHERE a WHERE b INTO c", "one WHERE", 1, 33},
		{"SELECT a FROM (SELECT a FROM b INTO c) INTO d", "a subquery has no sink", 1, 32},
		{"SELECT a FROM b LEFT JOIN c ON a = b INTO d", "LEFT is not supported", 1, 17},
		{"SELECT a FROM b ORDER BY a INTO c", "no end", 1, 17},
		{"CREATE LOGICAL SOURCE lrb(\n  ...\n)", "left out", 2, 3},
		{"CREATE LOGICAL SORCE lrb(a INT8)", "did you mean SOURCE?", 1, 16},
		{"SHOW SINKS;\nupdate queries SET state = 'STOPPED'", "there is no UPDATE", 2, 1},
		{"ALTER SINK a", "DROP it, then CREATE it anew", 1, 1},
		{"CREATE TABLE a(b INT)", "expected LOGICAL SOURCE", 1, 8},
		{"SELECT 'it FROM b INTO c", "this text has no end", 1, 8},
		{"SELECT `it FROM b INTO c", "this name has no end", 1, 8},
		{"SELECT a /* FROM b /* */ INTO c", "this comment has no end", 1, 10},
		{"SELECT a FROM b INTO c SELECT", "expected JOIN", 1, 24},
		{"SELECT a # b FROM c INTO d", "belongs to no statement", 1, 10},
		{"SELECT äöü, \xff FROM c INTO d", "belongs to no character", 1, 13},
		{"SELECT 9223372036854775808 FROM c INTO d", "whole numbers are between", 1, 8},
		{"SELECT 1e400 FROM c INTO d", "no FLOAT64", 1, 8},
		{"SELECT a < b < c FROM d INTO e", "expected FROM", 1, 14},
		{"SELECT CASE END FROM d INTO e", "expected WHEN", 1, 17},
		{"SELECT a IN () FROM d INTO e", "IN needs a value", 1, 10},
		{"WATCH SELECT a FROM b INTO c", "leave INTO out", 1, 28},
		{"GET WORKERS CAPACITY 'x'", "whole number of free slots", 1, 1},
		{"DROP SINK", "expected a name, found the end", 1, 10},
		{"DROP QUERY query-1", "stands in quotes, as in `a-b`", 1, 17},
		{"SELECT LAG(a) OVER (PARTITION BY b ORDER BY ts) FROM b INTO c", "leave ORDER BY out", 1, 36},
		{deep("(", "1", ")", 10_000), "nested deeper", 1, 207},
		{deep("NOT ", "a", "", 10_000), "nested deeper", 1, 0},
		{deep("- ", "a", "", 10_000), "nested deeper", 1, 0},
		{deep("CASE WHEN a THEN ", "1", " END", 10_000), "nested deeper", 1, 0},
		{deep("ABS(", "1", ")", 10_000), "nested deeper", 1, 0},
		{"SELECT a FROM " + strings.Repeat("(SELECT a FROM ", 10_000), "nested deeper", 1, 0},
		{"SELECT 1" + strings.Repeat(" + 1", 10_000) + " FROM b INTO c", "at most 10000 parts", 1, 0},
		{"SELECT a" + strings.Repeat("::TEXT", 20_000) + " FROM b INTO c", "at most 10000 parts", 1, 0},
		{"CREATE SINK s TYPE PRINT SET(((1)) AS A)", "expected a text", 1, 31},
		{"SELECT '" + strings.Repeat("x", 1<<20+1) + "' FROM b INTO c", "at most 1048576 bytes", 1, 8},
		{"SELECT " + strings.Repeat("x", 300) + " FROM b INTO c", "256 bytes", 1, 8},
		{strings.Repeat(" ", MaxSource+1), "too long", 1, 1},
	} {
		begin := time.Now()
		_, err := Parse(c.source)
		var e *Error
		name := c.source[:min(len(c.source), 60)]
		if !errors.As(err, &e) || e.Kind != ParserError || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if e.Line != c.line || c.column > 0 && e.Column != c.column {
			t.Errorf("%s: at %d:%d, not %d:%d", name, e.Line, e.Column, c.line, c.column)
		}
		if len(err.Error()) > 1000 || time.Since(begin) > 5*time.Second {
			t.Errorf("%s: %d bytes after %v", name, len(err.Error()), time.Since(begin))
		}
	}
}

// TestLongTexts: a text of a megabyte is one.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	parsed, err := Parse("SELECT '" + long + "' FROM b INTO c")
	if err != nil {
		t.Fatal(err)
	}
	if v := parsed[0].Statement.(*CreateQuery).Select.Items[0].Expr.(*Literal).Value; v != long {
		t.Error("it is another one")
	}
}

// TestTheCaretStandsUnderThePlace, also where characters are wider than a byte and lines long.
func TestTheCaretStandsUnderThePlace(t *testing.T) {
	for _, before := range []string{"", "äöü, ", "\t", strings.Repeat("abc, ", 1000), strings.Repeat("中, ", 1000)} {
		_, err := Parse("SELECT " + before + "§ FROM b INTO c")
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%q: %v", before, err)
		}
		if at := []rune(e.Excerpt)[len([]rune(e.Caret))]; at != '§' || strings.ContainsAny(e.Excerpt, "\t\n") {
			t.Errorf("%.10q: the caret stands under %c:\n%v", before, at, err)
		}
		if want := fmt.Sprintf("line 1, column %d: ", 8+len([]rune(before))); !strings.Contains(err.Error(), want) {
			t.Errorf("%.10q: %v", before, err)
		}
	}
}

// TestSuggest finds what was meant, and keeps quiet where nothing is near.
func TestSuggest(t *testing.T) {
	words := map[string]string{"TUMBLNG": "TUMBLING", "slidign": "SLIDING", "x": "", "": "", "nonsense": ""}
	for written, want := range words {
		got := Suggest(written, "TUMBLING", "SLIDING")
		if want != "" {
			want = "did you mean " + want + "?"
		}
		if got != want {
			t.Errorf("%s: %q", written, got)
		}
	}
}

// FuzzParse: whatever comes is read or refused with a place, without panic, and what is read can be written and read.
func FuzzParse(f *testing.F) {
	for _, s := range good {
		f.Add(s)
	}
	files, _ := filepath.Glob("../../../examples/streams/*.slt")
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, source string) {
		parsed, err := Parse(source)
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Line == 0) {
			t.Fatalf("an error without a place: %v", err)
		}
		again(t, parsed)
	})
}

// TestKeysFoldNamesOnly: expressions with names in another case are the same, those with texts in another case are not.
func TestKeysFoldNamesOnly(t *testing.T) {
	key := func(x string) string {
		t.Helper()
		parsed, err := Parse("SELECT " + x + " AS x FROM t INTO s")
		if err != nil {
			t.Fatal(err)
		}
		return Key(parsed[0].Statement.(*CreateQuery).Select.Items[0].Expr)
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"sum(T.k)", "SUM(t.`K`)", true}, {"CAST(ä AS int32)", "cast(Ä AS INT32)", true},
		{"CASE WHEN k = 'A' THEN 1 END", "CASE WHEN k = 'a' THEN 1 END", false}, {"k IN ('ß')", "k IN ('ẞ')", false},
		{"LAG(K) OVER (PARTITION BY k)", "lag(k) OVER (PARTITION BY K)", true}, {"`a b`", "`A B`", true},
		{"`a`", "'a'", false}, {"k || 'x'", "K || 'x'", true},
	} {
		if (key(c.a) == key(c.b)) != c.same {
			t.Errorf("%s and %s: the same is %v", key(c.a), key(c.b), !c.same)
		}
	}
}
