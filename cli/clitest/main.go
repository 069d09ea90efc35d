// Package clitest has the program for tests: the test binary itself becomes it, in processes of its own, and is
// spoken to
// as users do. Packages of tests that do so have Main as their TestMain.
package clitest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/plugins/bundled/bundledtest"
	"github.com/loadstone-db/loadstone/plugins/quarantine"
	"github.com/loadstone-db/loadstone/plugins/quarantine/quarantinetest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// ProgramEnv makes the test binary the program.
const ProgramEnv = "LOADSTONE_TEST_PROGRAM"

// LeaseEnv shortens the leases of the program, so that tests need not wait for them.
const LeaseEnv = "LOADSTONE_TEST_LEASE"

// Soak is the variable that has tests take as long, and try as much, as the soak does.
const Soak = "LOADSTONE_SOAK"

// Long leaves a test out of make test, which says go test -short, and to make check-ci: it takes many seconds. The output
// shows why. Call it first in the test.
func Long(t *testing.T, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("make check-ci: " + why)
	}
}

// wholeEnv is set by make check, which has all tests, and all of each.
const wholeEnv = "LOADSTONE_CHECK"

// Whole reports whether tests try all that there is, as make check and make soak have it, or as much as CI waits for.
func Whole() bool { return os.Getenv(wholeEnv) != "" || os.Getenv(Soak) != "" }

// Simulated leaves a test out of make test and make check-ci, and to make check and make soak: the simulation asserts the
// same of the same code in virtual time, over many more stories. Call it first in the test.
func Simulated(t *testing.T) {
	t.Helper()
	if testing.Short() || !Whole() {
		t.Skip("make check: the simulation plays it in virtual time; " + wholeEnv + "=1 has it run")
	}
}

// targetsEnv lets the program reach databases of tests on their sockets.
const targetsEnv = "LOADSTONE_ALLOW_TARGETS"

// AllTargets is an allow-list of everything that users may ever reach.
const AllTargets = "0.0.0.0/0,::/0,unix:/"

const refreshEnv = "LOADSTONE_REFRESH_WORKERS"

// Settings are those of the program in tests. They start many servers, which have one folder of compiled plugins: the
// race detector makes compiling ten times slower.
func Settings() terminal.Settings {
	lease, _ := time.ParseDuration(os.Getenv(LeaseEnv)) // without one it is the usual
	return terminal.Settings{PluginCache: bundledtest.CacheDir(), Lease: lease}
}

// Main is the TestMain of a package whose tests start the program: program is the program with its arguments and
// settings, and returns its exit code. It does not return.
func Main(m *testing.M, program func(args []string, settings terminal.Settings) int) {
	// The configuration file of whoever runs the tests is none of theirs.
	_ = os.Setenv("LOADSTONE_CONFIG", "")
	// Tests that want derived tables say so: for each new server they are a database more to make.
	if os.Getenv(refreshEnv) == "" {
		_ = os.Setenv(refreshEnv, "0")
	}
	if _, set := os.LookupEnv(targetsEnv); !set && os.Getenv(ProgramEnv) == "" {
		_ = os.Setenv(targetsEnv, AllTargets)
	}
	// What the program starts as its own child has a bare environment.
	if os.Getenv(ProgramEnv) != "" || len(os.Args) > 1 && os.Args[1] == quarantine.Command {
		os.Exit(program(os.Args[1:], Settings()))
	}
	if err := bundledtest.Compile(bundledtest.CacheDir()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := pgtest.Main(m)
	quarantinetest.Clean()
	if withoutRace.dir != "" {
		_ = os.RemoveAll(withoutRace.dir)
	}
	os.Exit(code)
}

// withoutRace is the test binary without the race detector.
var withoutRace struct {
	once sync.Once
	dir  string
	err  error
}

// ProgramFile is the file that becomes the program. Under the race detector each start takes four seconds
// of a processor, and the detector sees the same code in the processes of tests: what they start
// is built without it. The soak has the detector in them too.
func ProgramFile(t *testing.T) string {
	t.Helper()
	if !bundledtest.Race || os.Getenv("LOADSTONE_SOAK") != "" {
		return os.Args[0]
	}
	withoutRace.once.Do(func() {
		if withoutRace.dir, withoutRace.err = os.MkdirTemp("", "loadstone-cli-"); withoutRace.err != nil {
			return
		}
		if withoutRace.err = os.Chmod(withoutRace.dir, 0o755); withoutRace.err != nil { // for the user that Postgres runs as
			return
		}
		cmd := exec.CommandContext(context.Background(), "go", "test", "-c", "-buildvcs=false", "-trimpath",
			"-ldflags=-s -w", "-o",
			filepath.Join(withoutRace.dir, "program"), ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			withoutRace.err = fmt.Errorf("building the program: %w\n%s", err, out)
		}
	})
	if withoutRace.err != nil {
		t.Fatal(withoutRace.err)
	}
	return filepath.Join(withoutRace.dir, "program")
}
