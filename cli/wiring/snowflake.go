//go:build !nosnowflake

package wiring

import (
	"context"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
	"github.com/loadstone-db/loadstone/snowsim"
	"github.com/loadstone-db/loadstone/storage/embedded"
)

// simulatedDSN stands for the server's own stand-in for a Snowflake account,
// whose address and password are made up at each start.
const simulatedDSN = "snowsim://builtin"

// standIns are the built-in connections to what stands for a database.
var standIns = []store.Connection{{Name: "snowsim", Driver: "snowflake", DSN: simulatedDSN,
	Description: "Simulated Snowflake account that comes with Loadstone; its figures say nothing about Snowflake"}}

// isStandIn reports whether a DSN is that of the server's own stand-in.
func isStandIn(dsn string) bool { return dsn == simulatedDSN }

// SnowflakeDriver is the driver without the stand-in of a server.
func SnowflakeDriver(p *egress.Policy) target.Driver { return snowflake.NewDriverWithPolicy(p) }

// snowflakeUnavailable: nothing is missing in this build.
func snowflakeUnavailable(string) error { return nil }

// openSnowflake makes the Snowflake driver, with the stand-in where there is a Postgres for it.
func (s *Services) openSnowflake() target.Driver {
	d := &simulatedDriver{Driver: snowflake.NewDriver(), standInConfig: snowflake.NewDriver(), log: s.Log}
	if s.options.Serves {
		d.Driver = snowflake.NewDriverWithPolicy(s.reachable)
	}
	if s.Embedded != nil {
		d.options = snowsim.Options{Postgres: s.Embedded.DSN(embedded.SnowsimDatabase),
			Admin: s.Embedded.AdminDSN(embedded.SnowsimDatabase), Log: s.Log,
			HistoryFile: filepath.Join(s.DataDir, "snowsim-history.jsonl")}
	}
	s.onClose(d.Close)
	return d
}

// StartSnowsim starts a stand-in.
func StartSnowsim(ctx context.Context, options snowsim.Options) (*snowsim.Server, error) {
	server, err := snowsim.Start(ctx, options)
	if err != nil {
		return nil, &engine.Error{Code: engine.CodeUnavailable, Message: "The stand-in for Snowflake does not start: " +
			strings.TrimRight(err.Error(), ".") + ".", Cause: err}
	}
	return server, nil
}

// StandInDSN is a DSN as it is, but for that of a server's own stand-in: then another stand-in on the same Postgres is
// started, and ended by what is given to onClose.
func StandInDSN(ctx context.Context, dsn secret.Secret, postgres func() (string, error), onClose func(func())) (
	secret.Secret, error) {
	if !isStandIn(dsn.Reveal()) {
		return dsn, nil
	}
	url, err := postgres()
	if err != nil {
		return dsn, err
	}
	server, err := StartSnowsim(ctx, snowsim.Options{Postgres: url, Log: zerolog.Nop()})
	if err != nil {
		return dsn, err
	}
	onClose(server.Close)
	return secret.New("snowflake://" + server.DSN()), nil
}

// simulatedDriver is the Snowflake driver, which starts the stand-in when a
// config names it for the first time.
type simulatedDriver struct {
	target.Driver
	// standInConfig speaks with the stand-in, which is in this process.
	standInConfig target.Driver
	options       snowsim.Options
	log           zerolog.Logger

	mu     sync.Mutex
	server *snowsim.Server
}

// Open implements target.Driver.
func (d *simulatedDriver) Open(cfg target.Config) (target.Database, error) {
	if isStandIn(cfg.DSN.Reveal()) {
		dsn, err := d.start()
		if err != nil {
			return nil, err
		}
		cfg.DSN = secret.New(dsn)
		return d.standInConfig.Open(cfg) //nolint:wrapcheck // it is the driver
	}
	return d.Driver.Open(cfg) //nolint:wrapcheck // it is the driver
}

// Traits implements target.TraitsProvider: they are those of what the driver speaks to.
func (d *simulatedDriver) Traits() target.Traits { return target.DriverTraits(d.Driver) }

// redactor is the Snowflake driver's knowledge of secrets.
func (d *simulatedDriver) redactor() target.SecretRedactor {
	secrets, _ := d.Driver.(target.SecretRedactor)
	return secrets
}

// Redact implements target.SecretRedactor; the built-in connection holds no secret.
func (d *simulatedDriver) Redact(dsn string) (shown string, secrets []string) {
	if dsn == simulatedDSN {
		return dsn, nil
	}
	return d.redactor().Redact(dsn)
}

// RestoreSecrets implements target.SecretRedactor.
func (d *simulatedDriver) RestoreSecrets(shown, stored string) (string, error) {
	return d.redactor().RestoreSecrets(shown, stored) //nolint:wrapcheck // it is the driver
}

// Validate implements target.SecretRedactor.
func (d *simulatedDriver) Validate(dsn string) error {
	if dsn == simulatedDSN {
		return nil
	}
	return d.redactor().Validate(dsn) //nolint:wrapcheck // it is the driver
}

func (d *simulatedDriver) start() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.options.Postgres == "" {
		return "", &engine.Error{Code: engine.CodeInvalid,
			Message: "The built-in stand-in for Snowflake needs the embedded Postgres, and this server uses another one.",
			Hint:    "start one with loadstone snowsim --postgres, and save a connection to it"}
	}
	if d.server == nil {
		server, err := StartSnowsim(context.Background(), d.options)
		if err != nil {
			return "", err
		}
		d.server = server
		d.log.Info().Str("address", server.Addr()).Msg("the stand-in for Snowflake is ready: what runs on it is simulated")
	}
	return "snowflake://" + d.server.DSN(), nil
}

// Close stops the stand-in.
func (d *simulatedDriver) Close(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server != nil {
		d.server.Close()
		d.server = nil
	}
	return nil
}
