package postgres

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
)

// A target may answer the question about locks with anything: that ends in no
// explanation, and not in a panic of the process.
func TestAnAnswerOfAnotherShapeExplainsNoLock(t *testing.T) {
	t.Parallel()
	server, err := nullpg.Listen(t.Context(), "127.0.0.1:0", nullpg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	db, err := NewDriver().Open(target.Config{DSN: secret.New(server.DSN())})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.(*database).locked("SELECT 1"); err != nil {
		t.Errorf("a target without locks is explained: %v", err)
	}
}
