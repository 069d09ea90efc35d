package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// BinEnv names the environment variable that holds the folder of the Postgres
// binaries; when it is set no other place is searched.
const BinEnv = "LOADSTONE_PG_BIN"

// minMajor is the oldest supported major version.
const minMajor = 15

// install is one set of Postgres binaries.
type install struct {
	dir     string
	version string // "15.18"
	major   int
}

// findMajor returns the newest usable install, or the newest of one major version.
// It looks at $LOADSTONE_PG_BIN, or else at PATH, Debian's and Red Hat's version
// folders and Homebrew. The error is an *engine.Error with the command that
// installs what is missing.
func findMajor(major int) (install, error) {
	dirs, only := candidates()
	var found, old []install
	seen := map[string]bool{}
	for _, dir := range resolveDirs(dirs) {
		if seen[dir] {
			continue
		}
		seen[dir] = true
		in, err := inspect(dir)
		switch {
		case err != nil:
		case in.major < minMajor:
			old = append(old, in)
		default:
			found = append(found, in)
		}
	}
	slices.SortStableFunc(found, func(a, b install) int { return cmp.Compare(b.major, a.major) })
	for _, in := range found {
		if major == 0 || in.major == major {
			return in, nil
		}
	}
	if major != 0 && len(found) > 0 {
		return install{}, &engine.Error{Code: engine.CodeUnavailable,
			Message: fmt.Sprintf("The data directory was made by Postgres %d, but only Postgres %s is installed.", major,
				found[0].version),
			Hint: fmt.Sprintf("Install version %d (Debian: apt-get install -y --no-install-recommends postgresql-%d), or "+
				"start with a new data directory.", major, major)}
	}
	return install{}, missing(only, old)
}

// resolveDirs are the folders where the programs of the candidates lie. Either may be a link, to
// another folder than the other's.
func resolveDirs(dirs []string) (real []string) {
	for _, dir := range dirs {
		for _, name := range []string{"postgres", "initdb"} {
			if at, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil {
				real = append(real, filepath.Dir(at))
			}
		}
	}
	return real
}

func missing(only string, old []install) *engine.Error {
	e := &engine.Error{Code: engine.CodeUnavailable,
		Message: fmt.Sprintf("Postgres %d or newer is not installed on this machine.", minMajor)}
	if len(old) > 0 {
		e.Message = fmt.Sprintf("Postgres %s is too old: Loadstone needs version %d or newer.", old[0].version, minMajor)
	}
	if only != "" {
		e.Message = fmt.Sprintf("%s is %s, where there is no Postgres %d or newer (initdb and postgres).", BinEnv, only,
			minMajor)
		e.Hint = "Set it to the folder that holds initdb and postgres, or unset it to search the usual places."
		return e
	}
	if runtime.GOOS == "darwin" {
		e.Hint = "Install it with: brew install postgresql@17"
	} else {
		e.Hint = "Install it with: apt-get install -y --no-install-recommends postgresql"
	}
	e.Hint += " (or set " + BinEnv + " to the folder of its binaries, or use --database-url)."
	return e
}

// candidates returns the folders to look into; only is set when the
// environment names a single one.
func candidates() (dirs []string, only string) {
	if dir := os.Getenv(BinEnv); dir != "" {
		return []string{dir}, dir
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
	} {
		// The pattern is constant, so the only possible error cannot occur.
		matches, _ := filepath.Glob(pattern)
		dirs = append(dirs, matches...)
	}
	return dirs, ""
}

// inspect asks the programs in a folder what they are. initdb looks for postgres beside its own
// file, whatever link it was started by: a link to it is another folder's.
func inspect(dir string) (install, error) {
	at, err := filepath.EvalSymlinks(filepath.Join(dir, "initdb"))
	if err != nil {
		return install{}, err
	}
	if filepath.Dir(at) != dir {
		return install{}, fmt.Errorf("the initdb of %s is %s", dir, at)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return install{}, fmt.Errorf("asking postgres for its version: %w", err)
	}
	version, major, err := parseVersion(string(out))
	return install{dir: dir, version: version, major: major}, err
}

// parseVersion reads "postgres (PostgreSQL) 15.18 (Debian …)" and "… 18beta1".
func parseVersion(text string) (version string, major int, err error) {
	_, rest, ok := strings.Cut(text, "(PostgreSQL) ")
	if !ok {
		return "", 0, errors.New("not a Postgres version: " + strconv.Quote(text))
	}
	if fields := strings.Fields(rest); len(fields) > 0 {
		version = fields[0]
	}
	digits := 0
	for digits < len(version) && version[digits] >= '0' && version[digits] <= '9' {
		digits++
	}
	major, err = strconv.Atoi(version[:digits])
	if err != nil {
		return "", 0, fmt.Errorf("reading Postgres version %q: %w", version, err)
	}
	return version, major, nil
}
