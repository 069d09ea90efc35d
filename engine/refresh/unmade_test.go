package refresh_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/refresh"
)

// TestATableThatIsNotMadeYetIsNotAMistake: who reads a table before its first refresh hears that, and anything else as
// it is.
func TestATableThatIsNotMadeYetIsNotAMistake(t *testing.T) {
	tables := []refresh.Table{{Name: "new", Status: refresh.Active}, {Name: "bad", Status: refresh.Failed},
		{Name: "Daily", Status: refresh.Active}, {Name: "old", Status: refresh.Active, AsOf: at(1)}}
	for message, want := range map[string]engine.Code{
		`relation "new" does not exist`:         engine.CodeUnavailable,
		`relation "tables.new" does not exist`:  engine.CodeUnavailable,
		`relation "Daily" does not exist`:       engine.CodeUnavailable,
		`relation "bad" does not exist`:         engine.CodeConflict,
		`relation "old" does not exist`:         engine.CodeInvalid,
		`relation "elsewhere" does not exist`:   engine.CodeInvalid,
		`column "new" does not exist`:           engine.CodeInvalid,
		`relation "new" does not exist, indeed`: engine.CodeInvalid,
	} {
		err := refresh.Unmade(engine.InvalidField("definition", message, ""), tables)
		if !engine.HasCode(err, want) || (want != engine.CodeInvalid) != strings.Contains(err.Error(), "refreshed yet") {
			t.Errorf("%s: %v", message, err)
		}
	}
	other := errors.New("away")
	if err := refresh.Unmade(other, tables); !errors.Is(err, other) {
		t.Errorf("another error: %v", err)
	}
}
