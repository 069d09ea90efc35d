package cli

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// TestEverythingIsStoppedWhileTheStoreStandsStill: who has the machine stops all runs with a command, and who is signed
// in on the page, while the control store answers nothing; and who looks at the settings is not kept waiting.
func TestEverythingIsStoppedWhileTheStoreStandsStill(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("the processes of the store are found in /proc")
	}
	store := newOutageStore(t)
	url := store.url()
	target := newBusyTarget(t)
	if err := schema.Apply(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	p := clitest.NewProgram(t)
	dir := p.Path("data")
	served := clitest.Launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir", dir,
		"--database-url", url)
	operator := operatorOf(t, dir, served)
	session, _, _ := operator.SignIn()
	text := target.template("stopped")
	begin := func() string {
		t.Helper()
		var run engine.Run
		session.Do("POST", "/api/runs", map[string]any{"source": text, "start": true}, &run)
		session.AwaitLoad(run.RunID)
		return run.RunID
	}
	t.Cleanup(func() { store.signal(syscall.SIGCONT) })
	for _, c := range []struct {
		name string
		stop func(id string)
	}{
		{"by the command", func(id string) {
			code, message := p.Command("stop", "--all", "--yes", "--data-dir", dir)
			if code != terminal.ExitFailed || !strings.Contains(message, id) || !strings.Contains(message, "does not answer") {
				t.Errorf("exit %d: %s", code, message)
			}
		}},
		{"by the page", func(id string) {
			var r struct {
				Here []struct {
					RunID string `json:"run_id"`
				}
				StoreAnswered bool `json:"store_answered"`
			}
			if code, err := session.Try("POST", "/api/stop-all", struct{}{}, &r); code != http.StatusOK || len(r.Here) != 1 ||
				r.Here[0].RunID != id || r.StoreAnswered {
				t.Errorf("%d %v: %+v", code, err, r)
			}
		}},
	} {
		id := begin()
		store.signal(syscall.SIGSTOP)
		began := time.Now()
		c.stop(id)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: stopped after %v", c.name, took)
		}
		clitest.Until(t, 15*time.Second, func() bool { return target.busy() == 0 }, served.Out.String)
		began = time.Now()
		var prices struct{ From string }
		code, err := session.Try("GET", "/api/v1/prices", nil, &prices)
		if code != http.StatusOK || prices.From != "built_in" {
			t.Errorf("%s: the price list: %d %v", c.name, code, err)
		}
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("%s: the price list came after %v", c.name, took)
		}
		store.signal(syscall.SIGCONT)
		var d engine.RunDetail
		clitest.Until(t, time.Minute, func() bool {
			code, _ := session.Try("GET", "/api/runs/"+id, nil, &d)
			return code == http.StatusOK && d.Status.Terminal() && d.Summary != nil
		}, served.Out.String)
		if d.Status != engine.StatusCancelled {
			t.Errorf("%s: %s", c.name, d.Status)
		}
	}
}
