package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sources calls fn for every Go file of the module that is no test.
func sources(t *testing.T, fn func(path string)) {
	t.Helper()
	everySource(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			fn(path)
		}
	})
}

// everySource calls fn for every Go file of the module, tests too, that is written by hand.
func everySource(t *testing.T, fn func(path string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "node_modules" || name == "testdata" || name == "templates" ||
			len(name) > 1 && strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".pb.go") {
			fn(filepath.ToSlash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// named may name products, and why.
var named = map[string]string{
	"engine/plan/template/template.go":    "the table types of a template are names that the user writes",
	"engine/stream/connector/settings.go": "the type of a sink is a word of statements, as the user writes it",
	"engine/plan/prepare/access.go":       "a lock of rows is a right of UPDATE in one dialect of SQL",
	"engine/plan/prepare/readonly.go":     "functions that write are refused by their names, whatever database has them",
}

// TestTheCoreNamesNoProduct: what differs between databases is told by their drivers
// and adapters. A condition on a product's name would be one that the next driver
// has to be added to.
func TestTheCoreNamesNoProduct(t *testing.T) {
	drivers := regexp.MustCompile(
		`^engine/target/(postgres|snowflake|nullpg)/|^engine/stream/connector/postgres/|^engine/(store/storetest|plugin/plugintest)/`,
	)
	product := regexp.MustCompile(`(?i)postgres|snowflake`)
	used := map[string]bool{}
	sources(t, func(path string) {
		if !strings.HasPrefix(path, "engine/") || drivers.MatchString(path) {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BasicLit:
				if n.Kind == token.STRING && product.MatchString(n.Value) {
					if used[path] = true; named[path] == "" {
						t.Errorf("%s names a product: %s", path, n.Value)
					}
				}
			}
			return true
		})
	})
	for path := range named {
		if !used[path] {
			t.Errorf("%s names no product any more: it needs no exception", path)
		}
	}
}

// TestTheThreatModelNamesTests: each boundary is held by something, and so is each policy of work that goes on; the tests
// that the pages name are there.
func TestTheThreatModelNamesTests(t *testing.T) {
	tests := map[string]bool{}
	everySource(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
	})
	table := regexp.MustCompile(`(?m)^\| ([^|]+) \|.*\| ([^|]*)\|$`)
	var rows [][][]byte
	for name, part := range map[string]*regexp.Regexp{"docs/operate/threat-model.md": regexp.MustCompile(`(?s).*`),
		"docs/operate/security.md": regexp.MustCompile(`(?s)\n## Work that goes on\n.*?\n## `)} {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, table.FindAllSubmatch(part.Find(page), -1)...)
	}
	if len(rows) < 30 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		held := regexp.MustCompile("`([^`]+)`").FindAllSubmatch(row[2], -1)
		if len(held) == 0 && !strings.HasPrefix(string(row[1]), "---") && strings.TrimSpace(string(row[2])) != "held by" {
			t.Errorf("%s: nothing holds it", row[1])
		}
		for _, name := range held {
			if n := string(name[1]); !tests[n] && !strings.HasPrefix(n, "make ") {
				t.Errorf("%s: there is no test %s", row[1], n)
			}
		}
	}
}
