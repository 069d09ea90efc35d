package textsafe

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestTexts(t *testing.T) {
	for _, c := range []struct{ text, lines, line string }{
		{"plain, näch 日本 🙂", "plain, näch 日本 🙂", "plain, näch 日本 🙂"},
		{"\x1b]8;;http://x\x07link\x1b]8;;\x07", "]8;;http://xlink]8;;", "]8;;http://xlink]8;;"},
		{"\u009b2J\x7f\x00a", "2Ja", "2Ja"},
		{"a\r\n\tb\vc", "a\n\tbc", "a   b c"},
		{"\u202egnp.exe\u2069\ufeff\u200b", "gnp.exe", "gnp.exe"},
		{"one\u2028two\u2029three", "onetwothree", "one two three"},
		{"\xed\xa0\x80half\xff", "?half?", "?half?"},
	} {
		if got := Multiline(c.text); got != c.lines {
			t.Errorf("Lines(%q) = %q, want %q", c.text, got, c.lines)
		}
		if got := OneLine(c.text); got != c.line {
			t.Errorf("OneLine(%q) = %q, want %q", c.text, got, c.line)
		}
	}
	if got := Shorten(strings.Repeat("é", 10), 4); got != "ééé…" {
		t.Errorf("cut: %q", got)
	}
	if got := Shorten("éééé", 4); got != "éééé" {
		t.Errorf("not cut: %q", got)
	}
}

// TestJSONSaysTheSame: what is escaped is read as what it was, and what need not be stays.
func TestJSONSaysTheSame(t *testing.T) {
	for _, text := range []string{"", "plain", "näch 日本 🙂 <b>&", "\u202egnp.exe \u009b2J\x7f", "a\U000e0001b", "\u200d"} {
		var document bytes.Buffer
		enc := json.NewEncoder(&document)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(map[string]string{text: text}); err != nil {
			t.Fatal(err)
		}
		got := EscapeJSON(document.Bytes())
		if strings.ContainsFunc(strings.TrimSpace(string(got)), IsControl) {
			t.Errorf("%q: %q", text, got)
		}
		var back map[string]string
		if err := json.Unmarshal(got, &back); err != nil || back[text] != text || len(back) != 1 {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	plain := []byte("{\"a\":\"näch 🙂\"}\n")
	if got := EscapeJSON(plain); string(got) != string(plain) {
		t.Errorf("%q", got)
	}
}
