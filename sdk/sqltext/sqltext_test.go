package sqltext_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ sql, numbered, verb, names string }{
		{"SELECT 1", "SELECT 1", "SELECT", ""},
		{"select * from t where id = :id", "select * from t where id = $1", "SELECT", "id"},
		{"select :a, :b, :a", "select $1, $2, $1", "SELECT", "a b"},
		{"select :a::text, '12:30', x::int", "select $1::text, '12:30', x::int", "SELECT", "a"},
		{"select ':no' || E'\\':no' || e'a''\\\\' || :yes", "select ':no' || E'\\':no' || e'a''\\\\' || $1", "SELECT", "yes"},
		{`select ":no", "a"":b" from t -- :no` + "\n where x=:x", `select ":no", "a"":b" from t -- :no` + "\n where x=$1",
			"SELECT", "x"},
		{"select /* :no /* :nested */ :no */ :x", "select /* :no /* :nested */ :no */ $1", "SELECT", "x"},
		{"select $$ :no ; $$, $q$ $$ :no $q$, :x", "select $$ :no ; $$, $q$ $$ :no $q$, $1", "SELECT", "x"},
		{"select a$b$c, :x, d$e from t", "select a$b$c, $1, d$e from t", "SELECT", "x"},
		{"select f(a := :x), a[1:2], a[:lo : :hi]", "select f(a := $1), a[1:2], a[$2 : $3]", "SELECT", "x lo hi"},
		{"  ;; insert into t values (:naïve) ; ; ", "insert into t values ($1)", "INSERT", "naïve"},
		{"-- first\nupdate t set a = :a;-- last", "-- first\nupdate t set a = $1", "UPDATE", "a"},
		{"(select 1) union (select :x)", "(select 1) union (select $1)", "SELECT", "x"},
		{"with x as (select 1) select * from x", "with x as (select 1) select * from x", "SELECT", ""},
		{"with recursive x(n) as (select 1 union select n+1 from x) delete from t using x",
			"with recursive x(n) as (select 1 union select n+1 from x) delete from t using x", "DELETE", ""},
		{"with gone as (delete from t where id = :id returning *) select count(*) from gone",
			"with gone as (delete from t where id = $1 returning *) select count(*) from gone", "SELECT", "id"},
		{"select data->>'a' ? 'b', data @? :path from t", "select data->>'a' ? 'b', data @? $1 from t", "SELECT", "path"},
		{"call do_it(:n)", "call do_it($1)", "CALL", "n"},
		{"insert into t select * from (select 1) x", "insert into t select * from (select 1) x", "INSERT", ""},
		{"select 'a' 'b' from type where e = 1 and $ is null", "select 'a' 'b' from type where e = 1 and $ is null", "SELECT",
			""},
	} {
		s, err := sqltext.Parse(c.sql)
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		if got := s.Numbered(); got != c.numbered || s.Verb != c.verb || strings.Join(s.Names, " ") != c.names {
			t.Errorf("%s:\n%s\nverb %s, names %v", c.sql, got, s.Verb, s.Names)
		}
		writes := c.verb != "SELECT" || strings.Contains(c.sql, "gone")
		if s.Writes != writes {
			t.Errorf("%s: writes is %v", c.sql, s.Writes)
		}
	}
	s, err := sqltext.Parse("select :a, ':b', :b, :a")
	if err != nil {
		t.Fatal(err)
	}
	if sql, order := s.Marked(); sql != "select ?, ':b', ?, ?" || len(order) != 3 || order[0] != 0 || order[1] != 1 ||
		order[2] != 0 {
		t.Errorf("marked: %s %v", sql, order)
	}
}

func TestWhatIsRefused(t *testing.T) {
	for sql, says := range map[string]string{
		"":                                 "line 1, column 1: there is no statement",
		" -- nothing\n ;":                  "there is no statement",
		"select 1; select 2":               "line 1, column 11: a second statement",
		"select 1;\n drop table t":         "line 2, column 2: a second statement",
		"select 'a":                        "line 1, column 8: this text has no closing quote",
		"select E'a\\'":                    "no closing quote",
		`select "a`:                        "this name has no closing quote",
		"select /* a":                      "line 1, column 8: this comment has no end",
		"select $x$ a $y$":                 "no closing $x$",
		"select $1":                        "write :id instead of $1",
		"select 'ü', $2":                   "line 1, column 13:",
		"drop table t":                     "begins with DROP cannot be issued",
		"CREATE TABLE t (a int)":           "begins with CREATE",
		"vacuum t":                         "VACUUM",
		"copy t from stdin":                "COPY",
		"set search_path = x":              "SET",
		"begin":                            "list the statements under transaction",
		"commit":                           "under transaction",
		"with x as (select 1) ":            "WITH has no SELECT",
		"select * into u from t":           "column 10: SELECT INTO makes a table",
		"select 1\x00":                     "zero byte",
		"select '\x00'":                    "zero byte",
		"select $$\x00$$":                  "zero byte",
		"explain analyze delete from t":    "EXPLAIN",
		"prepare x as select 1":            "PREPARE",
		"do $$ begin drop table t; end $$": "DO",
	} {
		_, err := sqltext.Parse(sql)
		var at *sqltext.Error
		if err == nil || !errors.As(err, &at) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, expected %q", sql, err, says)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, sql := range []string{"select :a::text", "with x as (delete from t) select $$:b$$, E'\\':c', /* /* */ */ :d;",
		"insert into t values (:naïve, a[1:2]) -- :x", "select '", "$x$", "::", ":", "e'", "/*/", "select\x00"} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		s, err := sqltext.Parse(sql)
		if err != nil {
			var at *sqltext.Error
			if !errors.As(err, &at) || at.Line < 1 || at.Column < 1 {
				t.Fatalf("%q: %v", sql, err)
			}
			return
		}
		marked, order := s.Marked()
		if len(marked) > len(sql) || strings.Count(sql, ":") < len(order) || len(s.Names) > len(order) || s.Verb == "" {
			t.Fatalf("%q became %q with %v of %v", sql, marked, order, s.Names)
		}
		for _, n := range order {
			if n < 0 || n >= len(s.Names) {
				t.Fatalf("%q: parameter %d of %v", sql, n, s.Names)
			}
		}
		// Putting the names back gives a text that reads the same.
		again := marked
		if strings.Count(marked, "?") == len(order) {
			for _, n := range order {
				again = strings.Replace(again, "?", ":"+s.Names[n], 1)
			}
			twice, err := sqltext.Parse(again)
			if err != nil || twice.Numbered() != s.Numbered() || twice.Writes != s.Writes {
				t.Fatalf("%q and then %q: %v", sql, again, err)
			}
		}
	})
}

// TestRowsThatAreWritten: which row of a text stands for several, and which texts prepare a statement or take rows.
func TestRowsThatAreWritten(t *testing.T) {
	for sql, want := range map[string]string{
		"INSERT INTO t (values, b) VALUES (:a, (1)) ON CONFLICT (a) DO NOTHING":                       "(:a, (1))",
		"WITH x AS (VALUES (1)) INSERT INTO t VALUES (:a)":                                            "(:a)",
		"WITH x (a) AS (VALUES (:a::int)) INSERT INTO t SELECT * FROM x":                              "(:a::int)",
		"INSERT INTO t SELECT * FROM (VALUES (:a, :b)) AS v":                                          "(:a, :b)",
		"MERGE INTO t USING (VALUES (:a)) AS s (a) ON true WHEN NOT MATCHED THEN INSERT VALUES (s.a)": "(:a)",
		"INSERT INTO t VALUES (1), (2)":                                                               "",
		"INSERT INTO t DEFAULT VALUES ON CONFLICT (a) DO NOTHING":                                     "",
		"INSERT INTO t SELECT * FROM (VALUES (1)) a, (VALUES (2)) b":                                  "",
		"INSERT INTO t SELECT 1":                                                                      "",
		"INSERT INTO t VALUES ((1)":                                                                   "",
	} {
		if from, to := sqltext.Row(sql); sql[from:to] != want {
			t.Errorf("%s: the row is %q", sql, sql[from:to])
		}
	}
	for sql, want := range map[string]string{
		`PREPARE a AS SELECT $1; EXECUTE A($1);`:                           "a|SELECT $1|EXECUTE A($1)|true",
		`PREPARE "A b" (int, numeric(3,1)) AS VALUES (';'); EXECUTE "A b"`: `A b|VALUES (';')|EXECUTE "A b"|true`,
		`PREPARE a AS SELECT $1; EXECUTE a($1 + 1)`:                        "a|SELECT $1|EXECUTE a($1 + 1)|false",
		`PREPARE a AS SELECT $1, $2; EXECUTE a($2, $1)`:                    "a|SELECT $1, $2|EXECUTE a($2, $1)|false",
		`PREPARE a AS SELECT $1, $2; EXECUTE a($1, $2)`:                    "a|SELECT $1, $2|EXECUTE a($1, $2)|true",
		`PREPARE a AS SELECT 1; EXECUTE b`:                                 "",
		`PREPARE a (int AS SELECT 1; EXECUTE a`:                            "",
		`PREPARE TRANSACTION 'a'; EXECUTE transaction`:                     "",
		`PREPARE a AS SELECT 1`:                                            "",
	} {
		got := ""
		if n, ok := sqltext.Names(sql); ok {
			got = n.Name + "|" + n.Body + "|" + n.Execute + "|" + map[bool]string{true: "true", false: "false"}[n.Plain()]
		}
		if got != want {
			t.Errorf("%s: %s", sql, got)
		}
	}
	for sql, want := range map[string]string{
		`COPY s.t (a, "B c", D) FROM STDIN`: "a|B c|d", `copy {table}(x) from stdin where x > 1`: "x",
		`COPY t FROM STDIN`: "", `COPY t (a) TO STDOUT`: "no", `COPY (SELECT a) TO STDOUT`: "no", `COPY t (a) FROM '/x'`: "no",
	} {
		columns, ok := sqltext.Fields(sql)
		if got := strings.Join(columns, "|"); ok && got != want || !ok && want != "no" {
			t.Errorf("%s: %v, %v", sql, columns, ok)
		}
	}
}
