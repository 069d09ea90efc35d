package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
)

// TestWhatSinksNeedIsOffered: POSTGRES, METRIC and their settings were not completed, because the shell had a list of
// its own. The page still has one, in another language: it is held against the same.
func TestWhatSinksNeedIsOffered(t *testing.T) {
	var n completer
	for typed, want := range map[string]string{
		"SET('x' AS SINK.CON":    "SINK.CONNECTION",
		"SET('x' AS SINK.TA":     "SINK.TABLE",
		"SET('x' AS SINK.ME":     "SINK.METRIC",
		"CREATE SINK s TYPE POS": "POSTGRES",
		"create sink s type met": "metric",
		"SET(true AS SINK.AP":    "SINK.APPEND",
		"SET(1 AS SOURCE.B":      "SOURCE.BATCH_ROWS",
	} {
		if _, common, _ := n.complete(typed, len(typed)); common != want {
			t.Errorf("%s is completed to %q, want %q", typed, common, want)
		}
	}
	words := connector.Keywords()
	page, err := os.ReadFile("../ui/src/streams/language.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range words {
		if !slices.Contains(keywords, w) {
			t.Errorf("the shell does not offer %s", w)
		}
		if !strings.Contains(string(page), "'"+w+"'") {
			t.Errorf("the page does not offer %s", w)
		}
	}
	for _, w := range []string{"WEBHOOK", "SINK.URL", "PARSER.FIELD_DELIMITER"} {
		if !slices.Contains(words, w) {
			t.Errorf("%s is none of them", w)
		}
	}
}
