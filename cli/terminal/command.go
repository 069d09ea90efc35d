// This part holds what every command of the line has: its surroundings, the files that its
// results go to, and its exit code.

package terminal

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"
)

// The exit codes of every command.
const (
	ExitPassed     = 0
	ExitUsage      = 1 // usage or set-up error
	ExitFailed     = 2 // the run failed or was cancelled
	ExitThresholds = 3 // the run ended, and a threshold failed
	ExitInvalid    = 4 // --require-valid, and the verdict is not VALID
	ExitUnclear    = 5 // a gate cannot tell
)

// ExitError carries an exit code; its error, if any, is still to be printed.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Settings are what tests of the whole program choose otherwise. The zero value is the program's own.
type Settings struct {
	// Lease is how long runs and matrices stay a server's that gives no sign of life; 0 is 15 s.
	Lease time.Duration
	// PluginCache is the folder of compiled plugins; empty is wasm-cache in the data directory.
	PluginCache string
	// MaxServerDowntime is how long a server may not answer while its run is followed; 0 is 2 minutes.
	MaxServerDowntime time.Duration
	// PingInterval is how often a server looks at its sockets; 0 is the server's own choice.
	PingInterval time.Duration
	// Quarantine is the command that examines a plugin; none is this program's.
	Quarantine []string
}

// Env is what a command gets besides its flags.
type Env struct {
	Settings
	Ctx    context.Context
	Stdout io.Writer
	Stderr io.Writer
	// results is standard output when a result was asked for there; stdout is standard error then.
	results io.Writer
	Log     zerolog.Logger
	// Traced has the lines about runs name their traces from then on.
	Traced func()
	// Version is the program's.
	Version string
	// Forget restores the default handling of signals, so that a second one ends the process at once.
	Forget func()
	// Settle ends what saves CPU while the program starts and would cost a run memory.
	Settle func()
}
