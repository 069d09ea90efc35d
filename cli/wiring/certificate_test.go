package wiring

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/host"
)

const version = "a test's"

func testCertificate(dir string, measure func(context.Context) error) (*Certificate, *atomic.Int32) {
	var requested atomic.Int32
	return &Certificate{dir: dir, version: version, log: zerolog.Nop(), inTests: true,
		measure: func(ctx context.Context, _ string) (engine.Calibration, error) {
			requested.Add(1)
			return engine.Calibration{CostNs: 5000}, measure(ctx)
		}}, &requested
}

func TestTheCertificateIsMadeOnceForEachMachineAndVersion(t *testing.T) {
	dir := t.TempDir()
	fine := func(context.Context) error { return nil }
	for range 2 { // the second is another process
		c, requested := testCertificate(dir, fine)
		before := c.Current()
		for range 2 {
			if err := c.measureOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got := c.Current()
		if got == nil || got.CostNs != 5000 || !got.Automatic || got.LoadstoneVersion != version ||
			got.MachineFingerprint != host.Fingerprint() {
			t.Fatalf("got %+v", got)
		}
		if want := int32(1); before == nil && requested.Load() != want || before != nil && requested.Load() != 0 {
			t.Errorf("measured %d times, having %v", requested.Load(), before)
		}
	}
	path := filepath.Join(dir, CertificateFile)
	for what, change := range map[string]func(*engine.Calibration){
		"another version": func(c *engine.Calibration) { c.LoadstoneVersion = "another" },
		"another machine": func(c *engine.Calibration) { c.MachineFingerprint = "another" },
	} {
		kept := *ReadCertificate(path, version)
		change(&kept)
		if err := WriteCertificate(path, kept); err != nil {
			t.Fatal(err)
		}
		c, requests := testCertificate(dir, fine)
		if c.Current() != nil {
			t.Errorf("%s: its certificate holds here", what)
		}
		if err := c.measureOnce(t.Context()); err != nil || requests.Load() != 1 {
			t.Errorf("%s: measured %d times: %v", what, requests.Load(), err)
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
	if err := c.measureOnce(t.Context()); err == nil || c.Current() != nil {
		t.Errorf("a measurement that failed is a certificate: %v", err)
	}
}

// TestARunEndsTheMeasurementBesideAServer: the two would disturb each other.
func TestARunEndsTheMeasurementBesideAServer(t *testing.T) {
	var busy atomic.Bool
	c, requested := testCertificate(t.TempDir(), func(ctx context.Context) error {
		busy.Store(true)
		<-ctx.Done()
		return ctx.Err()
	})
	if err := c.whileIdle(
		t.Context(),
		busy.Load,
	); !errors.Is(err, errBusy) || requested.Load() != 1 ||
		c.Current() != nil {
		t.Errorf("got %v after %d", err, requested.Load())
	}
}
