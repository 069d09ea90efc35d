package snowflake

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
)

// TestWhatAStatementWritesIsReadFromItsWords, in every form that names a target.
func TestWhatAStatementWritesIsReadFromItsWords(t *testing.T) {
	s := standIn(t, nil)
	db, err := NewDriver().Open(target.Config{DSN: secret.New("snowflake://" + s.DSN())})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Exec(t.Context(), "CREATE TABLE a (id INT, n VARCHAR)", "CREATE TABLE b (id INT, n VARCHAR)",
		`CREATE TABLE "odd.one" (id INT)`, "INSERT INTO b VALUES (1, 'x')"); err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]string{
		"INSERT OVERWRITE INTO a SELECT * FROM b":                       "INSERT A",
		"INSERT ALL INTO a VALUES (1, 'x') INTO public.b SELECT 1":      "INSERT A; INSERT B",
		"INSERT FIRST WHEN n > 1 THEN INTO a ELSE INTO b SELECT 1 AS n": "INSERT A; INSERT B",
		"MERGE INTO a USING b ON a.id = b.id WHEN MATCHED THEN UPDATE SET n = 'x' WHEN NOT MATCHED THEN INSERT VALUES (1, " +
			"'x')": "MERGE A",
		"MERGE INTO a USING b ON a.id = b.id WHEN MATCHED THEN DELETE":        "MERGE A",
		"TRUNCATE TABLE IF EXISTS b":                                          "TRUNCATE B",
		"truncate a":                                                          "TRUNCATE A",
		`DELETE FROM "odd.one" WHERE id = ?`:                                  `DELETE "odd.one"`,
		"UPDATE a SET n = (SELECT MAX(n) FROM b)":                             "UPDATE A",
		"COPY INTO a FROM @stage":                                             "COPY A",
		"COPY INTO @stage FROM a":                                             "",
		"SELECT TRUNCATE(1.5, 0), INSERT('abc', 1, 1, 'x') FROM a":            "",
		"SELECT id FROM a FOR UPDATE":                                         "",
		"SELECT $$DELETE FROM a$$ // UPDATE b":                                "",
		"INSERT INTO nowhere.nobody VALUES (1)":                               "",
		"INSERT INTO IDENTIFIER(?) VALUES (1)":                                "opaque INSERT",
		"DELETE FROM IDENTIFIER('a')":                                         "opaque DELETE",
		"UPDATE $target SET n = 'x'":                                          "opaque UPDATE",
		"CALL work()":                                                         "opaque CALL",
		"EXECUTE IMMEDIATE 'DELETE FROM a'":                                   "opaque EXECUTE",
		"WITH p AS PROCEDURE () RETURNS INT LANGUAGE SQL AS $$ x $$ CALL p()": "opaque CALL",
		"SHOW TABLES ->> DROP TABLE a":                                        "opaque DROP",
		"ALTER TABLE a ADD COLUMN x INT":                                      "opaque ALTER",
		"DELETE FROM INFORMATION_SCHEMA.TABLES":                               "system DELETE",
		"UPDATE SNOWFLAKE.ACCOUNT_USAGE.QUERY_HISTORY SET QUERY_ID = 'x'":     "system UPDATE",
	} {
		list, err := db.(target.TableMarker).Writes(t.Context(), []engine.Statement{{ID: "s", SQL: sql}})
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		var got []string
		for _, w := range list {
			name := w.Table[strings.LastIndexByte(w.Table, '.')+1:]
			switch {
			case strings.HasSuffix(w.Table, `."odd.one"`):
				name = `"odd.one"`
			case w.Opaque:
				name = ""
			}
			text := fmt.Sprint(strings.Join(w.Operations, "+"), " ", name)
			if w.Opaque {
				text = "opaque " + w.Operations[0]
			} else if w.System {
				text = "system " + w.Operations[0]
			}
			got = append(got, text)
		}
		if g := strings.Join(got, "; "); g != want {
			t.Errorf("%s: %q, not %q", sql, g, want)
		}
	}
}

// TestASwapThatFailsPutsBackWhatItDid: all new tables are in their place, or none.
func TestASwapThatFailsPutsBackWhatItDid(t *testing.T) {
	s := standIn(t, nil)
	db, err := NewDriver().Open(target.Config{DSN: secret.New("snowflake://" + s.DSN())})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := t.Context()
	if err := db.Exec(ctx, "CREATE TABLE a (id INT, PRIMARY KEY (id))",
		"CREATE TABLE a_new (id INT AUTOINCREMENT, fresh INT, PRIMARY KEY (id))", "INSERT INTO a VALUES (1), (2)",
		"INSERT INTO a_new (fresh) VALUES (7)"); err != nil {
		t.Fatal(err)
	}
	rows := func(table string) string {
		rs, err := db.Query(ctx, "SELECT COUNT(*) FROM "+table)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(rs.Rows[0][0])
	}
	swap := db.(target.Swapper).Swap
	if err := swap(ctx, []string{"ALTER TABLE a SWAP WITH a_new", "DROP TABLE a_new", "ALTER TABLE b SWAP WITH b_new",
		"DROP TABLE b_new"}); err == nil || rows("a") != "2" || rows("a_new") != "1" {
		t.Errorf("%v; a has %s rows, a_new %s", err, rows("a"), rows("a_new"))
	}
	// Twice, since what is named after a table has to go along with it.
	for range 2 {
		if err := swap(ctx, []string{"ALTER TABLE a SWAP WITH a_new", "DROP TABLE a_new"}); err != nil || rows("a") != "1" {
			t.Fatalf("%v; a has %s rows", err, rows("a"))
		}
		if err := db.Exec(ctx, "CREATE TABLE a_new (id INT AUTOINCREMENT, fresh INT, PRIMARY KEY (id))",
			"INSERT INTO a_new (fresh) VALUES (7)", "INSERT INTO a (fresh) SELECT 8 WHERE FALSE"); err != nil {
			t.Fatal(err)
		}
	}
}
