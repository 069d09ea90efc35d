package snowflake

import (
	"net/http"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// TestAnUnsureSessionIsNotUsedAgain: an error is the answer to a statement that changes the session, after the account
// has executed it (a gateway's 504 is one such). What comes next must not be in the transaction, or on the warehouse, of that.
func TestAnUnsureSessionIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	columns := []engine.Column{{Name: "id", Type: engine.TypeI64}}
	for statement, do := range map[string]func(*database) error{
		"ALTER SESSION SET AUTOCOMMIT = FALSE": func(db *database) error {
			return db.InTransaction(t.Context(), "one", func(target.Tx) error { return nil })
		},
		"BEGIN": func(db *database) error {
			_, err := db.Load(t.Context(), "T", columns, func() (plugin.Rows, error) { return nil, nil }, nil)
			return err
		},
		"USE WAREHOUSE": func(db *database) error { return db.Exec(t.Context(), "USE WAREHOUSE OTHER") },
	} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			changed := map[string]bool{} // sessions, under a.mu
			next := ""
			a.respond(func(_ http.ResponseWriter, _ *http.Request, q request) map[string]any {
				a.mu.Lock()
				defer a.mu.Unlock()
				switch {
				case strings.HasPrefix(q.SQLText, statement):
					changed[q.token] = true
					return refusal(300002, "XX000", "Processing aborted")
				case q.SQLText == "ROLLBACK":
					delete(changed, q.token)
				case strings.HasPrefix(q.SQLText, "INSERT"):
					next = q.token
				}
				return affected(1)
			})
			db := openDSN(t, a.dsn(), target.Config{})
			if err := do(db); err == nil || strings.Contains(err.Error(), errHouse.Error()) ||
				strings.Contains(err.Error(), errNotUndone.Error()) {
				t.Errorf("%v", err)
			}
			if err := db.Exec(t.Context(), "INSERT INTO T SELECT 1"); err != nil {
				t.Fatal(err)
			}
			if len(changed) == 0 && statement != "BEGIN" || changed[next] {
				t.Errorf("%q is changed, and used for what comes next", next)
			}
		})
	}
}
