package plaintext

import (
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
		if got := Lines(c.text); got != c.lines {
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
