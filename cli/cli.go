// Package cli is the command line: one file per command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/jsonx"
)

// version is set by the linker.
var version = "development"

type commands struct {
	Serve      serveCommand        `cmd:"" help:"Run the server: web page, API, and a node of its own."`
	Run        runCommand          `cmd:"" help:"Run a template, from a terminal or CI."`
	Worker     WorkerCommand       `cmd:"" help:"Run a node that carries load for servers on other machines."`
	Node       nodeCommand         `cmd:"" help:"Manage nodes: join tokens, addresses, drain."`
	Signin     signinCommand       `cmd:"" name:"signin" help:"Print a link that signs a browser in to the server on this machine."`
	Token      tokenCommand        `cmd:"" help:"Create an API token on the server on this machine."`
	Stop       stopCommand         `cmd:"" help:"Stop all runs of a server."`
	User       userCommand         `cmd:"" help:"Manage users, roles, tokens and sessions."`
	Calibrate  calibrateCommand    `cmd:"" help:"Measure this machine as a load generator."`
	NullTarget nullTargetCommand   `cmd:"" hidden:"" help:"A target that does nothing, for measuring the generator; speaks Postgres's protocol."`
	Snowsim    snowsimCommand      `cmd:"" help:"Run a simulated Snowflake account, for tests and demonstrations."`
	Snowflake  snowflakeCommand    `cmd:"" help:"Check a Snowflake account against what Loadstone assumes of it."`
	Compare    compareCommand      `cmd:"" help:"Compare runs, and say whether the second is worse."`
	Gate       gateCommand         `cmd:"" help:"Measure a base and a candidate in turns, and say whether the candidate is slower."`
	Report     reportCommand       `cmd:"" help:"Write the report of a run as one HTML file."`
	Mark       markCommand         `cmd:"" help:"Mark a moment of a run on a server, such as \"index created\"."`
	Prices     pricesCommand       `cmd:"" help:"Print the price list for costs, to be edited."`
	Apply      applyCommand        `cmd:"" help:"Apply stream SQL from files, all or none."`
	Slt        SLTCommand          `cmd:"" name:"slt" help:"Run test files of stream SQL."`
	SQL        sqlCommand          `cmd:"" name:"sql" help:"Query the results of all runs with SQL."`
	Table      tableCommand        `cmd:"" help:"Manage derived tables."`
	QueryUser  queryUserCommand    `cmd:"" name:"query-user" help:"Create a login that reads results, for Grafana, Metabase or psql."`
	Guard      ResultsGuardCommand `cmd:"" name:"results-guard" help:"Bound the memory of queries on an external results database, on its machine."`
	Backup     BackupCommand       `cmd:"" help:"Write runs, templates, connections, users and settings of a server into one file."`
	Keys       KeysCommand         `cmd:"" help:"Show and replace the key that seals secrets."`
	Restore    RestoreCommand      `cmd:"" help:"Restore a backup into an empty control store."`
	Schema     schemaCommand       `cmd:"" help:"Apply, check or print the control store's schema."`
	Plugin     pluginCommand       `cmd:"" help:"Create, build, test, measure and upload plugins."`
	Health     HealthCommand       `cmd:"" help:"Ask a server on this machine whether it is ready."`
	Version    versionCommand      `cmd:"" help:"Print the version."`

	Quarantine quarantineCommand `cmd:"" name:"plugin-quarantine" hidden:""`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	LogLevel  string `enum:"debug,info,warn,error" default:"info" env:"LOADSTONE_LOG_LEVEL" help:"Log level: ${enum}."`
	LogFormat string `enum:"auto,json,text" default:"auto" env:"LOADSTONE_LOG_FORMAT" help:"Log format: ${enum}. auto is text on a terminal."`
}

// Main runs the command line and returns the exit code.
func Main(args []string, settings terminal.Settings) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	settle := TuneStartupGC()
	defer settle()
	SetMemoryLimit()
	return start(ctx, stop, settle, settings, args, os.Stdout, os.Stderr)
}

func start(ctx context.Context, forget, settle func(), settings terminal.Settings, args []string,
	stdout, stderr io.Writer) int {
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			// The parser would replace the bytes, and something else would run than was asked for.
			_, _ = fmt.Fprintf(stderr, "loadstone: the argument %q is not valid UTF-8\n", arg)
			return terminal.ExitUsage
		}
	}
	var c commands
	parser, err := kong.New(&c,
		kong.Name("loadstone"),
		kong.Description("Loadstone finds out what a database table can take."),
		kong.Writers(stdout, stderr),
		kong.UsageOnError(),
		kong.Vars{"default_listen": defaultListen, "version": versionLine()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Exit(func(code int) { panic(helpShown(code)) }),
	)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "loadstone: %v\n", err)
		return terminal.ExitUsage
	}
	code := terminal.ExitUsage
	parsed, err := func() (k *kong.Context, err error) {
		// --help prints and asks to exit in the middle of parsing.
		defer func() {
			if r := recover(); r != nil {
				shown, ok := r.(helpShown)
				if !ok {
					panic(r)
				}
				code, k, err = int(shown), nil, nil
			}
		}()
		return parser.Parse(args)
	}()
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "loadstone: %v\n  see: %s --help\n", err, commandPrefix(err))
		return terminal.ExitUsage
	}
	if parsed == nil {
		return code
	}
	// The log and the progress of a run share standard error without tearing each other's lines.
	shared := terminal.NewScreen(stderr)
	log, traced := terminal.NewLogger(shared, c.LogLevel, c.LogFormat)
	e := &terminal.Env{Ctx: ctx, Stdout: stdout, Stderr: shared, Forget: forget, Version: version, Settle: settle,
		Settings: settings, Log: log, Traced: traced}
	if !strings.HasPrefix(parsed.Command(), "run ") && !strings.HasPrefix(parsed.Command(), "gate ") {
		settle() // only a run says when its start is over
	}
	return exitCode(stderr, terminal.Interrupted(ctx, parsed.Run(e)))
}

// commandPrefix is as much of a command as was given before the error.
func commandPrefix(err error) string {
	var wrong *kong.ParseError
	name := "loadstone"
	if !errors.As(err, &wrong) {
		return name
	}
	for _, p := range wrong.Context.Path {
		if p.Command != nil {
			name += " " + p.Command.Name
		}
	}
	return name
}

type helpShown int

// exitCode prints what a user should see of err and returns the exit code.
func exitCode(stderr io.Writer, err error) int {
	if err == nil {
		return terminal.ExitPassed
	}
	code := terminal.ExitUsage
	var exit *terminal.ExitError
	if errors.As(err, &exit) {
		code, err = exit.Code, exit.Err
		if err == nil {
			return code
		}
	}
	text := err.Error()
	var user *engine.Error
	if errors.As(err, &user) && user.Code != engine.CodeInternal {
		text = terminal.FlagError(user).Error()
	}
	_, _ = fmt.Fprintf(stderr, "loadstone: %s\n", terminal.StripControls(jsonx.ExplainIn(text, err)))
	return code
}

type versionCommand struct{}

func (versionCommand) Run(e *terminal.Env) error {
	_, err := fmt.Fprintln(e.Stdout, versionLine())
	return err
}

// versionLine says what this program is.
func versionLine() string {
	return fmt.Sprintf("loadstone %s (%s %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
