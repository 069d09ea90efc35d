package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// What a reader takes in at a time: a function on two screens, a file at one sitting, a package
// (its tests not counted) before forgetting how it began.
const (
	longestFunction = 100
	longestFile     = 600
	largestPackage  = 3_000
)

// tooLarge may be larger than that for now, until it is split. The list only shrinks: what is not
// too large any more has to leave it.
var tooLarge = map[string]bool{}

// TestNothingIsTooLargeToRead counts the lines of functions, files and packages.
func TestNothingIsTooLargeToRead(t *testing.T) {
	found := map[string]string{}
	packages := map[string]int{}
	everySource(t, func(name string) {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(string(src), "\n")
		if lines > longestFile {
			found[name] = fmt.Sprintf("has %d lines, a file at most %d", lines, longestFile)
		}
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		packages[path.Dir(name)] += lines
		for function, lines := range functions(t, name, src) {
			if lines > longestFunction {
				found[name+" "+function] = fmt.Sprintf("has %d lines, a function at most %d", lines, longestFunction)
			}
		}
	})
	for dir, lines := range packages {
		if lines > largestPackage {
			found[dir] = fmt.Sprintf("has %d lines without its tests, a package at most %d", lines, largestPackage)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(found)) {
		if !tooLarge[what] {
			t.Errorf("%s %s", what, found[what])
		}
	}
	for what := range tooLarge {
		if found[what] == "" {
			t.Errorf("%s is small enough: it needs no exception", what)
		}
	}
}

// functions are those of a file that have a name, each with its number of lines.
func functions(t *testing.T, name string, src []byte) map[string]int {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		n := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1
		lines[f.Name.Name] = max(lines[f.Name.Name], n)
	}
	return lines
}
