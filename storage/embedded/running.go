package embedded

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// Running is how a database is reached of the Postgres that another process runs on a data directory.
func Running(dataDir, database string) (dsn string, err error) {
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
