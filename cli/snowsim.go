//go:build !nosnowflake

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target/postgres/dsn"
	"github.com/loadstone-db/loadstone/snowsim"
	snowsimhistory "github.com/loadstone-db/loadstone/snowsim/history"
	"github.com/loadstone-db/loadstone/snowsim/translate"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
	"github.com/loadstone-db/loadstone/storage/embedded"
)

// snowsimCommand runs the stand-in for a Snowflake account.
type snowsimCommand struct {
	Listen    string        `default:"127.0.0.1:8085" help:"Address; clients run SQL, so keep it on this machine."`
	DataDir   string        `placeholder:"DIR" env:"LOADSTONE_SNOWSIM_DIR" help:"Directory of its Postgres (default: snowsim in the system's data directory)."`
	Postgres  string        `placeholder:"DSN" env:"LOADSTONE_SNOWSIM_POSTGRES" help:"Postgres database to use instead of its own. All of it is open to clients."`
	User      string        `default:"loadstone" help:"Name to log in with."`
	Password  string        `placeholder:"TEXT" env:"LOADSTONE_SNOWSIM_PASSWORD" help:"Password to log in with (default: generated and printed)."`
	PublicKey string        `placeholder:"FILE" type:"existingfile" help:"Public key (PEM) for key-pair log-in."`
	Tokens    []string      `name:"token" sep:"none" placeholder:"TEXT" env:"LOADSTONE_SNOWSIM_TOKEN" help:"Programmatic access token for log-in. Repeatable."`
	OAuth     []string      `name:"oauth-token" sep:"none" placeholder:"TEXT" env:"LOADSTONE_SNOWSIM_OAUTH_TOKEN" help:"OAuth access token for log-in. Repeatable."`
	Secrets   snowsimFiles  `embed:""`
	Warehouse string        `default:"LOADSTONE_WH" help:"Name of the standard warehouse."`
	Size      string        `default:"XSMALL" help:"Its size: XSMALL … 6XLARGE."`
	Clusters  int           `default:"1" help:"Its MAX_CLUSTER_COUNT."`
	Slots     int           `default:"8" help:"Its MAX_CONCURRENCY_LEVEL."`
	TimeScale float64       `default:"1" help:"Speed of the model's time: 10 makes latencies, starts and lags a tenth."`
	Seed      uint64        `default:"1" help:"Seed of latencies, faults and history."`
	Lag       time.Duration `default:"2s" help:"Delay until an execution appears in the query history."`
	Faults    []string      `name:"fault" sep:"none" placeholder:"FAULT" help:"Inject a fault, repeatable: 503,rate=0.01 or expired,every=100 or slow,at=7,delay=3s or drop,rate=0.1,on=chunk,times=5. Kinds: 403, 429, 503, expired, ended, drop, drop_answer, slow."`
	Stages    string        `default:"s3" enum:"s3,azure,gcs" help:"Protocol of stages, over TLS: ${enum}."`
	Edition   string        `default:"enterprise" enum:"standard,enterprise" help:"Edition of the account. Standard has no multi-cluster warehouses and no search optimization."`
	Region    string        `placeholder:"REGION" help:"Value of CURRENT_REGION(): AWS_US_WEST_2, GCP_US_CENTRAL1 … Google Cloud and US government regions have no hybrid tables."`
	Trial     bool          `help:"A trial account: it has no hybrid tables."`
	Deny      []string      `sep:"none" placeholder:"RIGHT" help:"Take a right away, repeatable: UPDATE, 'DELETE ON ORDERS', 'MONITOR ON LOADSTONE_WH FROM SYSADMIN'."`
	Set       []string      `name:"parameter" sep:"none" placeholder:"NAME=VALUE" help:"Account default of a session parameter, repeatable: AUTOCOMMIT=false."`
	JSON      bool          `name:"json" help:"Print one line of JSON when it is ready."`
}

// snowsimFiles hold what shall not be an argument, which every user of the machine can read.
type snowsimFiles struct {
	PasswordFile string `placeholder:"FILE" env:"LOADSTONE_SNOWSIM_PASSWORD_FILE" help:"File with the password."`
	PostgresFile string `placeholder:"FILE" env:"LOADSTONE_SNOWSIM_POSTGRES_FILE" help:"File with the DSN of --postgres."`
}

// Help is shown by --help.
func (*snowsimCommand) Help() string {
	return `A stand-in for a Snowflake account, for tests and demonstrations: it speaks Snowflake's protocol to the
unmodified driver, runs statements on Postgres, and a model of warehouses decides how long they take and when they
queue. Everything about it is simulated: its figures say nothing about Snowflake.

Faults can be changed while it runs: GET, POST (a JSON list) and DELETE http://ADDRESS/snowsim/faults.`
}

func (c *snowsimCommand) Run(e *terminal.Env) error {
	var err error
	if c.Password, err = terminal.SecretFlag("--password", c.Password, c.Secrets.PasswordFile); err != nil {
		return err
	}
	if c.Postgres, err = terminal.SecretFlag("--postgres", c.Postgres, c.Secrets.PostgresFile); err != nil {
		return err
	}
	if err := dsn.Check("--postgres", c.Postgres); err != nil {
		return err
	}
	options, err := c.options()
	if err != nil {
		return err
	}
	options.Log = e.Log
	if options.Postgres == "" {
		if c.DataDir == "" {
			c.DataDir = filepath.Join(wiring.DefaultDataDir(), "snowsim")
		}
		pg, err := startSnowsimPostgres(e, c.DataDir)
		if err != nil {
			return err
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(e.Ctx), 20*time.Second)
			defer cancel()
			if err := pg.Stop(ctx); err != nil {
				e.Log.Warn().Err(err).Msg("Postgres had to be stopped the hard way")
			}
		}()
		options.Postgres, options.Admin = pg.DSN(embedded.SnowsimDatabase), pg.AdminDSN(embedded.SnowsimDatabase)
	}
	if c.DataDir != "" {
		dir, err := wiring.MakeDataDir(c.DataDir)
		if err != nil {
			return err
		}
		options.HistoryFile = filepath.Join(dir, "history.jsonl")
	}
	server, err := wiring.StartSnowsim(e.Ctx, options)
	if err != nil {
		return err
	}
	defer server.Close()
	dsn := "snowflake://" + server.DSN()
	if c.JSON {
		// A shell can cut the connection out of it: & is not escaped.
		out := json.NewEncoder(e.Stdout)
		out.SetEscapeHTML(false)
		if err := out.Encode(map[string]any{"dsn": dsn, "address": server.Addr(), "simulated": true,
			"version": snowsim.Version}); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	} else {
		_, _ = fmt.Fprintf(e.Stdout, `Simulated Snowflake account, ready on %s. Its figures say nothing about Snowflake.

  connection   %s
  statistics   http://%s/snowsim/stats
  faults       http://%s/snowsim/faults

In a template:

  target:
    connection: {driver: snowflake, dsn: "%s"}
    adapter: snowflake_standard

It ends with Ctrl-C.
`, server.Addr(), dsn, server.Addr(), server.Addr(), dsn)
	}
	<-e.Ctx.Done()
	e.Forget()
	return nil
}

func (c *snowsimCommand) options() (snowsim.Options, error) {
	var o snowsim.Options
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return o, engine.InvalidField("--listen", "is not an address with a port",
			"127.0.0.1:8085, or 127.0.0.1:0 for any free port")
	}
	if math.IsNaN(c.TimeScale) || c.TimeScale < 0.01 || c.TimeScale > 10_000 {
		return o, engine.InvalidField("--time-scale", "is not between 0.01 and 10 000",
			"1 is the model's own time, 10 is ten times faster")
	}
	if c.Lag < 0 {
		return o, engine.InvalidField("--lag", "is negative", "")
	}
	size, err := warehouse.ParseSize(c.Size)
	if err != nil {
		return o, engine.InvalidField("--size", err.Error(), "XSMALL, SMALL, MEDIUM, LARGE, XLARGE … 6XLARGE")
	}
	name := strings.ToUpper(c.Warehouse)
	house := warehouse.Defaults(warehouse.Spec{Name: name, Size: size, MaxClusters: c.Clusters, MaxConcurrency: c.Slots,
		AutoResume: true, AutoSuspend: 10 * time.Minute})
	if c.Clusters < 1 || c.Slots < 1 {
		return o, engine.InvalidField("--clusters, --slots", "are at least 1", "")
	}
	if err := warehouse.New(warehouse.Config{}).Check(house); err != nil {
		return o, engine.InvalidField("--warehouse", err.Error(), "")
	}
	o = snowsim.Options{Listen: c.Listen, Postgres: c.Postgres, TimeScale: c.TimeScale, Seed: c.Seed,
		Warehouses: []warehouse.Spec{house,
			{Name: "INTERACTIVE_WH", Type: warehouse.TypeInteractive, Size: size, AutoResume: true}},
		History: snowsimhistory.Options{Lag: c.Lag, AggregateLag: c.Lag}}
	if c.Password != "" || c.User != "" {
		o.Users = []snowsim.User{{Name: strings.ToUpper(c.User), Password: c.Password}}
		if c.Password == "" {
			o.Users[0].Password = snowsim.NewPassword()
		}
		if err := c.credentials(&o.Users[0]); err != nil {
			return o, err
		}
	}
	o.Stages = strings.ToUpper(c.Stages)
	o.Contract = translate.Contract{Standard: c.Edition == "standard", Trial: c.Trial, Region: strings.ToUpper(c.Region)}
	if o.Contract.Standard && c.Clusters > 1 {
		return o, engine.InvalidField("--clusters", "are more than one, which Standard edition does not have",
			"leave --edition out, or --clusters")
	}
	for _, text := range c.Deny {
		d, err := translate.ParseDenied(text)
		if err != nil {
			return o, engine.InvalidField("--deny", err.Error(),
				"UPDATE, DELETE ON ORDERS, CREATE TABLE, MONITOR ON LOADSTONE_WH FROM SYSADMIN")
		}
		o.Denied = append(o.Denied, d)
	}
	if o.Parameters, err = c.parameters(); err != nil {
		return o, err
	}
	for _, text := range c.Faults {
		f, err := snowsim.ParseFault(text)
		if err != nil {
			return o, engine.InvalidField("--fault", err.Error(), "503,rate=0.01")
		}
		o.Faults = append(o.Faults, f)
	}
	return o, nil
}

// parameters are the account's defaults of session parameters.
func (c *snowsimCommand) parameters() (map[string]string, error) {
	parameters := map[string]string{}
	for _, text := range c.Set {
		name, value, found := strings.Cut(text, "=")
		if !found {
			return nil, engine.InvalidField("--parameter", fmt.Sprintf("has no value: %q", text), "AUTOCOMMIT=false")
		}
		if !translate.IsParameter(name) {
			return nil, engine.InvalidField("--parameter", fmt.Sprintf("names no session parameter: %q", text),
				"AUTOCOMMIT=false")
		}
		parameters[name] = value
	}
	return parameters, nil
}

// credentials are the ways to log in besides the password.
func (c *snowsimCommand) credentials(u *snowsim.User) error {
	if c.PublicKey != "" {
		text, err := os.ReadFile(c.PublicKey)
		if err != nil {
			return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("The public key cannot be read: %v.", err),
				Cause: err}
		}
		u.PublicKey = string(text)
	}
	u.Tokens, u.OAuthTokens = map[string]bool{}, map[string]bool{}
	for _, t := range c.Tokens {
		u.Tokens[t] = true
	}
	for _, t := range c.OAuth {
		u.OAuthTokens[t] = true
	}
	return nil
}

// startSnowsimPostgres starts a Postgres that the stand-in has for itself.
func startSnowsimPostgres(e *terminal.Env, dir string) (*embedded.Postgres, error) {
	dir, err := wiring.MakeDataDir(dir)
	if err != nil {
		return nil, err
	}
	return embedded.Start(e.Ctx, embedded.Options{DataDir: dir, Log: e.Log,
		Settings: map[string]string{"synchronous_commit": "off"}})
}
