package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/loadstone-db/loadstone/cli"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
)

// person is somebody at a terminal.
type person struct {
	t       *testing.T
	master  *os.File
	tty     *os.File
	history string
	ended   chan error
	mu      sync.Mutex
	seen    bytes.Buffer
	asked   []string
}

// pseudoTerminal is a terminal with the end at which somebody sits.
func pseudoTerminal(t *testing.T) (master, tty *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, tty
}

// sit opens a shell on a pseudo-terminal.
func sit(t *testing.T, history string) *person {
	t.Helper()
	master, tty := pseudoTerminal(t)
	p := &person{t: t, master: master, tty: tty, history: history, ended: make(chan error, 1)}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			p.mu.Lock()
			p.seen.Write(b[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	s := &cli.SQLSession{History: history, Do: p.answer, SQLShell: cli.SQLShell{Format: "csv", Ask: p.ask}}
	go func() { p.ended <- s.Run(t.Context(), tty, tty) }()
	t.Cleanup(func() { _ = tty.Close(); _ = master.Close() })
	p.wait("loadstone=> ")
	return p
}

// answer is the server's.
func (p *person) answer(_ context.Context, _, path string, _, out any) error {
	text := `{"relations": [{"name": "run_summary", "schema": "tables", "columns": [{"name": "p95_ms"}]}]}`
	if path == "/api/v1/streams" {
		text = `{"sources": [{"name": "heartbeats", "columns": [{"name": "workerId"}]}], "sinks": [{"name": "stop_run"}]}`
	}
	return decodeInto(text, out)
}

func (p *person) ask(ctx context.Context, sql string) (query.Answer, error) {
	p.mu.Lock()
	p.asked = append(p.asked, strings.Join(strings.Fields(sql), " "))
	n := len(p.asked)
	p.mu.Unlock()
	switch {
	case strings.Contains(sql, "forever"):
		<-ctx.Done()
		return query.Answer{}, ctx.Err()
	case strings.Contains(sql, "wrong"):
		return query.Answer{}, &engine.Error{Code: engine.CodeInvalid, Message: "no such table\n  ^"}
	}
	return query.Answer{Columns: []query.Column{{Name: "answer"}}, Rows: [][]any{{fmt.Sprintf("row %d", n)}}}, nil
}

func (p *person) typing(text string) {
	p.t.Helper()
	p.mu.Lock()
	p.seen.Reset()
	p.mu.Unlock()
	if _, err := p.master.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits until the terminal shows a text since something was last typed.
func (p *person) wait(text string) {
	p.t.Helper()
	var seen string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		p.mu.Lock()
		seen = p.seen.String()
		p.mu.Unlock()
		if strings.Contains(seen, text) {
			return
		}
	}
	p.t.Fatalf("the terminal does not show %q, but %q", text, seen)
}

func (p *person) statements() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.asked...)
}

func (p *person) quit() {
	p.t.Helper()
	before, err := term.GetState(int(p.tty.Fd()))
	if err != nil {
		p.t.Fatal(err)
	}
	p.typing("\x04")
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Error(err)
		}
	case <-time.After(10 * time.Second):
		p.t.Fatal("Ctrl+D does not end it")
	}
	after, err := term.GetState(int(p.tty.Fd()))
	if err != nil || fmt.Sprint(before) == fmt.Sprint(after) {
		p.t.Errorf("the terminal stays as the shell had it: %v", err)
	}
}

// TestCtrlCEndsTheStatement: and not the shell; at the prompt it gives the line up.
func TestCtrlCEndsTheStatement(t *testing.T) {
	p := sit(t, "")
	p.typing("SELECT forever;\r")
	for len(p.statements()) == 0 {
		time.Sleep(time.Millisecond)
	}
	p.typing("typed ahead\x03")
	p.wait("Cancelled.")
	p.typing("SELECT\r")
	p.wait("        -> ")
	p.typing("wrong\x03")
	p.wait("loadstone=> ")
	p.typing("SELECT wrong;\r")
	p.wait("no such table")
	p.typing("SELECT 1;\r")
	p.wait("row 3")
	if got := p.statements(); len(got) != 3 || got[2] != "SELECT 1;" {
		t.Errorf("asked %q", got)
	}
	p.quit()
}

// known waits until the shell knows the names of the server, which it asks for beside.
func (p *person) known() {
	p.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		p.typing("SELECT x INTO st\t\x03")
		p.wait("loadstone=> ")
		p.mu.Lock()
		done := strings.Contains(p.seen.String(), "stop_run")
		p.mu.Unlock()
		if done {
			return
		}
	}
	p.t.Fatal("it never knows the names of the server")
}

// TestTabCompletes: keywords, and names where they may stand.
func TestTabCompletes(t *testing.T) {
	p := sit(t, "")
	p.known()
	p.typing("sel\tp95\tFROM run_s\t;\r")
	p.wait("row 1")
	p.typing("SELECT workerI\tFROM hear\tINTO st\t;\r")
	p.wait("row 2")
	want := []string{"select p95_ms FROM run_summary ;", "SELECT workerId FROM heartbeats INTO stop_run ;"}
	if got := p.statements(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("asked %q", got)
	}
	p.typing("SELECT S\t")
	p.wait("SUM(")
	p.wait("STDDEV(")
	p.typing("\x03")
	p.wait("loadstone=> ")
	p.quit()
}

// TestStatementsAreKept: whole, in a file of one's own, without those that may hold a secret.
func TestStatementsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deep", "sql_history")
	p := sit(t, file)
	p.typing("-- a remark\rSELECT 1,\r  2;\r")
	p.wait("row 1")
	p.typing("CREATE SINK s TYPE WEBHOOK SET('https://h/canary' AS SINK.URL);\r")
	p.wait("row 2")
	p.typing("SELECT 'postgres://u:canary@h/d';\r")
	p.wait("row 3")
	p.quit()
	text, err := os.ReadFile(file)
	if err != nil || string(text) != "SELECT 1, 2;\n" {
		t.Errorf("kept %q, %v", text, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	p = sit(t, file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("what others may read stays open to them: %v, %v", info.Mode(), err)
	}
	p.typing("\x1b[A\r")
	p.wait("row 1")
	if got := p.statements(); got[0] != "SELECT 1, 2;" {
		t.Errorf("the arrow brings back %q", got)
	}
	p.quit()
}

// TestCommands: \watch, \d, \? and what is not one.
func TestCommands(t *testing.T) {
	p := sit(t, "")
	p.typing("\\watch\r")
	p.wait("there is no statement to watch")
	p.typing("SELECT 1;\r")
	p.wait("row 1")
	p.typing("\\watch 0.1\r")
	p.wait("row 4")
	p.typing("\x03")
	p.wait("Cancelled.")
	p.typing("\\watch never\r")
	p.wait("takes seconds")
	p.typing("\\d run's\r")
	p.wait("row ")
	if got := p.statements(); !strings.Contains(got[len(got)-1], "table_name = 'run''s'") {
		t.Errorf("asked %q", got)
	}
	p.typing("\\d\r")
	p.wait("row ")
	if got := p.statements(); !strings.Contains(got[len(got)-1], "string_agg") {
		t.Errorf("asked %q", got)
	}
	p.typing("\\?\r")
	p.wait("Tab completes")
	p.typing("\\x\r")
	p.wait(`there is no command \x`)
	p.typing("\\q\r")
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
}

// TestATerminalObeysNothingAndAFileHasAll: what a value holds for a terminal is left out where there is one, whatever
// the format; a file has the value as it is, but for what is no text of its format.
func TestATerminalObeysNothingAndAFileHasAll(t *testing.T) {
	const value = "a\x1b]8;;http://x\x07b\x1b[2J\u009b31m\u202ec"
	answer := query.Answer{Columns: []query.Column{{Name: "v\x1b[2J", Type: "text"}}, Rows: [][]any{{value}}}
	obeyed := func(text string) bool { return strings.ContainsAny(text, "\x1b\x07\u009b\u202e") }
	for _, format := range []string{"table", "csv", "json"} {
		master, tty := pseudoTerminal(t)
		if err := cli.WriteAnswer(tty, format, answer); err != nil {
			t.Fatal(err)
		}
		_ = tty.Close()
		seen, _ := io.ReadAll(master) // it ends with an error when nobody has the terminal any more
		if obeyed(string(seen)) || !strings.Contains(string(seen), "a") {
			t.Errorf("%s: the terminal shows %q", format, seen)
		}
		_ = master.Close()

		file, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		if err := cli.WriteAnswer(file, format, answer); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file.Name())
		_ = file.Close()
		if err != nil {
			t.Fatal(err)
		}
		switch format {
		case "table": // for people, wherever it goes
			if obeyed(string(text)) {
				t.Errorf("a table in a file: %q", text)
			}
		case "csv":
			if !strings.Contains(string(text), value) {
				t.Errorf("CSV in a file: %q", text)
			}
		case "json":
			var row map[string]string
			if err := decodeInto(string(text), &row); err != nil || row["v\x1b[2J"] != value || obeyed(string(text)) {
				t.Errorf("JSON in a file: %v %q", err, text)
			}
		}
	}
}
