package cli

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/host"
	"github.com/loadstone-db/loadstone/plugins/quarantine/quarantinetest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestAServerMeasuresItsMachineOnce: with the real measurement, in its background. Runs carry the
// certificate, and another process of the same version on the same machine takes the one that is there.
// The program is built without the race detector, and nothing of this package runs beside it: the
// measurement gives up after its five seconds, which is what it should do on a machine that is too slow.
func TestAServerMeasuresItsMachineOnce(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	binary := quarantinetest.Binary(t)
	message, err := exec.CommandContext(t.Context(), binary, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	version := strings.Fields(string(message))[1]
	dir, err := os.MkdirTemp("", "loadstone-certificate-") // as root, Postgres cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	load := pgtest.Start(t).NewDatabase(t)
	const measured = "this machine was measured as a load generator"
	path := filepath.Join(dir, wiring.CertificateFile)
	text := fmt.Sprintf("name: certificate\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  table_name: orders\n "+
		" prepare: {rows: 1000, if_exists: use}\n"+
		"workload: {plugin: mix, load_mode: CONCURRENCY, concurrent_connections: 2, duration_seconds: 1, warmup_seconds: "+
		"0}\n", load)
	var kept []byte
	for i := range 2 {
		p := clitest.LaunchProgram(t, binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir)
		session, _, _ := operatorOf(t, dir, p).SignIn()
		if i == 0 {
			clitest.Until(t, time.Minute, func() bool {
				return strings.Contains(p.Out.String(), measured) &&
					wiring.ReadCertificate(path, version) != nil
			}, p.Out.String)
			if kept, err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		made := wiring.ReadCertificate(path, version)
		if made.MaxQPS <= 0 || made.CostNs <= 0 || len(made.Percentiles) == 0 || !made.Automatic ||
			made.LoadstoneVersion != version || made.MachineFingerprint != host.Fingerprint() {
			t.Fatalf("measured %+v", made)
		}
		var run engine.Run
		var refused error // as long as its plugins are being compiled
		clitest.Until(t, clitest.StartTimeout, func() bool {
			var status int
			status, refused = session.Try("POST", "/api/runs", map[string]any{"source": text, "start": true}, &run)
			if refused != nil && status != http.StatusServiceUnavailable {
				t.Fatal(refused)
			}
			return refused == nil
		}, func() string { return fmt.Sprint(refused) })
		if s := session.AwaitEnd(run.RunID, p).Summary; s == nil || !reflect.DeepEqual(s.Environment.Calibration, made) {
			t.Errorf("process %d: its run carries %+v, not %+v", i, s.Environment.Calibration, made)
		}
		if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-p.Done
		if i == 1 {
			now, err := os.ReadFile(path)
			if err != nil || string(now) != string(kept) || strings.Contains(p.Out.String(), measured) {
				t.Errorf("measured again: %v\n%s", err, p.Out.String())
			}
		}
	}
}
