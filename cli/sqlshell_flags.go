package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
)

// APICall sends a request to a server, and reads its JSON answer into out.
type APICall func(ctx context.Context, method, path string, in, out any) error

// SQLFlags are those of loadstone sql.
type SQLFlags struct {
	Statement string `arg:"" optional:"" help:"One statement. Without it, statements are read from standard input, each ending with a semicolon."`
	Format    string `enum:"table,csv,json,parquet" default:"table" help:"Output format: ${enum}."`
	ConfirmFlags
	MaxRows int `name:"max-rows" default:"1000" placeholder:"N" help:"Maximum rows of an answer, up to 100000."`
}

// Run executes the statement, or those that standard input has.
func (f SQLFlags) Run(e *terminal.Env, do APICall) error {
	shell := SQLShell{Format: f.Format, Out: e.Stdout, Err: e.Stderr,
		Ask: func(ctx context.Context, sql string) (a query.Answer, err error) {
			if isWatch(sql) {
				return a, watchTable(ctx, do, sql, f.Format, e.Stdout)
			}
			if isStreamStatement(sql) {
				return executeStatements(ctx, do, sql, f.Confirm)
			}
			var raw json.RawMessage
			id := uuid.NewString()
			err = do(ctx, http.MethodPost, "/api/query", map[string]any{"sql": sql, "max_rows": f.MaxRows, "query_id": id}, &raw)
			if err != nil {
				if ctx.Err() != nil {
					cancelQuery(ctx, do, id)
				}
				return a, err
			}
			// Numbers stay as they were written.
			d := json.NewDecoder(bytes.NewReader(raw))
			d.UseNumber()
			if err := d.Decode(&a); err != nil {
				return a, fmt.Errorf("reading the answer: %w", err)
			}
			return a, nil
		}}
	if f.Statement != "" {
		return shell.Execute(e.Ctx, f.Statement)
	}
	if terminal.IsTerminal(os.Stdin) && terminal.IsTerminal(e.Stdout) {
		session := &SQLSession{SQLShell: shell, Do: do, History: historyFile()}
		return session.Run(e.Ctx, os.Stdin, e.Stdout)
	}
	return shell.Read(e.Ctx, os.Stdin)
}

// cancelTimeout is how long the database is asked to end a query that nobody waits for.
const cancelTimeout = 2 * time.Second

// cancelQuery has a server end a query.
func cancelQuery(ctx context.Context, do APICall, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer cancel()
	// It has a time limit of its own, if this fails.
	_ = do(ctx, http.MethodPost, "/api/query/cancel", map[string]any{"query_id": id}, nil)
}

// QueryUserFlags are those of loadstone query-user.
type QueryUserFlags struct {
	Name   string `arg:"" optional:"" help:"Name of the login, without its prefix query_."`
	List   bool   `xor:"what" help:"List the logins and their owners."`
	Remove bool   `xor:"what" help:"Remove the login and end its sessions."`
	Renew  bool   `xor:"what" name:"new-password" help:"Reset the password of an existing login. A suspended login can connect again, and you own it."`
}

// Run makes the login and prints its connection string, alone; or removes it, or lists those that are there.
func (f QueryUserFlags) Run(e *terminal.Env, do APICall) error {
	switch {
	case f.List && f.Name != "":
		return engine.InvalidField("NAME", "is of no use with --list", "leave out one of them")
	case f.List:
		return listQueryUsers(e, do)
	case f.Name == "":
		return engine.InvalidField("NAME", "is missing", "loadstone query-user grafana makes a login; --list shows them")
	}
	if f.Remove {
		if err := do(e.Ctx, http.MethodDelete, "/api/v1/query-users/"+url.PathEscape(f.Name), nil, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(e.Stdout, "The login %s is gone.\n", f.Name)
		return err
	}
	var made struct {
		DSN string `json:"dsn"`
	}
	if err := do(e.Ctx, http.MethodPost, "/api/v1/query-users", map[string]any{"name": f.Name, "new_password": f.Renew},
		&made); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.Stdout, made.DSN)
	return err
}

// listQueryUsers prints the logins, a line each.
func listQueryUsers(e *terminal.Env, do APICall) error {
	var list struct {
		Logins []struct {
			Name, Owner string
			Suspended   bool
		}
	}
	if err := do(e.Ctx, http.MethodGet, "/api/v1/query-users", nil, &list); err != nil {
		return err
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tOWNER\tSTATE")
	for _, l := range list.Logins {
		state := "active"
		if l.Suspended {
			state = "suspended"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", l.Name, cmp.Or(terminal.Shown(l.Owner), "-"), state)
	}
	return w.Flush()
}
