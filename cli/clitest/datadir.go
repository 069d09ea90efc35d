package clitest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/storage/embedded"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// dataDir is what a first start makes of its data directory: a Postgres with a control store that nobody has used.
var dataDir = &pgtest.Model{Name: "program", Fill: func(ctx context.Context, dir string) error {
	pg, err := embedded.Start(ctx, embedded.Options{DataDir: dir, Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	return errors.Join(schema.Apply(ctx, pg.DSN(embedded.ControlDatabase)), pg.Stop(ctx))
}}

// fillDataDir copies a Postgres into the data directory of a command that would make one there: tests start many
// servers, and a first start takes five times as long as any other. What a first start does is tried by the first run
// and the journey, with the program as it is built.
func fillDataDir(t *testing.T, args, env []string) {
	t.Helper()
	at := slices.Index(args, "--data-dir")
	if at < 0 || at+1 == len(args) || !slices.Contains([]string{"serve", "run"}, args[0]) {
		return
	}
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--database-url") }) ||
		slices.ContainsFunc(append(os.Environ(), env...), func(set string) bool {
			return strings.HasPrefix(set, "LOADSTONE_DATABASE_URL")
		}) {
		return
	}
	dir := args[at+1]
	if _, err := os.Lstat(filepath.Join(dir, "postgres")); !errors.Is(err, os.ErrNotExist) || !enterable(dir) {
		return
	}
	if err := dataDir.Copy(dir); err != nil {
		t.Fatal(err)
	}
}

// enterable reports whether the user that runs Postgres gets to a folder, which need not be there yet; where it does
// not, the program puts the cluster elsewhere.
func enterable(dir string) bool {
	abs, err := filepath.Abs(dir)
	for first := true; err == nil; first = false {
		info, err := os.Stat(abs)
		switch {
		case first && errors.Is(err, os.ErrNotExist):
		case err != nil || !info.IsDir() || os.Geteuid() == 0 && info.Mode().Perm()&0o001 == 0:
			return false
		case abs == filepath.Dir(abs):
			return true
		}
		abs = filepath.Dir(abs)
	}
	return false
}
