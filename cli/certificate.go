package cli

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

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/calibrate"
	"github.com/loadstone-db/loadstone/engine/machine"
	"github.com/loadstone-db/loadstone/engine/outfile"
	targetpostgres "github.com/loadstone-db/loadstone/engine/target/postgres"
)

// The certificate that is made by itself: three short parts, within certificateLimit in all.
const (
	certificateSeconds     = 0.8
	certificateWarmup      = 250 * time.Millisecond
	certificateConnections = 16
	certificateRate        = 5000
	certificateLimit       = 5 * time.Second
)

// certificateFlags say whether the certificate is made by itself.
type certificateFlags struct {
	Calibrate string `enum:"auto,off" default:"auto" env:"LOADSTONE_CALIBRATE" help:"Whether this machine is measured as a load generator, once for each version, in at most 5 s: ${enum}."`
}

// certificate is what the generator was measured to cost and to err by on this
// machine, with this version. It is kept in a data directory and safe for concurrent use.
type certificate struct {
	dir string
	log zerolog.Logger
	// measure makes one; it is calibrate.Run but in tests.
	measure func(ctx context.Context, dir string) (engine.Calibration, error)
	// inTests: measure is not of the real kind, which starts this program once more.
	inTests bool

	mu   sync.Mutex
	made *engine.Calibration
}

func openCertificate(dir string, log zerolog.Logger) *certificate {
	return &certificate{dir: dir, log: log, measure: func(ctx context.Context, dir string) (engine.Calibration, error) {
		return calibrate.Run(ctx, calibrate.Options{Driver: targetpostgres.NewDriver(), Start: startNullTarget,
			Connections: certificateConnections, Rate: certificateRate,
			Seconds: certificateSeconds, Warmup: certificateWarmup, CPU: processCPU, SpoolDir: dir, Log: zerolog.Nop()})
	}}
}

// current returns the certificate that holds here and now, nil when there is none.
func (c *certificate) current() *engine.Calibration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = readCertificate(filepath.Join(c.dir, calibrationFile))
	}
	return c.made
}

// adopt takes a certificate of this machine and version that is kept elsewhere.
func (c *certificate) adopt(kept *engine.Calibration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made = kept
}

// readCertificate returns what is kept in a file, nil when it is of another machine or version.
func readCertificate(path string) *engine.Calibration {
	text, err := os.ReadFile(path) //nolint:gosec // a file of our own
	if err != nil {
		return nil
	}
	var c engine.Calibration
	if json.Unmarshal(text, &c) != nil || c.MachineFingerprint != machine.Fingerprint() ||
		c.LoadstoneVersion != version {
		return nil
	}
	return &c
}

func keepCertificate(path string, made engine.Calibration) error {
	return outfile.Write(path, func(w io.Writer) error { return printJSON(w, made) })
}

// make measures, within the limit, unless there is a certificate already.
func (c *certificate) make(ctx context.Context) error {
	if c.current() != nil {
		return nil
	}
	if strings.HasSuffix(os.Args[0], ".test") && !c.inTests {
		return errors.New("a test's program has no null target")
	}
	ctx, cancel := context.WithTimeout(ctx, certificateLimit)
	defer cancel()
	made, err := c.measure(ctx, c.dir)
	if err != nil {
		return fmt.Errorf("measuring this machine as a load generator: %w", err)
	}
	made.MachineFingerprint, made.LoadstoneVersion, made.Automatic = machine.Fingerprint(), version, true
	c.mu.Lock()
	c.made = &made
	c.mu.Unlock()
	// Where it cannot be kept it holds for this process.
	if err := keepCertificate(filepath.Join(c.dir, calibrationFile), made); err != nil {
		c.log.Warn().Err(err).Msg("the accuracy certificate cannot be kept")
	}
	return nil
}

// before makes the certificate before a first run, and says so.
func (c *certificate) before(e *env, quiet bool) {
	if c.current() != nil || e.ctx.Err() != nil {
		return
	}
	if !quiet {
		_, _ = fmt.Fprintln(e.stderr,
			"Measuring this machine as a load generator, once for this version; it takes a few seconds (--calibrate=off "+
				"leaves it out).")
	}
	if err := c.make(e.ctx); err != nil && !quiet && e.ctx.Err() == nil {
		_, _ = fmt.Fprintf(e.stderr, "There is no accuracy certificate: %s\n", harmless(err.Error()))
	}
}

// The pace of beside.
const (
	certificateLook    = 100 * time.Millisecond
	certificateRetry   = 10 * time.Second
	certificateAttempt = 5
)

// beside makes the certificate in the background of a server, while no run is live: one
// that starts ends the measurement, which is made again later.
func (c *certificate) beside(ctx context.Context, busy func() bool) {
	for attempt := 0; attempt < certificateAttempt && c.current() == nil; {
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
		case <-time.After(certificateRetry):
		}
	}
}

// errBusy: a run began during the measurement.
var errBusy = errors.New("a run has begun")

func (c *certificate) whileIdle(ctx context.Context, busy func() bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		ticker := time.NewTicker(certificateLook)
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
	if err := c.make(ctx); err != nil {
		if errors.Is(context.Cause(ctx), errBusy) {
			return errBusy
		}
		return err
	}
	return nil
}
