package prepare

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// TestWhatSettlesChecksConstraintsAlone: an adapter has nothing else executed beside the statements that are tried.
func TestWhatSettlesChecksConstraintsAlone(t *testing.T) {
	for sql, fine := range map[string]bool{"": false, "SET CONSTRAINTS ALL IMMEDIATE": true, "set constraints all immediate": true,
		"SET ROLE postgres": false, "SET CONSTRAINTS ALL IMMEDIATE; COMMIT": false, "COMMIT": false,
		"SET CONSTRAINTS ALL DEFERRED": false} {
		if why := checksConstraints(sql, sqltext.DialectOf("postgres")); (why == "") != fine {
			t.Errorf("%q: %q", sql, why)
		}
	}
}

// TestWhatTheDatabaseRefusesIsKnownBeforehand: a statement that cannot be
// prepared is an error of the preparation, and a failed check of the preflight.
func TestWhatTheDatabaseRefusesIsKnownBeforehand(t *testing.T) {
	w := newWorld()
	if _, err := Plan(t.Context(), w.deps(), prepared(100, engine.IfExistsUse), nil); err != nil || w.tried != 1 {
		t.Fatalf("%v, %d connections tried", err, w.tried)
	}
	refused := &engine.Error{Code: engine.CodeTarget, Message: "Statement one cannot be prepared: no such column.",
		Hint: "Line 1 of its SQL:\n    SELECT\n    ^"}
	w = newWorld()
	w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
	w.connectErr = refused
	_, err := Plan(t.Context(), w.deps(), scenario(), nil)
	fails(t, err, engine.CodeTarget, "", "Statement one cannot be prepared")
	f, err := Inspect(t.Context(), w.deps(), scenario(), true)
	if err != nil {
		t.Fatal(err)
	}
	last := f.Checks[len(f.Checks)-1]
	if f.OK || last.Name != "statements" || last.Outcome != CheckFailed || last.Message != refused.Message ||
		last.Fix != refused.Hint {
		t.Errorf("%+v", last)
	}
}
