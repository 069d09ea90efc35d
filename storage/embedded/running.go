package embedded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// RunningDSN is how a database is reached of the Postgres that another process runs on a data directory.
func RunningDSN(dataDir, database string) (dsn string, err error) {
	away := &engine.Error{Code: engine.CodeUnavailable, Message: "No Postgres of a server runs in " + dataDir + ".",
		Hint: "Name the server's data directory with --data-dir."}
	if _, err := os.Stat(dataDir); err != nil {
		return "", away
	}
	id, err := identify()
	if err != nil {
		return "", err
	}
	p, err := locate(dataDir, id)
	if err != nil {
		return "", err
	}
	const socket = ".s.PGSQL."
	found, err := filepath.Glob(filepath.Join(p.socket, socket+"*"))
	if err != nil {
		return "", away
	}
	p.port = 0
	for _, name := range found {
		if port, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(name), socket)); err == nil {
			p.port = port
		}
	}
	if p.port == 0 {
		return "", away
	}
	if p.password, err = p.secret(); err != nil {
		return "", err
	}
	return p.dsn(database, superuser), nil
}

// CheckExists is an error where a data directory holds no Postgres: who only reads need not make one to find it empty.
func CheckExists(dataDir string) error {
	abs, err := filepath.Abs(dataDir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err == nil {
		_, err = os.Stat(filepath.Join(abs, "postgres", "PG_VERSION"))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil // it is there, or cannot be looked at, which opening it tells
	}
	if id, err := identify(); err == nil && abs != "" && wasRelocated(abs, id) {
		return nil
	}
	return &engine.Error{Code: engine.CodeInvalid, Cause: err,
		Message: "No server has kept anything in the data directory " + dataDir + ".",
		Hint:    "name the server's with --data-dir, or its control store with --database-url"}
}
