package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestPointed(t *testing.T) {
	t.Parallel()
	long := "SELECT 'ü" + strings.Repeat("x", 200) + "', nope FROM t"
	for _, c := range []struct {
		sql      string
		position int32
		want     string
	}{
		{"SELECT nope FROM t", 8, "Line 1 of its SQL:\n    SELECT nope FROM t\n           ^"},
		{"SELECT 1\n  FROM\tordres", 17, "Line 2 of its SQL:\n      FROM ordres\n           ^"},
		{"SELECT 'ü', nope", 13, "Line 1 of its SQL:\n    SELECT 'ü', nope\n                ^"},
		{"SELECT", 7, "Line 1 of its SQL:\n    SELECT\n          ^"},
		{"SELECT", 0, "Its SQL is: SELECT"},
		{"SELECT", 50, "Its SQL is: SELECT"},
	} {
		if got := caretText(c.sql, fmt.Errorf("preparing: %w", &pgconn.PgError{Position: c.position})); got != c.want {
			t.Errorf("%q at %d:\n%s\nexpected\n%s", c.sql, c.position, got, c.want)
		}
	}
	got := caretText(long, &pgconn.PgError{Position: 213, Hint: "Perhaps you meant one."})
	lines := strings.Split(got, "\n")
	if len(lines) != 4 || strings.Index(lines[2], "^") != strings.Index(lines[1], "nope") || len(lines[1]) > 110 ||
		lines[3] != "Perhaps you meant one." {
		t.Errorf("a long line:\n%s", got)
	}
	identity := &pgconn.PgError{Detail: "It is an identity column.", Hint: "Use OVERRIDING SYSTEM VALUE."}
	want := "Its SQL is: INSERT\nIt is an identity column.\nUse OVERRIDING SYSTEM VALUE."
	if got := caretText("INSERT", identity); got != want {
		t.Errorf("what has no place:\n%s", got)
	}
	if got := caretText("SELECT", errors.New("network")); got != "Its SQL is: SELECT" {
		t.Error(got)
	}
}
