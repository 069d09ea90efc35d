package store_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine/store"
)

// TestAResultsConnectionThatWasChangedMeanwhile: one that is named again, after a time in which nobody kept others than
// admins from changing it, is known to lead elsewhere; a password is no address.
func TestAResultsConnectionThatWasChangedMeanwhile(t *testing.T) {
	t.Parallel()
	lake := store.Connection{ConnectionID: "1", Name: "lake", Driver: "snowflake", DSN: "snowflake://u:***@a.example/d"}
	elsewhere, described, anew := lake, lake, lake
	elsewhere.DSN = "snowflake://u:***@b.example/d"
	described.Description, described.Version = "the lake", 9
	anew.ConnectionID = "2"
	for name, c := range map[string]struct {
		name    string
		before  store.ResultsConnection
		found   store.Connection
		changed bool
	}{
		"as it was":       {"lake", store.ResultsConnection{Name: "lake", ConnectionID: "1"}.Released(lake), lake, false},
		"described":       {"lake", store.ResultsConnection{Name: "lake", ConnectionID: "1"}.Released(lake), described, false},
		"made anew":       {"lake", store.ResultsConnection{Name: "lake", ConnectionID: "1"}.Released(lake), anew, false},
		"elsewhere":       {"lake", store.ResultsConnection{Name: "lake", ConnectionID: "1"}.Released(lake), elsewhere, true},
		"was deleted":     {"lake", store.ResultsConnection{Name: "lake", ConnectionID: "1"}.Released(store.Connection{}), lake, true},
		"another name":    {"pond", store.ResultsConnection{Name: "lake", ConnectionID: "1"}.Released(lake), elsewhere, false},
		"never found":     {"lake", store.ResultsConnection{Name: "lake"}.Released(store.Connection{}), lake, false},
		"the first time":  {"lake", store.ResultsConnection{}, lake, false},
		"of another flag": {"lake", store.ResultsConnection{Name: "pond", ConnectionID: "3"}, lake, false},
		"it was guarded":  {"lake", store.ResultsConnection{Name: "lake", ConnectionID: "1"}, elsewhere, false},
	} {
		adopted, changed := c.before.Looked(c.name).Adopted(c.found)
		if changed != c.changed || adopted != (store.ResultsConnection{Name: c.name, ConnectionID: c.found.ConnectionID}) {
			t.Errorf("%s: changed %t, %+v", name, changed, adopted)
		}
		if _, again := adopted.Adopted(elsewhere); again {
			t.Errorf("%s: an admin's change is told", name)
		}
	}
	if left := (store.ResultsConnection{Name: "lake", ConnectionID: "1"}).Released(
		lake,
	); left.Is("1", "lake") ||
		left.Named("lake") {
		t.Error("one to which no results are taken is an admin's")
	}
}
