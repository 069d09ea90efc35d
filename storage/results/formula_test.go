package results

import (
	"context"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestCSVNeutralisesFormulas: no text of a database or a plugin is a formula in a spreadsheet.
func TestCSVNeutralisesFormulas(t *testing.T) {
	for text, want := range map[string]string{
		`=HYPERLINK("http://x")`: `"'=HYPERLINK(""http://x"")"`,
		"+SUM(A1)":               "'+SUM(A1)", "-2+3": "'-2+3", "@cmd": "'@cmd", "\t=1": "\"'\t=1\"", "\r=1": "\"'\r=1\"",
		"  =1": "'  =1", "＝1": "'＝1",
		"-5": "-5", "+1.5": "+1.5", "a=b": "a=b", "": "", "-": "'-", "a;=1": `"a;=1"`,
	} {
		if got := csvText(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	saved, kept := dictionary, statements
	defer func() { dictionary, statements = saved, kept }()
	statements = []engine.Statement{{ID: "=lookup", Kind: engine.KindPointLookup}}
	dictionary = []engine.ExecutionError{{}, {Class: engine.ErrClassOther, Code: "@x", Message: "=1+1"}}
	f := open(t)
	recs := someExecutions(10)
	for i := range recs {
		recs[i].Success, recs[i].ErrorID = false, 1
	}
	put(t, f, "worker-0", recs)
	var out strings.Builder
	if err := f.WriteCSV(context.Background(), "run", &out); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	neutral := 0
	for _, line := range lines[1:] {
		for i, cell := range line {
			if cell != "" && strings.ContainsRune("=+@", rune(cell[0])) {
				t.Errorf("%s holds %q", lines[0][i], cell)
			}
			if strings.HasPrefix(cell, "'") {
				neutral++
			}
		}
	}
	if neutral != 3*len(recs) {
		t.Errorf("%d cells are neutralised, want 3 of each of the %d", neutral, len(recs))
	}
}
