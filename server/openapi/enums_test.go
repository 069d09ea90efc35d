package openapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEveryValueOfTheEngineIsInTheDocument reads the constants of the types that the
// document lists: a value that is new in the engine is new in the document too.
func TestEveryValueOfTheEngineIsInTheDocument(t *testing.T) {
	const module = "github.com/loadstone-db/loadstone/"
	for _, e := range enumerations {
		folder := "../../" + strings.TrimPrefix(e.of.PkgPath(), module)
		want := constants(t, folder, e.of)
		listed := make([]string, len(e.values))
		for i, v := range e.values {
			listed[i] = v.(string)
		}
		slices.Sort(want)
		slices.Sort(listed)
		if len(want) == 0 || !slices.Equal(want, listed) {
			t.Errorf("%s has the values %q, the document lists %q", e.of, want, listed)
		}
	}
}

// constants are the values of a type's constants, from its package's sources.
func constants(t *testing.T, folder string, of reflect.Type) (found []string) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", folder, len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != of.Name() {
				return true
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok {
					text, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
					found = append(found, text)
				}
			}
			return true
		})
	}
	return found
}
