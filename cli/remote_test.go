package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
)

// TestExit2WhenTheServerDiesMidRun: what was begun and whose end nobody knows has not passed, and is no usage error.
func TestExit2WhenTheServerDiesMidRun(t *testing.T) {
	settings := terminal.Settings{MaxServerDowntime: 100 * time.Millisecond}
	one := filepath.Join(t.TempDir(), "one.yaml")
	two := filepath.Join(t.TempDir(), "two.yaml")
	target := "{connection: playground, adapter: postgres, table_name: t}"
	if err := os.WriteFile(one, []byte("name: x\ntarget: "+target+"\nworkload: {plugin: mix}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(two, []byte("name: x\nmatrix: {targets: ["+target+", "+target+"]}\nworkload: {plugin: mix}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for name, then := range map[string]func(http.ResponseWriter){
		"it hangs up":     func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"it knows no run": func(w http.ResponseWriter) { problemOf(w, http.StatusNotFound, "not_found") },
		"it is shut":      func(w http.ResponseWriter) { problemOf(w, http.StatusServiceUnavailable, "unavailable") },
	} {
		for _, template := range []string{one, two} {
			var requested atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodPost:
					_ = json.NewEncoder(w).Encode(map[string]any{"run_id": "r", "matrix_id": "m", "status": "RUNNING"})
				case requested.Add(1) == 1:
					_ = json.NewEncoder(w).Encode(map[string]any{"run_id": "r", "matrix_id": "m", "status": "RUNNING",
						"runs": []any{}})
				default:
					then(w)
				}
			}))
			var out, errs bytes.Buffer
			code := start(t.Context(), func() {}, func() {}, settings,
				[]string{"run", template, "--server", server.URL, "--token", "x"}, &out, &errs)
			server.Close()
			if code != terminal.ExitFailed || !strings.Contains(errs.String(), "loadstone: ") {
				t.Errorf("%s, %s: exit %d\n%s", name, filepath.Base(template), code, errs.String())
			}
		}
	}
	// One that never answered began nothing: that is a mistake of the command line.
	var out, errs bytes.Buffer
	if code := run(t.Context(), func() {}, []string{"run", one, "--server", "http://127.0.0.1:1", "--token", "x"}, &out,
		&errs); code != terminal.ExitUsage {
		t.Errorf("a server that never answered: exit %d\n%s", code, errs.String())
	}
}

func problemOf(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"code": code, "detail": "No."})
}

// TestEnableAsksWithTheHash: an approval is of one file, and a name may mean several.
func TestEnableAsksWithTheHash(t *testing.T) {
	var enabled string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			enabled = r.URL.Path
			_ = json.NewEncoder(w).Encode(map[string]any{"name": "mine", "version": "1", "sha256": "aa"})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"plugins": []any{
			map[string]any{"name": "twice", "version": "1", "sha256": "11", "state": "disabled"},
			map[string]any{"name": "twice", "version": "2", "sha256": "22", "state": "disabled"},
			map[string]any{"name": "twice", "version": "0", "sha256": "00", "state": "enabled", "enabled": true},
			map[string]any{"name": "mine", "version": "1", "sha256": "aa", "state": "disabled"},
		}})
	}))
	defer server.Close()
	for _, c := range []struct {
		ref, path, says string
		code            int
	}{
		{"twice", "", "sha256 22", terminal.ExitUsage},
		{"twice@2", "/api/plugins/22/enable", "is enabled", terminal.ExitPassed},
		{"mine", "/api/plugins/aa/enable", "sha256  aa", terminal.ExitPassed},
		{"22", "/api/plugins/22/enable", "is enabled", terminal.ExitPassed},
	} {
		enabled = ""
		var out, errs bytes.Buffer
		code := run(t.Context(), func() {}, []string{"plugin", "enable", c.ref, "--server", server.URL, "--token", "x"}, &out,
			&errs)
		if message := out.String() + errs.String(); code != c.code || enabled != c.path ||
			!strings.Contains(message, c.says) {
			t.Errorf("enable %s: exit %d, enabled %q\n%s", c.ref, code, enabled, message)
		}
	}
}

// TestSecretsComeFromFiles: tokens, URLs and passwords need not be arguments.
func TestSecretsComeFromFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token, empty := write("token", "s3cret\n"), write("empty", "\n")
	got := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		_ = json.NewEncoder(w).Encode(map[string]any{"plugins": []any{}})
	}))
	defer server.Close()
	call := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		return run(t.Context(), func() {}, args, &out, &errs), out.String() + errs.String()
	}
	if code, message := call(
		"plugin",
		"list",
		"--server",
		server.URL,
		"--token-file",
		token,
	); code != terminal.ExitPassed ||
		got != "Bearer s3cret" {
		t.Errorf("exit %d, %q\n%s", code, got, message)
	}
	t.Setenv("LOADSTONE_TOKEN_FILE", token)
	if code, output := call("plugin", "list", "--server", server.URL); code != terminal.ExitPassed {
		t.Errorf("from the environment: exit %d\n%s", code, output)
	}
	url := write("url", "postgres://u:s3cret@127.0.0.1:1/d?connect_timeout=1\n")
	at := write("at", "postgres://u:p@s3cret@127.0.0.1:1/d?connect_timeout=1\n")
	template := write("t.yaml",
		"name: x\ntarget: {connection: {driver: postgres}, table_name: t}\nworkload: {plugin: mix}\n")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"plugin", "list", "--server", server.URL, "--token", "x", "--token-file", token}, "give one of them"},
		{[]string{"plugin", "list", "--server", server.URL, "--token-file", empty}, "is empty"},
		{[]string{"plugin", "list", "--server", server.URL, "--token-file", filepath.Join(dir, "none")}, "cannot be read"},
		{[]string{"schema", "check", "--database-url-file", url}, "cannot be reached"},
		{[]string{"schema", "check", "--database-url-file", empty}, "is empty"},
		{[]string{"serve", "--database-url-file", empty}, "is empty"},
		{[]string{"schema", "check", "--database-url-file", at}, "%40"},
		{[]string{"schema", "apply", "--database-url", "postgres://u:12/s3cret@h/d"}, "%2F"},
		{[]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--database-url-file", at}, "%40"},
		{[]string{"backup", "--out", filepath.Join(dir, "b"), "--data-dir", dir, "--database-url-file", at}, "%40"},
		{[]string{"run", template, "--data-dir", dir, "--database-url-file", at, "--set-file", "target.connection.dsn=" + url}, "%40"},
		{[]string{"run", template, "--set-file", "target.connection.dsn=" + at}, "%40"},
		{[]string{"snowsim", "--postgres", "postgres://u:p?x=s3cret@h/d"}, "%3F"},
		{[]string{"run", template}, "target.connection.dsn"},
		{[]string{"run", template, "--set-file", "target.connection.dsn"}, "names no file"},
		{[]string{"run", template, "--set-file", "target.connection.dsn=" + empty}, "is empty"},
		{[]string{"run", template, "--plugin", "x.wasm", "--server", server.URL}, "loadstone plugin upload x.wasm"},
	} {
		if code, reported := call(c.args...); code != terminal.ExitUsage || !strings.Contains(reported, c.says) ||
			strings.Contains(reported, "s3cret") {
			t.Errorf("%v: exit %d, want %q\n%s", c.args, code, c.says, reported)
		}
	}
	c := runCommand{Template: template, SetFile: []string{"target.connection.dsn=" + url}}
	source, err := c.source()
	if err != nil || !strings.Contains(string(source), "s3cret@127.0.0.1:1/d?connect_timeout=1") {
		t.Errorf("%v\n%s", err, source)
	}
}
