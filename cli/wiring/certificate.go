// This part keeps the accuracy certificate: what the generator was measured to cost and to
// err by on this machine, with this version. It is made once, before or beside the first runs.

package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/files"
	"github.com/loadstone-db/loadstone/engine/base/host"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/calibrate"
)

// The certificate that is made by itself: three short parts, within certificateLimit in all.
const (
	partSeconds            = 0.8
	calibrationWarmup      = 250 * time.Millisecond
	calibrationConnections = 16
	calibrationRate        = 5000
	calibrationTimeout     = 5 * time.Second
)

// CertificateFile is the result's place in a data directory.
const CertificateFile = "calibration.json"

// CalibrateFlag says whether the certificate is made by itself.
type CalibrateFlag struct {
	Calibrate string `enum:"auto,off" default:"auto" env:"LOADSTONE_CALIBRATE" help:"Measure this machine as a load generator, once for each version, in at most 5 s: ${enum}."`
}

// Certificate is what the generator was measured to cost and to err by on this
// machine, with this version. It is kept in a data directory and safe for concurrent use.
type Certificate struct {
	dir     string
	version string // of this program
	log     zerolog.Logger
	// measure makes one; it is calibrate.Run but in tests.
	measure func(ctx context.Context, dir string) (engine.Calibration, error)
	// inTests: measure is not of the real kind, which starts this program once more.
	inTests bool

	mu   sync.Mutex
	made *engine.Calibration
}

// OpenCertificate returns the certificate of a data directory, which is read when it is asked for.
func OpenCertificate(dir, version string, log zerolog.Logger) *Certificate {
	return &Certificate{dir: dir, version: version, log: log,
		measure: func(ctx context.Context, dir string) (engine.Calibration, error) {
			return calibrate.Run(ctx, calibrate.Options{Driver: postgres.NewDriver(), Start: StartTarget,
				Connections: calibrationConnections, Rate: calibrationRate,
				Seconds: partSeconds, Warmup: calibrationWarmup, CPU: ProcessCPU, SpoolDir: dir, Log: zerolog.Nop()})
		}}
}

// Current returns the certificate that holds here and now, nil when there is none.
func (c *Certificate) Current() *engine.Calibration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = ReadCertificate(filepath.Join(c.dir, CertificateFile), c.version)
	}
	return c.made
}

// Adopt takes a certificate of this machine and version that is kept elsewhere.
func (c *Certificate) Adopt(kept *engine.Calibration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made = kept
}

// ReadCertificate returns what is kept in a file, nil when it is of another machine or version.
func ReadCertificate(path, version string) *engine.Calibration {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var c engine.Calibration
	if json.Unmarshal(text, &c) != nil || c.MachineFingerprint != host.Fingerprint() ||
		c.LoadstoneVersion != version {
		return nil
	}
	return &c
}

// WriteCertificate writes a certificate to a file.
func WriteCertificate(path string, made engine.Calibration) error {
	return files.Write(path, func(w io.Writer) error { return report.JSON(w, made) })
}

// measureOnce measures, within the limit, unless there is a certificate already.
func (c *Certificate) measureOnce(ctx context.Context) error {
	if c.Current() != nil {
		return nil
	}
	if strings.HasSuffix(os.Args[0], ".test") && !c.inTests {
		return errors.New("a test's program has no null target")
	}
	ctx, cancel := context.WithTimeout(ctx, calibrationTimeout)
	defer cancel()
	made, err := c.measure(ctx, c.dir)
	if err != nil {
		return fmt.Errorf("measuring this machine as a load generator: %w", err)
	}
	made.MachineFingerprint, made.LoadstoneVersion, made.Automatic = host.Fingerprint(), c.version, true
	c.mu.Lock()
	c.made = &made
	c.mu.Unlock()
	// Where it cannot be kept it holds for this process.
	if err := WriteCertificate(filepath.Join(c.dir, CertificateFile), made); err != nil {
		c.log.Warn().Err(err).Msg("the accuracy certificate cannot be kept")
	}
	return nil
}

// EnsureBeforeRun makes the certificate before a first run, and says so.
func (c *Certificate) EnsureBeforeRun(e *terminal.Env, quiet bool) {
	if c.Current() != nil || e.Ctx.Err() != nil {
		return
	}
	if !quiet {
		_, _ = fmt.Fprintln(e.Stderr,
			"Measuring this machine as a load generator, once for this version; it takes a few seconds (--calibrate=off "+
				"leaves it out).")
	}
	if err := c.measureOnce(e.Ctx); err != nil && !quiet && e.Ctx.Err() == nil {
		_, _ = fmt.Fprintf(e.Stderr, "There is no accuracy certificate: %s\n", terminal.StripControls(err.Error()))
	}
}

// The pace of beside.
const (
	idlePollInterval      = 100 * time.Millisecond
	calibrationRetryDelay = 10 * time.Second
	calibrationAttempts   = 5
)

// EnsureInBackground makes the certificate in the background of a server, while no run is live: one
// that starts ends the measurement, which is made again later.
func (c *Certificate) EnsureInBackground(ctx context.Context, busy func() bool) {
	for attempt := 0; attempt < calibrationAttempts && c.Current() == nil; {
		if !busy() {
			err := c.whileIdle(ctx, busy)
			switch {
			case ctx.Err() != nil:
				return
			case err == nil:
				c.log.Info().Msg("this machine was measured as a load generator: runs carry the accuracy certificate")
				return
			case !errors.Is(err, errBusy):
				attempt++
				c.log.Warn().Err(err).Msg("there is no accuracy certificate")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(calibrationRetryDelay):
		}
	}
}

// errBusy: a run began during the measurement.
var errBusy = errors.New("a run has begun")

func (c *Certificate) whileIdle(ctx context.Context, busy func() bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		ticker := time.NewTicker(idlePollInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if busy() {
					cancel(errBusy)
				}
			}
		}
	}()
	if err := c.measureOnce(ctx); err != nil {
		if errors.Is(context.Cause(ctx), errBusy) {
			return errBusy
		}
		return err
	}
	return nil
}
