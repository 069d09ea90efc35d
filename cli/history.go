package cli

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/loadstone-db/loadstone/cli/terminal"
)

// maxHistory is how many statements a history has at most.
const maxHistory = 1000

// history has the statements of a person, the newest last, and keeps them in a file that only that person reads. It is
// what golang.org/x/term walks through with the arrow keys. What may hold a secret is never kept.
type history struct {
	file    string // "": nowhere
	entries []string
}

// secretStatement matches statements that are not kept: addresses of webhooks and what signs in.
var secretStatement = regexp.MustCompile(`(?i)sink\.url|passw|secret|token|credential|api_?key|://[^\s'"]*@`)

// historyFile is where the history lies, "" where there is no home.
func historyFile() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "loadstone", "sql_history")
}

// openHistory reads what was kept. A file that cannot be read is none; one that others may read is closed to them.
func openHistory(file string) *history {
	h := &history{file: file}
	if file == "" {
		return h
	}
	f, err := os.Open(file) // #nosec G304 -- the user's own
	if err != nil {
		return h
	}
	defer func() { _ = f.Close() }()
	_ = f.Chmod(0o600)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line := terminal.StripControls(lines.Text()); line != "" {
			h.entries = append(h.entries, line)
		}
	}
	if over := len(h.entries) - maxHistory; over > 0 {
		h.entries = h.entries[over:]
		_ = h.write(strings.Join(h.entries, "\n")+"\n", os.O_TRUNC)
	}
	return h
}

// remember keeps a statement as one line. A remark would end only with its line: those go.
func (h *history) remember(statement string) {
	var parts []string
	for line := range strings.Lines(statement) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			parts = append(parts, line)
		}
	}
	one := strings.Join(parts, " ")
	if len(parts) > 1 && strings.Contains(one, "--") || one == "" || secretStatement.MatchString(one) ||
		len(h.entries) > 0 && h.entries[len(h.entries)-1] == one {
		return
	}
	if h.entries = append(h.entries, one); len(h.entries) > maxHistory {
		h.entries = h.entries[1:]
	}
	_ = h.write(one+"\n", os.O_APPEND) // a history that cannot be kept is one of this session
}

func (h *history) write(text string, how int) error {
	if h.file == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.file, how|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = f.WriteString(text)
	return err
}

// Add implements term.TableHistory; statements are kept whole, not line by line.
func (h *history) Add(string) {}

// Len implements term.TableHistory.
func (h *history) Len() int { return len(h.entries) }

// At implements term.TableHistory: 0 is the newest.
func (h *history) At(i int) string { return h.entries[len(h.entries)-1-i] }
