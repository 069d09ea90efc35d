// Package tables holds the handlers of derived tables and of queries over them.
package tables

import (
	"context"
	"net/http"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/query"
	"github.com/loadstone-db/loadstone/engine/refresh"
	"github.com/loadstone-db/loadstone/server/api"
)

// Tables are the derived tables as the API needs them.
type Tables interface {
	query.Asker
	State(ctx context.Context) (refresh.State, error)
	History(ctx context.Context, name string, limit int) ([]refresh.Record, error)
	Create(ctx context.Context, t refresh.Table) (refresh.Table, error)
	Drop(ctx context.Context, name string) error
	// Do refreshes, suspends or resumes a table: "refresh", "suspend", "resume".
	Do(ctx context.Context, name, verb string) (refresh.Table, error)
	// AddReader makes a login that reads results, and returns its connection string.
	AddReader(ctx context.Context, name string) (dsn string, err error)
	RemoveReader(ctx context.Context, name string) error
}

// The nouns of the engine by the names that they have in the document.
type (
	// DerivedTable is a derived table.
	DerivedTable refresh.Table
	// PendingRefresh is an entry of the queue.
	PendingRefresh refresh.Pending
	// RefreshClaim is a worker's claim.
	RefreshClaim refresh.Claim
	// RefreshRecord is a refresh that is over.
	RefreshRecord refresh.Record
	// QueryColumn is a column of an answer.
	QueryColumn query.Column
)

// DerivedTableList is every derived table, with what is waiting and what is under way.
type DerivedTableList struct {
	At      engine.Time      `json:"at"`
	Tables  []DerivedTable   `json:"tables" nullable:"false"`
	Pending []PendingRefresh `json:"pending" nullable:"false"`
	Claims  []RefreshClaim   `json:"claims" nullable:"false"`
}

// RefreshHistory is what became of the refreshes of a table, newest first.
type RefreshHistory struct {
	Refreshes []RefreshRecord `json:"refreshes" nullable:"false"`
}

// QueryAnswer is what a query gave.
type QueryAnswer struct {
	Columns   []QueryColumn `json:"columns" nullable:"false"`
	Rows      [][]any       `json:"rows" nullable:"false" doc:"Values are null, true or false, numbers, JSON of json columns, and text for all else."`
	Truncated bool          `json:"truncated" doc:"There were more rows than were asked for, or than an answer holds."`
	ElapsedMs float64       `json:"elapsed_ms"`
}

// as gives the elements of a list their names in the document.
func as[T, U any](list []T, named func(T) U) []U {
	out := make([]U, 0, len(list))
	for _, one := range list {
		out = append(out, named(one))
	}
	return out
}

// DerivedTableInput is a table to be made.
type DerivedTableInput struct {
	Name             string       `json:"name" minLength:"1" maxLength:"63"`
	Definition       string       `json:"definition" minLength:"1" maxLength:"100000" doc:"One SELECT over derived tables and roll-ups."`
	Description      string       `json:"description,omitempty" maxLength:"1000"`
	TargetLagSeconds float64      `json:"target_lag_seconds,omitempty" minimum:"1" maximum:"31622400" default:"60"`
	Mode             refresh.Mode `json:"refresh_mode,omitempty" enum:"FULL,INCREMENTAL,AUTO" default:"AUTO"`
	PartitionBy      string       `json:"partition_by,omitempty" enum:",RUN" doc:"RUN: each row depends on the roll-ups of the run of its run_id alone, so that rows of other runs need not be made anew."`
	Priority         int          `json:"priority,omitempty" minimum:"-100" maximum:"100"`
}

// QueryQuestion is a query.
type QueryQuestion struct {
	SQL     string `json:"sql" minLength:"1" maxLength:"100000" doc:"One statement that reads."`
	MaxRows int    `json:"max_rows,omitempty" minimum:"1" maximum:"100000" default:"1000"`
}

// QueryLogin is a login that reads results.
type QueryLogin struct {
	Name string `json:"name" pattern:"^[a-z][a-z0-9_]{0,39}$"`
	DSN  string `json:"dsn" readOnly:"true" doc:"Shown once."`
}

type body[T any] struct{ Body T }

type named struct {
	Name string `path:"name" maxLength:"63"`
}

type historyInput struct {
	named
	Limit int `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

// QueryLoginInput asks for a login.
type QueryLoginInput struct {
	Name string `json:"name" pattern:"^[a-z][a-z0-9_]{0,39}$" doc:"Of the login, without its prefix query_."`
}

type loginInput struct {
	Body QueryLoginInput
}

const tag = "Tables"

// Register adds the routes to the API.
func Register(a *api.API, t Tables) {
	const base = "/api/v1/tables"
	api.Handle(a, api.Op(http.MethodGet, base, "list-tables", tag, "List the derived tables"),
		func(ctx context.Context, _ *struct{}) (*body[DerivedTableList], error) {
			s, err := t.State(ctx)
			return &body[DerivedTableList]{DerivedTableList{At: s.Now,
				Tables:  as(s.Tables, func(t refresh.Table) DerivedTable { return DerivedTable(t) }),
				Pending: as(s.Pending, func(p refresh.Pending) PendingRefresh { return PendingRefresh(p) }),
				Claims:  as(s.Claims, func(c refresh.Claim) RefreshClaim { return RefreshClaim(c) })}}, err
		})
	api.Handle(a, api.Op(http.MethodGet, base+"/{name}/history", "table-history", tag,
		"What became of the refreshes of a table", http.StatusNotFound),
		func(ctx context.Context, in *historyInput) (*body[RefreshHistory], error) {
			records, err := t.History(ctx, in.Name, in.Limit)
			return &body[RefreshHistory]{RefreshHistory{as(records, func(r refresh.Record) RefreshRecord {
				return RefreshRecord(r)
			})}}, err
		})
	create := api.Op(http.MethodPost, base, "create-table", tag, "Make a derived table", http.StatusConflict,
		http.StatusNotFound)
	create.DefaultStatus = http.StatusCreated
	create.Description = "Its definition is executed by a role that can read results and nothing else."
	api.Handle(a, create, func(ctx context.Context, in *body[DerivedTableInput]) (*body[DerivedTable], error) {
		b := in.Body
		made, err := t.Create(ctx, refresh.Table{Name: b.Name, Definition: b.Definition, Description: b.Description,
			TargetLagSeconds: b.TargetLagSeconds, Mode: b.Mode, PartitionBy: b.PartitionBy, Priority: b.Priority,
			CreatedBy: a.Caller(ctx)})
		if err == nil {
			a.Note(ctx, "table.create", made.Name, "")
		}
		return &body[DerivedTable]{DerivedTable(made)}, err
	})
	drop := api.Op(http.MethodDelete, base+"/{name}", "drop-table", tag, "Drop a derived table", http.StatusNotFound,
		http.StatusConflict)
	api.Handle(a, drop, func(ctx context.Context, in *named) (*struct{}, error) {
		err := t.Drop(ctx, in.Name)
		if err == nil {
			a.Note(ctx, "table.drop", in.Name, "")
		}
		return &struct{}{}, err
	})
	for _, act := range []struct{ verb, what string }{{"refresh", "Refresh a table now"}, {"suspend", "Suspend a table"},
		{"resume", "Let a table be refreshed again"}} {
		verb := act.verb
		o := api.Op(http.MethodPost, base+"/{name}/"+verb, verb+"-table", tag, act.what, http.StatusNotFound,
			http.StatusConflict)
		api.Handle(a, o, func(ctx context.Context, in *named) (*body[DerivedTable], error) {
			table, err := t.Do(ctx, in.Name, verb)
			if err == nil {
				a.Note(ctx, "table."+verb, in.Name, "")
			}
			return &body[DerivedTable]{DerivedTable(table)}, err
		})
	}
	ask := api.Op(http.MethodPost, "/api/query", "query", tag, "Query results with SQL")
	ask.Description = "One statement that reads, over derived tables and roll-ups, executed by a role that can do " +
		"nothing else. A token of the scope read may, too."
	api.Handle(a, ask, func(ctx context.Context, in *body[QueryQuestion]) (*body[QueryAnswer], error) {
		answer, err := t.Query(ctx, in.Body.SQL, in.Body.MaxRows)
		return &body[QueryAnswer]{QueryAnswer{as(answer.Columns, func(c query.Column) QueryColumn { return QueryColumn(c) }),
			append([][]any{}, answer.Rows...), answer.Truncated, answer.ElapsedMs}}, err
	})
	logins(a, t)
}

// logins are the logins of programs that read results.
func logins(a *api.API, t Tables) {
	const base, only = "/api/v1/query-users", "Only an admin may: a session, or a token of the scope admin. "
	add := api.Op(http.MethodPost, base, "add-query-user", tag, "Make a login that reads results", http.StatusConflict)
	add.Description = only + "It connects to the results database and to nothing else. The same name again gets a new " +
		"password."
	api.Handle(a, add, func(ctx context.Context, in *loginInput) (*body[QueryLogin], error) {
		if err := a.Admin(ctx, "make a login"); err != nil {
			return nil, err
		}
		dsn, err := t.AddReader(ctx, in.Body.Name)
		if err != nil {
			return nil, err
		}
		a.Note(ctx, "query-user.add", in.Body.Name, "")
		return &body[QueryLogin]{QueryLogin{Name: in.Body.Name, DSN: dsn}}, nil
	})
	remove := api.Op(http.MethodDelete, base+"/{name}", "remove-query-user", tag, "Remove a login that reads results",
		http.StatusNotFound, http.StatusConflict)
	remove.Description = only + "Its sessions end."
	api.Handle(a, remove, func(ctx context.Context, in *named) (*struct{}, error) {
		if err := a.Admin(ctx, "remove a login"); err != nil {
			return nil, err
		}
		if err := t.RemoveReader(ctx, in.Name); err != nil {
			return nil, err
		}
		a.Note(ctx, "query-user.remove", in.Name, "")
		return &struct{}{}, nil
	})
}
