package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// flagsOf are the flags of the program, by command.
func flagsOf(t *testing.T) map[string][]string {
	t.Helper()
	var c commands
	k, err := kong.New(&c, kong.Vars{"default_listen": defaultListen, "version": version})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		for _, f := range n.Flags {
			found[n.Name] = append(found[n.Name], f.Name)
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(k.Model.Node)
	return found
}

var flagInText = regexp.MustCompile(`(?:^|[\s"\x60(=])--([a-z][a-z0-9-]+)`)

// notOurs are flags of other programs that texts name, toolchains the packages that start them.
var (
	notOurs    = []string{"no-install-recommends", "language", "strip-all"}
	toolchains = []string{"../plugins/author", "../storage/embedded"}
)

// TestHintsNameFlagsThatThereAre: a text of the program that names a flag which no command has sends its reader astray.
// What a node says is read at workers and servers, and names flags that both have.
func TestHintsNameFlagsThatThereAre(t *testing.T) {
	commands := flagsOf(t)
	anywhere := slices.Concat(slices.Collect(func(yield func([]string) bool) {
		for _, f := range commands {
			if !yield(f) {
				return
			}
		}
	})...)
	texts := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (slices.Contains([]string{"node_modules", ".git", ".cache", "bench", "deploy", "sdk"}, d.Name()) ||
			slices.Contains(toolchains, path)) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if f, is := n.(*ast.Field); is && f.Tag != nil {
				return false // of kong itself
			}
			lit, is := n.(*ast.BasicLit)
			if !is || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				return true
			}
			for _, m := range flagInText.FindAllStringSubmatch(text, -1) {
				texts++
				switch {
				case slices.Contains(notOurs, m[1]):
				case !slices.Contains(anywhere, m[1]):
					t.Errorf("%s names --%s, which no command has: %q", path, m[1], text)
				case strings.HasPrefix(path, "../engine/worker/"), strings.HasPrefix(path, "../engine/results/record/"):
					for _, command := range []string{"worker", "serve"} {
						if !slices.Contains(commands[command], m[1]) && m[1] != "drain" {
							t.Errorf("%s names --%s, which %s does not have: %q", path, m[1], command, text)
						}
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if texts < 50 {
		t.Errorf("%d texts with flags were found", texts)
	}
}
