package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/machine"
)

func testCertificate(dir string, measure func(context.Context) error) (*certificate, *atomic.Int32) {
	var asked atomic.Int32
	return &certificate{dir: dir, log: zerolog.Nop(), inTests: true,
		measure: func(ctx context.Context, _ string) (engine.Calibration, error) {
			asked.Add(1)
			return engine.Calibration{CostNs: 5000}, measure(ctx)
		}}, &asked
}

func TestTheCertificateIsMadeOnceForEachMachineAndVersion(t *testing.T) {
	dir := t.TempDir()
	fine := func(context.Context) error { return nil }
	for range 2 { // the second is another process
		c, asked := testCertificate(dir, fine)
		before := c.current()
		for range 2 {
			if err := c.make(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got := c.current()
		if got == nil || got.CostNs != 5000 || !got.Automatic || got.LoadstoneVersion != version ||
			got.MachineFingerprint != machine.Fingerprint() {
			t.Fatalf("got %+v", got)
		}
		if want := int32(1); before == nil && asked.Load() != want || before != nil && asked.Load() != 0 {
			t.Errorf("measured %d times, having %v", asked.Load(), before)
		}
	}
	path := filepath.Join(dir, calibrationFile)
	for what, change := range map[string]func(*engine.Calibration){
		"another version": func(c *engine.Calibration) { c.LoadstoneVersion = "another" },
		"another machine": func(c *engine.Calibration) { c.MachineFingerprint = "another" },
	} {
		kept := *readCertificate(path)
		change(&kept)
		if err := keepCertificate(path, kept); err != nil {
			t.Fatal(err)
		}
		c, asked := testCertificate(dir, fine)
		if c.current() != nil {
			t.Errorf("%s: its certificate holds here", what)
		}
		if err := c.make(t.Context()); err != nil || asked.Load() != 1 {
			t.Errorf("%s: measured %d times: %v", what, asked.Load(), err)
		}
	}
}

func TestTheCertificateIsBounded(t *testing.T) {
	c, _ := testCertificate(t.TempDir(), func(ctx context.Context) error {
		deadline, ok := ctx.Deadline()
		if left := time.Until(deadline); !ok || left > 5*time.Second {
			t.Errorf("it may take %v", left)
		}
		return errors.New("no")
	})
	if err := c.make(t.Context()); err == nil || c.current() != nil {
		t.Errorf("a measurement that failed is a certificate: %v", err)
	}
}

// TestARunEndsTheMeasurementBesideAServer: the two would disturb each other.
func TestARunEndsTheMeasurementBesideAServer(t *testing.T) {
	var busy atomic.Bool
	c, asked := testCertificate(t.TempDir(), func(ctx context.Context) error {
		busy.Store(true)
		<-ctx.Done()
		return ctx.Err()
	})
	if err := c.whileIdle(t.Context(), busy.Load); !errors.Is(err, errBusy) || asked.Load() != 1 || c.current() != nil {
		t.Errorf("got %v after %d", err, asked.Load())
	}
}

func TestTheSummaryShowsTheCertificate(t *testing.T) {
	s := summary()
	pct := -0.25
	s.LivePercentiles = []engine.LivePercentile{{Percentile: 99, LiveMs: 1, ExactMs: 1.1, ErrorPct: &pct}}
	var b strings.Builder
	if err := printSummary(&b, s); err != nil || !strings.Contains(b.String(), "not measured on this machine") {
		t.Errorf("without one: %v\n%s", err, b.String())
	}
	s.Environment.Calibration = &engine.Calibration{CostNs: 9600, MaxQPS: 98_000, ScheduleRate: 5000,
		ScheduleLagP99Ms: 0.07,
		Percentiles:      []engine.PercentileError{{Percentile: 50, ErrorMs: 0.01}, {Percentile: 99, ErrorMs: -0.09}}}
	b.Reset()
	if err := printSummary(&b, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"P99 -0.25 %", "9.6 µs of CPU", "98.0 k op/s", "off by -0.090 ms"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing:\n%s", want, b.String())
		}
	}
	if _, err := os.Stat("calibration.json"); err == nil {
		t.Error("a file was written")
	}
}
