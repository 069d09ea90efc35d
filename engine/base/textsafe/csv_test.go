package textsafe

import "testing"

// TestFormulasAreTexts leaves numbers as they are.
func TestFormulasAreTexts(t *testing.T) {
	for v, want := range map[string]string{"": "", "=1+1": "'=1+1", " =1": "' =1", "@SUM(A1)": "'@SUM(A1)", "-": "'-",
		"-1": "-1", "+1.5": "+1.5", "-1+cmd": "'-1+cmd", "-Infinity": "-Infinity", "\t=1": "'\t=1", "＝1": "'＝1",
		"a=1":      "a=1",
		"\u00a0=1": "'\u00a0=1", "\ufeff\u200b@x": "'\ufeff\u200b@x",
		"\u200ba": "\u200ba", "2026-01-01": "2026-01-01", "\xff": "\xff", "\n=1": "'\n=1"} {
		if got := CSVField(v); got != want {
			t.Errorf("%q is %q, want %q", v, got, want)
		}
	}
}
