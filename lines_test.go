package main

import (
	"go/scanner"
	"go/token"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// longestLine is how many columns a line of Go has at most; a tab is one.
const longestLine = 120

// TestLinesAreShort: a line fits beside another one on a screen. What is inside a raw string
// is left as it is: a line break would be a part of the SQL or of the text.
func TestLinesAreShort(t *testing.T) {
	check := func(path string) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		raw := rawStrings(src)
		for i, line := range strings.Split(string(src), "\n") {
			if n := utf8.RuneCountInString(line); n > longestLine && !raw[i+1] {
				t.Errorf("%s:%d has %d columns, at most %d fit", path, i+1, n, longestLine)
			}
		}
	}
	everySource(t, check)
}

// rawStrings are the lines of a file, from 1 on, that a raw string touches.
func rawStrings(src []byte) map[int]bool {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	lines := map[int]bool{}
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.STRING && text[0] == '`' {
			first := file.Line(pos)
			for n := range strings.Count(text, "\n") + 1 {
				lines[first+n] = true
			}
		}
	}
}
