package wiring

import (
	"github.com/loadstone-db/loadstone/cli/terminal"
)

// DatabaseFlags name the external control store, if any.
type DatabaseFlags struct {
	DatabaseURL     string `placeholder:"URL" env:"LOADSTONE_DATABASE_URL" help:"Postgres to use as control store instead of the embedded one: postgres://user:password@host:5432/database. Prefer the environment or --database-url-file."`
	DatabaseURLFile string `name:"database-url-file" placeholder:"FILE" env:"LOADSTONE_DATABASE_URL_FILE" help:"File with the database URL."`
}

// URL is the database that the flags name, "" for the embedded one.
func (f DatabaseFlags) URL() (string, error) {
	return terminal.SecretFlag("--database-url", f.DatabaseURL, f.DatabaseURLFile)
}
