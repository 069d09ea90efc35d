package targettest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

// marks: a mark is of one very table. It goes along with a new name, and neither to a
// successor of the name nor with the comment that holds it.
func (s *suite) marks(t *testing.T) {
	ctx := t.Context()
	db := s.open(t, target.Config{})
	k, ok := db.(target.TableMarker)
	if !ok {
		t.Skip("the database keeps no marks")
	}
	do := func(sql ...string) {
		t.Helper()
		if err := db.Exec(ctx, sql...); err != nil {
			t.Fatal(err)
		}
	}
	owned := func(tables ...string) []bool {
		t.Helper()
		own, err := k.Owned(ctx, tables...)
		if err != nil {
			t.Fatal(err)
		}
		return own
	}
	do("CREATE TABLE kept (id integer)", "CREATE TABLE theirs (id integer)", "INSERT INTO theirs VALUES (1), (2), (3)")
	if own := owned("kept", "theirs", "nobodys"); slices.Contains(own, true) {
		t.Errorf("before a mark: %v", own)
	}
	if err := k.Mark(ctx, "nobodys"); err == nil {
		t.Error("a table that is not there was marked")
	}
	if err := k.Mark(ctx, "kept"); err != nil {
		t.Fatal(err)
	}
	if own := owned("theirs", "kept"); !slices.Equal(own, []bool{false, true}) {
		t.Errorf("after the mark: %v", own)
	}
	rs, err := db.Query(ctx, s.Comment)
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprint(rs.Rows[0][0])
	if !strings.Contains(mark, "Loadstone") {
		t.Errorf("the mark does not say what it is: %q", mark)
	}
	s.writes(t, k)

	copied := "COMMENT ON TABLE %s IS '" + strings.ReplaceAll(mark, "'", "''") + "'"
	do(fmt.Sprintf(copied, "theirs"))
	if owned("theirs")[0] {
		t.Error("a copied comment is trusted")
	}
	do("ALTER TABLE kept RENAME TO kept_elsewhere")
	if own := owned("kept", "kept_elsewhere"); !slices.Equal(own, []bool{false, true}) {
		t.Errorf("under a new name: %v", own)
	}
	do("DROP TABLE kept_elsewhere", "CREATE TABLE kept (id integer)", fmt.Sprintf(copied, "kept"))
	if owned("kept")[0] {
		t.Error("a successor with the comment of the table before it is trusted")
	}
}

// writes: what statements write is told by table, and who made it.
func (s *suite) writes(t *testing.T, k target.TableMarker) {
	t.Helper()
	statements := []engine.Statement{}
	for i, sql := range []string{"SELECT id FROM kept", "INSERT INTO kept (id) VALUES (1)",
		"UPDATE theirs SET id = 2 WHERE id = 1", "DELETE FROM kept WHERE id = 5",
		"INSERT INTO theirs (id) SELECT id FROM kept", "INSERT INTO nobodys VALUES (1)",
		"SELECT 'DELETE FROM theirs' FROM theirs /* TRUNCATE TABLE theirs */"} {
		statements = append(statements, engine.Statement{ID: fmt.Sprint("s", i), SQL: sql})
	}
	list, err := k.Writes(t.Context(), statements)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, w := range list {
		name := strings.ToLower(w.Table[strings.LastIndexByte(w.Table, '.')+1:])
		got = append(got, fmt.Sprint(name, " own ", w.Own, " ", w.Operations, w.Statements, w.Rows))
	}
	if want := []string{"kept own true [INSERT DELETE] [s1 s3] 0",
		"theirs own false [INSERT UPDATE] [s2 s4] 3"}; !slices.Equal(got, want) {
		t.Errorf("written are %q, not %q", got, want)
	}
}
