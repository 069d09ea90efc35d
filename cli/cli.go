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
	Run       runCommand       `cmd:"" group:"run" help:"Run a template, from a terminal or CI."`
	Gate      gateCommand      `cmd:"" group:"run" help:"Measure a base and a candidate in turns, and say whether the candidate is slower."`
	Compare   compareCommand   `cmd:"" group:"run" help:"Compare runs, and say whether the second is worse."`
	Why       whyCommand       `cmd:"" group:"run" help:"Say why operations of a run were slow: what the database did, and because of whom."`
	Report    reportCommand    `cmd:"" group:"run" help:"Write the report of a run as one HTML file."`
	Mark      markCommand      `cmd:"" group:"run" help:"Mark a moment of a run on a server, such as \"index created\"."`
	Stop      stopCommand      `cmd:"" group:"run" help:"Stop all runs of a server."`
	Calibrate calibrateCommand `cmd:"" group:"run" help:"Measure this machine as a load generator."`

	Serve  serveCommand  `cmd:"" group:"serve" help:"Run the server: web page, API, and a node of its own."`
	Signin signinCommand `cmd:"" group:"serve" name:"signin" help:"Print a link that signs a browser in to the server on this machine."`
	Token  tokenCommand  `cmd:"" group:"serve" help:"Create an API token on the server on this machine."`
	User   userCommand   `cmd:"" group:"serve" help:"Manage users, roles, tokens and sessions."`
	Worker WorkerCommand `cmd:"" group:"serve" help:"Run a node that carries load for servers on other machines."`
	Node   nodeCommand   `cmd:"" group:"serve" help:"Manage nodes: join tokens, addresses, drain."`
	Health HealthCommand `cmd:"" group:"serve" help:"Ask a server on this machine whether it is ready."`

	Apply       applyCommand       `cmd:"" group:"manage" help:"Make connections, templates, schedules and stream SQL what files say."`
	Runs        runsCommand        `cmd:"" group:"manage" help:"List, read and delete runs."`
	Templates   templatesCommand   `cmd:"" group:"manage" help:"List, read, save and delete templates."`
	Connections connectionsCommand `cmd:"" group:"manage" help:"List, read, save and delete connections."`
	Schedules   schedulesCommand   `cmd:"" group:"manage" help:"Start runs of templates at the times of cron expressions."`
	Plugin      pluginCommand      `cmd:"" group:"manage" help:"Create, build, test, measure and upload plugins."`

	SQL       sqlCommand          `cmd:"" group:"results" name:"sql" help:"Query the results of all runs with SQL."`
	Table     tableCommand        `cmd:"" group:"results" help:"Manage derived tables."`
	QueryUser queryUserCommand    `cmd:"" group:"results" name:"query-user" help:"Create a login that reads results, for Grafana, Metabase or psql."`
	Guard     ResultsGuardCommand `cmd:"" group:"results" name:"results-guard" help:"Bound the memory of queries on an external results database, on its machine."`
	Prices    pricesCommand       `cmd:"" group:"results" help:"Print the price list for costs, to be edited."`
	Slt       SLTCommand          `cmd:"" group:"results" name:"slt" help:"Run test files of stream SQL."`

	Backup  BackupCommand  `cmd:"" group:"operate" help:"Write runs, templates, connections, users and settings of a server into one file."`
	Restore RestoreCommand `cmd:"" group:"operate" help:"Restore a backup into an empty control store."`
	Keys    KeysCommand    `cmd:"" group:"operate" help:"Show and replace the key that seals secrets."`
	Schema  schemaCommand  `cmd:"" group:"operate" help:"Apply, check or print the control store's schema."`

	Snowflake snowflakeCommand `cmd:"" group:"snowflake" help:"Check a Snowflake account against what Loadstone assumes of it."`
	Snowsim   snowsimCommand   `cmd:"" group:"snowflake" help:"Run a simulated Snowflake account, for tests and demonstrations."`

	Completion CompletionCommand `cmd:"" group:"program" help:"Print the completion script of a shell."`
	Man        manCommand        `cmd:"" group:"program" help:"Print the manual page."`
	Help       helpCommand       `cmd:"" group:"program" help:"Explain Loadstone, or a command."`
	Version    versionCommand    `cmd:"" group:"program" help:"Print the version."`
	NullTarget nullTargetCommand `cmd:"" group:"program" hidden:"" help:"A target that does nothing, for measuring the generator; speaks Postgres's protocol."`

	Quarantine quarantineCommand `cmd:"" group:"program" name:"plugin-quarantine" hidden:""`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	Config    string `placeholder:"FILE" env:"LOADSTONE_CONFIG" help:"Configuration file with defaults of flags (default: loadstone/config.yaml in the user's configuration folder)."`
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
	if len(args) > 0 && args[0] == completeWord {
		return completeArguments(stdout, args[1:])
	}
	args = helpArguments(args)
	defaults, err := readConfig(args)
	if err != nil {
		return exitCode(stderr, err)
	}
	var c commands
	parser, err := newProgram(&c, append(defaults, kong.Writers(stdout, stderr), kong.UsageOnError(),
		kong.Exit(func(code int) { panic(helpShown(code)) }))...)
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
