package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// run is Main of a process that does other things too.
func run(ctx context.Context, forget func(), args []string, stdout, stderr io.Writer) int {
	return start(ctx, forget, func() {}, clitest.Settings(), args, stdout, stderr)
}

// writeReport writes a file as run --out does, of seconds with so many operations each.
func writeReport(t *testing.T, id string, perSecond ...int64) string {
	t.Helper()
	r := report.File{Summary: &engine.Summary{RunID: id}}
	for _, n := range perSecond {
		r.Seconds = append(r.Seconds, engine.MeasuredSecond{Operations: n})
	}
	var b bytes.Buffer
	if err := report.JSON(&b, r); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), id+".json")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func steady(n int64, seconds int) []int64 {
	all := make([]int64, seconds)
	for i := range all {
		all[i] = n + int64(i%3)
	}
	return all
}

func TestADashIsStandardOutputAndNothingElseGoesThere(t *testing.T) {
	a, b := writeReport(t, "a", steady(1000, 20)...), writeReport(t, "b", steady(1000, 20)...)
	for _, dash := range []string{"-", "/dev/stdout"} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), func() {}, []string{"compare", a, b, "--out", dash}, &out,
			&errs); code != terminal.ExitPassed {
			t.Fatalf("exit %d\n%s", code, errs.String())
		}
		var c struct{ Verdict string }
		if err := json.Unmarshal(out.Bytes(), &c); err != nil || c.Verdict == "" {
			t.Errorf("--out %s: standard output is not the result alone: %v\n%s", dash, err, out.String())
		}
		if !strings.Contains(errs.String(), "metric") {
			t.Errorf("--out %s: people see nothing:\n%s", dash, errs.String())
		}
	}
}

func TestTwoResultsDoNotShareAFile(t *testing.T) {
	dir := t.TempDir()
	template := filepath.Join(dir, "t.yaml")
	if err := os.WriteFile(template,
		[]byte("name: x\ntarget: {connection: playground, table_name: t}\nworkload: {plugin: mix}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	there, link := filepath.Join(dir, "there"), filepath.Join(dir, "link")
	if err := os.WriteFile(there, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(there, link); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none")
	for _, pair := range [][2]string{{"-", "-"}, {"-", "/dev/stdout"}, {there, there}, {there, link}, {none, none}} {
		var out, errs bytes.Buffer
		code := run(t.Context(), func() {}, []string{"run", template, "--out", pair[0], "--junit", pair[1]}, &out, &errs)
		if code != terminal.ExitUsage || !strings.Contains(errs.String(), "cannot both go") {
			t.Errorf("%v: exit %d\n%s", pair, code, errs.String())
		}
	}
	if b, err := os.ReadFile(there); err != nil || string(b) != "kept" {
		t.Errorf("the file was touched: %q %v", b, err)
	}
}

func TestWhatIsNoFileIsNotReadAsAPlugin(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{fifo, "/dev/zero", t.TempDir()} {
		for _, args := range [][]string{{"plugin", "inspect", path}, {"plugin", "test", path}, {"plugin", "bench", path}} {
			var out, errs bytes.Buffer
			if code := run(t.Context(), func() {}, args, &out, &errs); code != terminal.ExitUsage ||
				!strings.Contains(errs.String(), "not a regular file") {
				t.Errorf("%v: exit %d\n%s", args, code, errs.String())
			}
		}
	}
}

func TestATemplateThatNeverEndsIsRefused(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), func() {}, []string{"run", "/dev/zero"}, &out, &errs); code != terminal.ExitUsage ||
		!strings.Contains(errs.String(), "more than the limit of 2 MB") {
		t.Errorf("exit %d\n%s", code, errs.String())
	}
}

func TestComparingWhatIsNotThere(t *testing.T) {
	a := writeReport(t, "a", steady(1000, 20)...)
	bad := filepath.Join(t.TempDir(), "bad.json")
	for text, want := range map[string]string{`[]`: "it is a list", `{"run_id": 5}`: "the field run_id is a number",
		`{`: "ends too early", `{}`: "not a summary of a run"} {
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := run(t.Context(), func() {}, []string{"compare", a, bad}, &out, &errs)
		if code != terminal.ExitUsage || !strings.Contains(errs.String(), want) || strings.Contains(errs.String(), "json:") {
			t.Errorf("%s: exit %d\n%s", text, code, errs.String())
		}
	}
	for name, want := range map[string]string{"none.json": "There is no file none.json", t.TempDir(): "is a folder"} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), func() {}, []string{"compare", a, name}, &out, &errs); code != terminal.ExitUsage ||
			!strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit %d\n%s", name, code, errs.String())
		}
	}
}

func TestComparingARunWithItself(t *testing.T) {
	long, short := writeReport(t, "a", steady(1000, 20)...), writeReport(t, "b")
	for _, path := range []string{long, short} {
		var out, errs bytes.Buffer
		code := run(t.Context(), func() {}, []string{"compare", path, path, "--require-clear"}, &out, &errs)
		if code != terminal.ExitPassed || !strings.Contains(out.String(), "the same run") {
			t.Errorf("exit %d\n%s%s", code, out.String(), errs.String())
		}
	}
}

// TestAnArgumentIsNotAFieldOfARequest: who types a command is told of the argument; what a server refuses stays as
// it says it.
func TestAnArgumentIsNotAFieldOfARequest(t *testing.T) {
	for field, want := range map[string]bool{"--listen": true, "target.table_name": false} {
		var errs bytes.Buffer
		exitCode(&errs, engine.InvalidField(field, "is wrong", "write another"))
		text := errs.String()
		if strings.Contains(text, "An argument cannot be used.") != want || strings.Contains(text, "request") == want ||
			!strings.Contains(text, field+": is wrong (write another)") {
			t.Errorf("%s: %s", field, text)
		}
	}
}

// TestWhatASignalEndsIsToldAsInterrupted: whatever a command saw of it. What was not ended by one, and a run, which has
// an exit code and words of its own, are told as they are.
func TestWhatASignalEndsIsToldAsInterrupted(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	away := &engine.Error{Code: engine.CodeUnavailable, Message: "The server does not answer.", Cause: context.Canceled}
	own := &terminal.ExitError{Code: terminal.ExitFailed, Err: away}
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"by a signal":    {ended, away, "Interrupted."},
		"by itself":      {t.Context(), away, away.Message},
		"a run":          {ended, own, away.Message},
		"something else": {ended, errors.New("no such table"), "no such table"},
	} {
		if got := terminal.Interrupted(c.ctx, c.err).Error(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestVersion: the command and the flag that everybody tries first say the same.
func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), func() {}, args, &out, &errs); code != 0 || out.String() != versionLine()+"\n" {
			t.Errorf("%v: %d, %q, %q", args, code, out.String(), errs.String())
		}
	}
}
