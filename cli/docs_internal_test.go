package cli

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var (
	shellBlock = regexp.MustCompile("(?ms)^```(?:sh|text)\n(.*?)^```$")
	inlineCode = regexp.MustCompile("`(loadstone [a-z][^`]*)`")
)

// TestTheDocsNameCommands: every command line of a page is one that the program takes, with these flags and arguments.
func TestTheDocsNameCommands(t *testing.T) {
	t.Parallel()
	seen, parser, tree := 0, newParser(t), commandTree(t).Model.Node
	check := func(path, line string) {
		for _, args := range commandLines(line) {
			seen++
			if err := parses(parser, args); err != nil {
				t.Errorf("%s: loadstone %s: %v", path, strings.Join(args, " "), err)
			}
		}
	}
	pages := []string{"../README.md"}
	err := filepath.WalkDir("../docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") && !strings.Contains(path, "decisions") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
				check(path, line)
			}
		}
		for _, code := range inlineCode.FindAllStringSubmatch(shellBlock.ReplaceAllString(string(text), ""), -1) {
			checkInline(t, tree, path, code[1])
			seen++
		}
	}
	if seen < 150 {
		t.Errorf("%d command lines were looked at", seen)
	}
}

// commandLines are the arguments of the program in a line of a shell.
func commandLines(line string) (found [][]string) {
	words := shellWords(line)
	for i := 0; i < len(words); i++ {
		if words[i] != "loadstone" && words[i] != "bin/loadstone" {
			continue
		}
		// An argument of another command, such as a name in docker, is none.
		if i > 0 && !strings.Contains(words[i-1], "=") && !strings.Contains("; && | & do ( psql", words[i-1]) {
			continue
		}
		var args []string
		for i++; i < len(words) && !strings.Contains("; && | & ) > #", words[i]); i++ {
			args = append(args, words[i])
		}
		found = append(found, args)
	}
	return found
}

// shellWords splits a line as a shell does, as far as the documents go; separators are words of their own.
func shellWords(line string) (words []string) {
	word, quote := "", rune(0)
	end := func() {
		if word != "" {
			words = append(words, word)
		}
		word = ""
	}
	text := []rune(strings.TrimSpace(line))
	for i, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
			if word == "" {
				word = " "
			}
		case quote == '"' && r == '(' && i > 0 && text[i-1] == '$':
			word, quote = "", 0 // "$(command)"
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote = r
		case r == '#' && word == "":
			return words
		case r == ' ':
			end()
		case strings.ContainsRune(";&|>()", r):
			end()
			words = append(words, string(r))
		default:
			word += string(r)
		}
	}
	end()
	return words
}

func newParser(t *testing.T) *kong.Kong {
	t.Helper()
	k, err := newProgram(new(commands), kong.Exit(func(int) {}), kong.Writers(io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// parses gives args to the parser of the program, and calls nothing. Files are those of the repository, and a server may be
// in the environment.
func parses(k *kong.Kong, args []string) error {
	if len(args) == 0 || args[0] == "COMMAND" || args[len(args)-1] == "--help" {
		return nil
	}
	for i, arg := range args {
		if strings.HasPrefix(arg, "examples/") {
			args[i] = "../" + arg
		}
	}
	_, err := k.Parse(args)
	if err != nil && strings.Contains(err.Error(), "missing flags: --server") {
		return nil
	}
	return err
}

// checkInline holds a command that stands in a sentence against the tree of commands; arguments may be left out there.
func checkInline(t *testing.T, node *kong.Node, path, code string) {
	t.Helper()
	for _, word := range shellWords(code)[1:] {
		if !regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(word) || len(node.Children) == 0 {
			break
		}
		next := node
		for _, child := range node.Children {
			if child.Name == word {
				next = child
			}
		}
		if next == node {
			t.Errorf("%s: %s: there is no command %s", path, code, word)
			return
		}
		node = next
	}
	for _, word := range shellWords(code) {
		name, is := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		if !is || name == "help" || name == "" {
			continue
		}
		known := false
		for _, f := range node.AllFlags(true) {
			for _, flag := range f {
				known = known || flag.Name == name
			}
		}
		if !known {
			t.Errorf("%s: %s: the command has no flag --%s", path, code, name)
		}
	}
}
