package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// How long a sentence that a person meets may be, in words, and the median of those of one kind.
const (
	mostWords   = 40
	medianWords = 18
)

var tagged = regexp.MustCompile(`\b(?:help|doc):"((?:\\.|[^"\\])*)"`)

// TestTextsHaveShortSentences goes through the texts that a person meets beside the documents: help of the command
// line, errors and hints, descriptions of the API and of templates. -v prints the medians.
func TestTextsHaveShortSentences(t *testing.T) {
	t.Parallel()
	texts := map[string][]string{}
	everySource(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "bench/") || strings.HasPrefix(path, "deploy/") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				if n.Tag != nil {
					for _, m := range tagged.FindAllStringSubmatch(n.Tag.Value, -1) {
						texts["help and API"] = append(texts["help and API"], path+": "+m[1])
					}
				}
			case *ast.KeyValueExpr:
				if key, is := n.Key.(*ast.Ident); is && (key.Name == "Message" || key.Name == "Hint") {
					texts["errors"] = append(texts["errors"], path+": "+literal(n.Value))
				}
			case *ast.CallExpr:
				if f, is := n.Fun.(*ast.SelectorExpr); is && f.Sel.Name == "InvalidField" && len(n.Args) == 3 {
					texts["errors"] = append(texts["errors"], path+": "+literal(n.Args[1]), path+": "+literal(n.Args[2]))
				}
			}
			return true
		})
	})
	var schema any
	text, err := os.ReadFile("engine/plan/template/schema.json")
	if err == nil {
		err = json.Unmarshal(text, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	texts["templates"] = descriptions(schema)
	for kind, all := range texts {
		var lengths []int
		for _, text := range all {
			path, text, _ := strings.Cut(text, ": ")
			for _, s := range sentence.Split(text, -1) {
				n := wordsOf(s)
				if n > mostWords {
					t.Errorf("%s: a sentence of %d words: %.140s", path, n, s)
				}
				if n > 2 {
					lengths = append(lengths, n)
				}
			}
		}
		slices.Sort(lengths)
		if len(lengths) < 50 || lengths[len(lengths)/2] > medianWords {
			t.Errorf("%s: the median of %d sentences has %d words", kind, len(lengths), lengths[len(lengths)/2])
		}
		t.Logf("%s: %d sentences, median %d, 95 %% at most %d", kind, len(lengths), lengths[len(lengths)/2],
			lengths[len(lengths)*95/100])
	}
}

var keyword = regexp.MustCompile(`^[(\[{]?[A-Z_]{2,}[,;:.)\]}…]*$`)

// wordsOf counts the words of a sentence, keywords of SQL aside.
func wordsOf(s string) (n int) {
	for _, word := range strings.Fields(s) {
		if !keyword.MatchString(word) {
			n++
		}
	}
	return n
}

// literal is the text of an expression, as far as it stands in the source.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	case *ast.CallExpr:
		if len(e.Args) > 0 {
			return literal(e.Args[0])
		}
	}
	return "x"
}

// descriptions are those of a JSON Schema.
func descriptions(node any) (found []string) {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			if text, is := value.(string); is && key == "description" {
				found = append(found, "schema.json: "+text)
			}
			found = append(found, descriptions(value)...)
		}
	case []any:
		for _, value := range node {
			found = append(found, descriptions(value)...)
		}
	}
	return found
}
