package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// requests are those of the catalog of streams with the errors that the design gives them.
var requests = map[string][]string{
	"CreateLogicalSource": {"AlreadyExists", "EmptySchema", "InvalidSchema"},
	"CreatePhysicalSource": {"AlreadyExists", "WorkerDoesNotExistForPhysical", "LogicalSourceDoesNotExistForPhysical",
		"SourceTypeDoesNotExist", "InvalidConfig"},
	"CreateSink": {"AlreadyExists", "WorkerDoesNotExistForSink", "SinkTypeDoesNotExist", "InvalidConfig"},
	"CreateQuery": {"ParserError", "NetworkError", "SinkDoesNotExistForQuery", "BinderError", "OptimizerError",
		"PlacementError"},
	"CreateWorker":       {"NetworkError"},
	"DropLogicalSource":  {"ReferencedPhysicalSourceExists"},
	"DropPhysicalSource": {"ReferencedQueryExists"},
	"DropSink":           {"ReferencedQueryExists"},
	"DropQuery":          {"NetworkError"},
	"DropWorker":         {"ReferencedQueryExists", "ReferencedSourceExists", "ReferencedSinkExists"},
	"GetLogicalSource":   {"DoesNotExist"},
	"GetPhysicalSource":  {"DoesNotExist"},
	"GetSink":            {"DoesNotExist"},
	"GetQuery":           {"DoesNotExist", "NetworkError"},
	"GetWorker":          {"DoesNotExist"},
}

// words are how statements of a request begin.
var words = regexp.MustCompile(`[A-Z][a-z]+`)

// requestRow is a row of the table in engine/stream/CHECKS.md: request, error, and what shows it.
var requestRow = regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z]+)` \\| `([A-Z][A-Za-z]+)` \\| (.+) \\|$")

// shows is one of the things that show an error: a test, a row of the statements that are refused, or a record of a
// test file.
var shows = regexp.MustCompile("`(Test\\w+|refusals|[a-z]+\\.slt)`")

// TestEachErrorOfARequestIsShown: the table of the documentation has each request with each of its errors, and what it
// names is there: a test, a statement of that request that is refused with that error over HTTP, or in a test file.
func TestEachErrorOfARequestIsShown(t *testing.T) {
	text, err := os.ReadFile("engine/stream/CHECKS.md")
	if err != nil {
		t.Fatal(err)
	}
	there := testNames(t)
	refused := refusals(t)
	listed := map[string]bool{}
	for _, row := range requestRow.FindAllStringSubmatch(string(text), -1) {
		request, kind := row[1], row[2]
		if !slices.Contains(requests[request], kind) {
			t.Errorf("engine/stream/CHECKS.md gives %s the error %s, which the design does not have", request, kind)
		}
		listed[request+" "+kind] = true
		named := shows.FindAllStringSubmatch(row[3], -1)
		if len(named) == 0 {
			t.Errorf("engine/stream/CHECKS.md says of %s of %s nothing that shows it", kind, request)
		}
		begins := strings.ToUpper(strings.Join(words.FindAllString(request, -1), " "))
		for _, n := range named {
			switch name := n[1]; {
			case strings.HasPrefix(name, "Test"):
				if !there[name] {
					t.Errorf("engine/stream/CHECKS.md names the test %s, which is not there", name)
				}
			case name == "refusals":
				if !slices.ContainsFunc(refused, func(r [2]string) bool { return r[1] == kind && is(request, begins, r[0]) }) {
					t.Errorf("no statement of %s is refused with %s in cli/streams_test.go", request, kind)
				}
			case !recorded(t, filepath.Join("examples/streams", name), kind,
				func(s string) bool { return is(request, begins, s) }):
				t.Errorf("no statement of %s is refused with %s in examples/streams/%s", request, kind, name)
			}
		}
	}
	for request, kinds := range requests {
		for _, kind := range kinds {
			if !listed[request+" "+kind] {
				t.Errorf("engine/stream/CHECKS.md does not say what shows %s of %s", kind, request)
			}
		}
	}
}

// is reports whether a text has a statement of a request.
func is(request, begins, sql string) bool {
	sql = strings.ToUpper(sql)
	return strings.Contains(sql, begins) || request == "CreateQuery" && strings.Contains(sql, "SELECT")
}

// testNames are the tests of the tree.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, dir := range []string{"cli", "engine", "storage", "server"} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range test.FindAllStringSubmatch(string(text), -1) {
				found[m[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// refusals are the statements that the test over HTTP has refused, with the error of each.
func refusals(t *testing.T) (list [][2]string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "cli/streams_test.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || spec.Names[0].Name != "refusals" {
			return true
		}
		all, is := spec.Values[0].(*ast.CompositeLit)
		if !is {
			return true
		}
		for _, e := range all.Elts {
			row, is := e.(*ast.CompositeLit)
			if !is || len(row.Elts) < 2 {
				continue
			}
			var parts []string
			for _, of := range row.Elts[:2] {
				text := ""
				ast.Inspect(of, func(n ast.Node) bool {
					if l, is := n.(*ast.BasicLit); is && l.Kind == token.STRING {
						s, err := strconv.Unquote(l.Value)
						if err != nil {
							t.Fatal(err)
						}
						text += s
					}
					return true
				})
				parts = append(parts, text)
			}
			list = append(list, [2]string{parts[0], parts[1]})
		}
		return false
	})
	if len(list) == 0 {
		t.Fatal("there are no refusals in cli/streams_test.go")
	}
	return list
}

// recorded reports whether a test file has a statement refused with an error.
func recorded(t *testing.T, file, kind string, is func(string) bool) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
		return false
	}
	for record := range strings.SplitSeq(string(text), "\n\n") {
		if strings.Contains(record, "statement error "+kind+"\n") && is(record) {
			return true
		}
	}
	return false
}
