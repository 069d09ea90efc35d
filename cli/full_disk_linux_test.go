package cli

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// smallDisk mounts a file system of its own, of so many MB.
func smallDisk(t *testing.T, megabytes int) string {
	t.Helper()
	// Not t.TempDir: as root, Postgres runs as a user who cannot enter it.
	dir, err := os.MkdirTemp("", "loadstone-disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0755", megabytes)); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		clitest.Until(t, 10*time.Second, func() bool { return syscall.Unmount(dir, 0) == nil },
			func() string { return dir + " is in use" })
	})
	return dir
}

// diskFiller fills a disk with a file of somebody else's.
type diskFiller struct {
	t    *testing.T
	path string
	size int64
}

func (s *diskFiller) grow(bytes int64) error {
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := syscall.Fallocate(int(f.Fd()), 0, s.size, bytes); err != nil {
		return err
	}
	s.size += bytes
	return nil
}

// fill takes what there is.
func (s *diskFiller) fill() {
	for step := int64(16 << 20); step >= 4096; {
		if s.grow(step) != nil {
			step /= 2
		}
	}
}

func (s *diskFiller) remove() {
	s.t.Helper()
	if err := os.Remove(s.path); err != nil && !os.IsNotExist(err) {
		s.t.Error(err)
	}
	s.size = 0
}

func freeOf(t *testing.T, dir string) int64 {
	t.Helper()
	free, _, ok := record.Space(dir)
	if !ok {
		t.Fatal("the free space is not known")
	}
	return free
}

// TestAFullDisk fills the disk under a server with its own Postgres, up to the reserve and,
// in a soak, then beyond it. What it says of the run holds, and it works again once there is space.
func TestAFullDisk(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	const reserve = 200 << 20
	dir := smallDisk(t, 640)
	load := pgtest.Start(t).NewDatabase(t)
	served := clitest.Launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir",
		filepath.Join(dir, "data"),
		"--disk-reserve", fmt.Sprint(reserve>>20))
	t.Cleanup(func() { _ = served.Cmd.Process.Signal(syscall.SIGTERM); <-served.Done })
	operator := operatorOf(t, filepath.Join(dir, "data"), served)
	session, _, _ := operator.SignIn()
	const rate = 400
	template := func(seconds int) string {
		return fmt.Sprintf("name: disk\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  "+
			"prepare: {rows: 1000, if_exists: use}\n"+
			"workload: {plugin: mix, load_mode: QPS, target_qps: %d, concurrent_connections: 4, duration_seconds: %d, "+
			"warmup_seconds: 0}\n", load, rate, seconds)
	}
	begin := func(seconds int) string {
		t.Helper()
		var run engine.Run
		session.Do("POST", "/api/runs", map[string]any{"source": template(seconds), "start": true}, &run)
		return run.RunID
	}
	other := &diskFiller{t: t, path: filepath.Join(dir, "stranger")}
	defer other.remove()

	first := begin(2)
	if d := session.AwaitEnd(first, served); d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced {
		t.Fatalf("with room the run is %s: %v %+v", d.Status, d.CancellationReason, d.Summary.Accounting)
	}

	// Up to the reserve: recording stops the run, and the rest goes on.
	second := begin(300)
	session.AwaitLoad(second)
	time.Sleep(2 * time.Second)
	if err := other.grow(freeOf(t, dir) - reserve + 1<<20); err != nil {
		t.Fatal(err)
	}
	d := session.AwaitEnd(second, served)
	if d.Status != engine.StatusFailed || d.CancellationReason == nil ||
		!strings.Contains(*d.CancellationReason, "Recording has stopped: the disk of") {
		t.Errorf("at the reserve the run is %s: %v", d.Status, d.CancellationReason)
	}
	checkPartialFigures(t, "at the reserve", d, rate)
	repeated, _, _ := operator.SignIn()
	repeated.Do("GET", "/api/runs?limit=10", nil, nil)
	var refused engine.Run
	if _, err := repeated.Try("POST", "/api/runs", map[string]any{"source": template(2), "start": true},
		&refused); err == nil {
		// No node takes it, so it has no figures.
		var d engine.RunDetail
		clitest.Until(t, time.Minute, func() bool {
			_, err := repeated.Try("GET", "/api/runs/"+refused.RunID, nil, &d)
			return err == nil && d.Status.Terminal() && d.CancellationReason != nil
		}, served.Out.String)
		if d.Status != engine.StatusCancelled || !strings.Contains(*d.CancellationReason, "disk") {
			t.Errorf("a run without room is %s: %v", d.Status, *d.CancellationReason)
		}
	} else if !strings.Contains(err.Error(), "disk") {
		t.Error(err)
	}
	code, answer := repeated.Upload()
	if code != http.StatusServiceUnavailable || !strings.Contains(answer, "Nothing can be uploaded now: the disk of") {
		t.Errorf("an upload without room: %d %s", code, answer)
	}
	before := freeOf(t, dir)
	for _, id := range []string{first, second} {
		repeated.Do("DELETE", "/api/runs/"+id, nil, nil)
		if _, err := os.Stat(filepath.Join(dir, "data", "results", id)); !os.IsNotExist(err) {
			t.Errorf("the record of a deleted run is still there: %v", err)
		}
	}
	t.Logf("deleting two runs freed %d KB", (freeOf(t, dir)-before)>>10)
	other.remove()
	// The node looks at its disk from time to time.
	var again engine.Run
	clitest.Until(t, time.Minute, func() bool {
		_, err := session.Try("POST", "/api/runs", map[string]any{"source": template(2), "start": true}, &again)
		return err == nil
	}, served.Out.String)
	if d := session.AwaitEnd(again.RunID, served); d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced {
		t.Errorf("with room again the run is %s: %v", d.Status, d.CancellationReason)
	}

	if code, answer := repeated.Upload(); code != http.StatusUnprocessableEntity {
		t.Errorf("an upload of nothing sensible: %d %s", code, answer)
	}
	if os.Getenv("LOADSTONE_SOAK") == "" {
		return
	}
	// Beyond it: nothing is left, for the record and for the control store.
	third := begin(300)
	session.AwaitLoad(third)
	time.Sleep(13 * time.Second) // until a part of the record is whole
	// A large load of the playground makes the server's own Postgres run into the end in its log, too.
	var pressed engine.Run
	large := strings.Replace(strings.Replace(template(2), fmt.Sprintf("{driver: postgres, dsn: %q}", load), "playground",
		1), "rows: 1000", "rows: 3000000", 1)
	session.Do("POST", "/api/runs", map[string]any{"source": large, "start": true}, &pressed)
	time.Sleep(time.Second)
	other.fill()
	t.Logf("%d bytes are free", freeOf(t, dir))
	time.Sleep(8 * time.Second)
	select {
	case <-served.Done:
		t.Fatalf("the server has ended:\n%s", served.Out.String())
	default:
	}
	if code, err := session.Try("GET", "/healthz", nil, nil); code != 200 {
		t.Errorf("while the disk is full the server answers %d, %v", code, err)
	}
	other.remove()
	clitest.Until(t, time.Minute, func() bool {
		code, _ := session.Try("GET", "/api/runs?limit=1", nil,
			nil)
		return code == 200
	},
		served.Out.String)
	d = session.AwaitEnd(third, served)
	if d.Status != engine.StatusFailed || d.CancellationReason == nil || !strings.Contains(*d.CancellationReason, "disk") {
		t.Errorf("on a full disk the run is %s: %v", d.Status, d.CancellationReason)
	}
	checkPartialFigures(t, "on a full disk", d, rate)
	t.Logf("Postgres was started again %d times", strings.Count(served.Out.String(), "Postgres is back"))
	if d := session.AwaitEnd(pressed.RunID, served); d.Status != engine.StatusFailed || d.Summary.Passed {
		t.Errorf("a load that did not fit is %s", d.Status)
	} else {
		t.Logf("a load that did not fit: %s", *d.CancellationReason)
	}
	if d := session.AwaitEnd(begin(2), served); d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced {
		t.Errorf("after a full disk the run is %s: %v\n%s", d.Status, d.CancellationReason, served.Out.String())
	}
}

// checkPartialFigures checks the figures of a run that lost part of its record: no rate over lost
// time, nothing that says VALID.
func checkPartialFigures(t *testing.T, when string, d engine.RunDetail, rate float64) {
	t.Helper()
	s := d.Summary
	t.Logf("%s: %s, %s, %d operations, %s op/s over %.2f s, covered %v, %+v, notes %q", when, d.Status, s.Verdict,
		s.Operations, terminal.RateOrNone(s.QPS), s.DurationSeconds, s.CoveredSeconds, s.Accounting, s.ValidityDetail.Notes)
	if s.Accounting.Recorded > s.Accounting.Started && s.Accounting.Started > 0 {
		t.Errorf("%s: %d are recorded of %d", when, s.Accounting.Recorded, s.Accounting.Started)
	}
	lost := s.Accounting.Recorded != s.Accounting.Started || s.Accounting.Started == 0
	if lost && (s.CoveredSeconds == nil || s.Validity == engine.VerdictValid || strings.HasPrefix(s.Verdict, "VALID")) {
		t.Errorf("%s: a record with gaps covers %v s and is %s", when, s.CoveredSeconds, s.Verdict)
	}
	if s.Passed {
		t.Errorf("%s: the run has passed", when)
	}
	if s.HasRates() && s.Operations > 0 && math.Abs(*s.QPS-rate) > rate/10 {
		t.Errorf("%s: %.1f operations per second of %.0f", when, *s.QPS, rate)
	}
	if !s.HasRates() && (s.CoveredSeconds != nil || !s.RecordPartial) {
		t.Errorf("%s: no rate of a record of which %v s are covered", when, s.CoveredSeconds)
	}
}
