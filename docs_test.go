package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents calls fn for every document of the repository: its path from the root, and its text.
func documents(t *testing.T, fn func(path, text string)) {
	t.Helper()
	walkTree(t, func(path string) {
		if strings.HasSuffix(path, ".md") {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			fn(path, string(text))
		}
	})
}

// walkTree calls fn for every file that is written by hand.
func walkTree(t *testing.T, fn func(path string)) {
	t.Helper()
	left := []string{"node_modules", "dist", "built", "bin", "site", "testdata", "hostile"}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); slices.Contains(left, name) || len(name) > 1 && strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() {
			fn(filepath.ToSlash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	fence    = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```$")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	notSlug  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	mention  = regexp.MustCompile(`\bdocs/[\w/.-]*?\.md\b`)
	sentence = regexp.MustCompile(`[.!?](?:\s+|$)`)
)

// anchors are the addresses of the headings of a document.
func anchors(text string) (found []string) {
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		slug := notSlug.ReplaceAllString(strings.ToLower(link.ReplaceAllString(m[1], "]")), "")
		found = append(found, strings.ReplaceAll(slug, " ", "-"))
	}
	return found
}

// TestDocsLinkToWhatIsThere: every link of a document leads to a file, and to a heading of it where it names one; and
// every document that source code or configuration names is there.
func TestDocsLinkToWhatIsThere(t *testing.T) {
	t.Parallel()
	seen := 0
	documents(t, func(path, text string) {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			seen++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			there, err := os.ReadFile(target)
			if info, errStat := os.Stat(target); errStat == nil && info.IsDir() {
				continue
			}
			if err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			} else if anchor != "" && !slices.Contains(anchors(string(there)), anchor) {
				t.Errorf("%s links to %s, which has no such heading", path, m[1])
			}
		}
	})
	if seen < 200 {
		t.Errorf("%d links were looked at", seen)
	}
	walkTree(t, func(path string) {
		switch filepath.Ext(path) {
		case ".go", ".ts", ".tsx", ".mjs", ".sh", ".py", ".yml", ".yaml", ".sql", ".json", ".toml", "", ".md":
		default:
			return
		}
		if strings.HasPrefix(path, "bench/results/") || strings.Contains(path, "/schemas/") ||
			path == "ui/src/api/schema.d.ts" {
			return
		}
		if info, err := os.Stat(path); err != nil || info.Size() > 300<<10 {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range mention.FindAllString(string(text), -1) {
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s names %s, which is not there", path, name)
			}
		}
	})
}

// TestDocsAreShort: how long the documents may be, in words.
func TestDocsAreShort(t *testing.T) {
	t.Parallel()
	const mostDocs, mostReadme, mostTerms = 45_000, 900, 40
	words := 0
	documents(t, func(path, text string) {
		n := len(strings.Fields(text))
		switch {
		case path == "README.md" && n > mostReadme:
			t.Errorf("README.md has %d words, and may have %d", n, mostReadme)
		case strings.HasPrefix(path, "docs/") && !strings.HasPrefix(path, "docs/decisions/"):
			words += n
		}
	})
	if words > mostDocs {
		t.Errorf("the documents have %d words, and may have %d", words, mostDocs)
	}
	glossary, err := os.ReadFile("docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	var terms []string
	for _, m := range regexp.MustCompile(`(?m)^- \*\*(.+?)\*\*`).FindAllStringSubmatch(string(glossary), -1) {
		terms = append(terms, m[1])
	}
	if len(terms) < 20 || len(terms) > mostTerms || !slices.IsSorted(terms) {
		t.Errorf("the glossary has %d terms (at most %d, in order): %q", len(terms), mostTerms, terms)
	}
}

// TestDocsHaveShortSentences: no sentence of a page has more than 40 words, and the median has at most 18.
func TestDocsHaveShortSentences(t *testing.T) {
	t.Parallel()
	const most, median = 40, 18
	var lengths []int
	documents(t, func(path, text string) {
		if strings.HasPrefix(path, "docs/snow") ||
			path != "README.md" && (!strings.HasPrefix(path, "docs/") || strings.HasPrefix(path, "docs/decisions/")) {
			return
		}
		for line := range strings.Lines(fence.ReplaceAllString(text, "")) {
			cells := []string{line}
			if strings.HasPrefix(line, "|") {
				cells = strings.Split(strings.ReplaceAll(line, `\|`, "/"), "|")
			}
			for _, cell := range cells {
				cell = regexp.MustCompile("`[^`]*`").ReplaceAllString(cell, "code")
				for _, s := range sentence.Split(cell, -1) {
					n := wordsOf(strings.TrimLeft(s, "-#*0123456789 "))
					if n > most && strings.Count(s, "code") < n/2 {
						t.Errorf("%s: a sentence of %d words: %.120s", path, n, s)
					}
					if n > 3 {
						lengths = append(lengths, n)
					}
				}
			}
		}
	})
	slices.Sort(lengths)
	if n := len(lengths); n < 1000 || lengths[n/2] > median {
		t.Errorf("the median of %d sentences has %d words, and may have %d", n, lengths[n/2], median)
	}
}

// TestTroubleshootingQuotesTheProgram: each message of the page is one of the program, or a word of its vocabulary.
func TestTroubleshootingQuotesTheProgram(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/operate/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	everySource(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(source)
		}
	})
	all, rows := sources.String(), 0
	for _, row := range regexp.MustCompile("(?m)^- `([^`]+)`").FindAllStringSubmatch(string(text), -1) {
		rows++
		for _, part := range strings.Split(row[1], "…") {
			if part = strings.Trim(part, " "); len(part) > 3 && !strings.Contains(all, part) {
				t.Errorf("the program does not say %q", part)
			}
		}
	}
	if rows < 40 {
		t.Errorf("%d messages", rows)
	}
}
