// This part holds the handlers of derived tables and of queries over them.

package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// Tables are the derived tables as the API needs them.
type Tables interface {
	query.Querier
	query.RunExports
	// Cancel ends a query of the caller's that any server executes; ErrNotFound when there is none.
	Cancel(ctx context.Context, caller, id string) error
	State(ctx context.Context) (refresh.State, error)
	// Load is how much there is to refresh.
	Load(ctx context.Context) (refresh.Load, error)
	History(ctx context.Context, name string, limit int) ([]refresh.Record, error)
	Create(ctx context.Context, t refresh.Table) (refresh.Table, error)
	// Update changes a table whose Version is current.
	Update(ctx context.Context, t refresh.Table) (refresh.Table, error)
	// Preview shows what the definition of a table would give, without making it.
	Preview(ctx context.Context, t refresh.Table) (query.Preview, error)
	// StreamCatalogReader lists what definitions and queries can read.
	Catalog(ctx context.Context) ([]query.Relation, error)
	Drop(ctx context.Context, name string) error
	// Do refreshes, suspends or resumes a table, for a user: "refresh", "suspend", "resume".
	Do(ctx context.Context, name, verb string, by store.User) (refresh.Table, error)
	// Recheck asks the judge of the users of now about each table that has an owner, and suspends those of which it says
	// why.
	Recheck(ctx context.Context, users func(context.Context) (judge func(refresh.Table) (why string), err error)) error
	// AddReader makes a login of a user's that reads results, and returns its connection string. One that is there gets
	// another password with renew, and is the user's then; it is engine.CodeConflict without.
	AddReader(ctx context.Context, name string, renew bool, by store.User) (dsn string, err error)
	RemoveReader(ctx context.Context, name string) error
	Readers(ctx context.Context) ([]query.Login, error)
	// RecheckReaders asks the judge of the users of now about the owner of each login, and suspends those of which it
	// says why.
	RecheckReaders(ctx context.Context, users func(context.Context) (judge func(ownerID string) (why string),
		err error)) error
	query.Queries
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
	// RefreshWorker is a process that carries refreshes out.
	RefreshWorker refresh.Worker
	// QueryColumn is a column of an answer.
	QueryColumn query.Column
)

// DerivedTableDetail is a derived table with what surrounds it.
type DerivedTableDetail struct {
	At    engine.Time  `json:"at"`
	Table DerivedTable `json:"table"`
	// ReadBy are the tables that read it: it is not dropped before them.
	ReadBy  []string         `json:"read_by" nullable:"false" doc:"The derived tables that read it."`
	Pending []PendingRefresh `json:"pending" nullable:"false"`
	Claims  []RefreshClaim   `json:"claims" nullable:"false"`
}

// DerivedTableList is every derived table, with what is waiting and what is under way.
type DerivedTableList struct {
	At      engine.Time      `json:"at"`
	Tables  []DerivedTable   `json:"tables" nullable:"false"`
	Pending []PendingRefresh `json:"pending" nullable:"false"`
	Claims  []RefreshClaim   `json:"claims" nullable:"false"`
	Workers []RefreshWorker  `json:"workers" nullable:"false" doc:"The refresh workers that reported in the last 30 seconds."`
	Nobody  string           `json:"nobody" doc:"Which tables no worker refreshes, and what is to be done; empty when all have one."`
}

// RefreshHistory is what became of the refreshes of a table, newest first.
type RefreshHistory struct {
	Refreshes []RefreshRecord `json:"refreshes" nullable:"false"`
}

// asList gives the elements of a list their names in the document.
func asList[T, U any](list []T, named func(T) U) []U {
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
	PartitionBy      string       `json:"partition_by,omitempty" enum:",RUN,DAY" doc:"RUN: each row depends on the roll-ups of the run of its run_id alone, so that rows of other runs need not be computed again. DAY: each row depends on the runs alone that began on its day, a column of the type date, in UTC."`
	Partitions       int          `json:"partitions,omitempty" minimum:"0" maximum:"64" doc:"How many parts a refresh divides its runs or days into, each for any worker; 0 decides by their number. More than 1 needs partition_by."`
	Priority         int          `json:"priority,omitempty" minimum:"-100" maximum:"100"`
}

// DerivedTableChange is what a user changes of a table.
type DerivedTableChange struct {
	Definition       string       `json:"definition" minLength:"1" maxLength:"100000"`
	Description      string       `json:"description,omitempty" maxLength:"1000"`
	TargetLagSeconds float64      `json:"target_lag_seconds,omitempty" minimum:"1" maximum:"31622400" default:"60"`
	Mode             refresh.Mode `json:"refresh_mode,omitempty" enum:"FULL,INCREMENTAL,AUTO" default:"AUTO"`
	PartitionBy      string       `json:"partition_by,omitempty" enum:",RUN,DAY"`
	Partitions       int          `json:"partitions,omitempty" minimum:"0" maximum:"64"`
	Priority         int          `json:"priority,omitempty" minimum:"-100" maximum:"100"`
	Version          int64        `json:"version" minimum:"1" maximum:"9007199254740991" doc:"The version that was edited; 409 if somebody saved another since; the answer names the user and the time."`
}

// QueryLogin is a login that reads results.
type QueryLogin struct {
	Name string `json:"name" pattern:"^[a-z][a-z0-9_]{0,39}$"`
	DSN  string `json:"dsn" readOnly:"true" doc:"Shown once."`
}

// KnownQueryLogin is a login that reads results, as admins see it.
type KnownQueryLogin struct {
	Name      string `json:"name"`
	Owner     string `json:"owner" doc:"The admin who made it, or gave it its password last. Empty of one made before logins had owners, and of a user that was deleted."`
	Suspended bool   `json:"suspended" doc:"Whether it is not let in: its owner is locked out, deleted or no admin any more. new_password lets it in again."`
}

// QueryLoginList is what GET /api/v1/query-users answers.
type QueryLoginList struct {
	Logins []KnownQueryLogin `json:"logins" nullable:"false"`
}

type tableChangeInput struct {
	TableNameInput
	Body DerivedTableChange
}

type tableBody[T any] struct{ Body T }

// TableNameInput names a table, a login or a query in an address. It is exported so that it can be embedded in other
// inputs.
type TableNameInput struct {
	Path string `path:"name" maxLength:"400" doc:"Percent-encoded."`
}

// name is the name as it is: the router leaves what it finds in an address encoded.
func (n TableNameInput) name() string {
	if name, err := url.PathUnescape(n.Path); err == nil {
		return name
	}
	return n.Path
}

type refreshHistoryInput struct {
	TableNameInput
	Limit int `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

// QueryLoginInput asks for a login.
type QueryLoginInput struct {
	Name        string `json:"name" pattern:"^[a-z][a-z0-9_]{0,39}$" doc:"Of the login, without its prefix query_."`
	NewPassword bool   `json:"new_password,omitempty" doc:"Gives a login that is there another password; without it that is 409."`
}

type queryLoginInput struct {
	Body QueryLoginInput
}

const tableTag = "Tables"

// RegisterTable adds the routes to the API.
func RegisterTable(a *API, t Tables) {
	const base = "/api/v1/tables"
	Handle(a, NewOperation(http.MethodGet, base, "list-tables", tableTag, "List the derived tables"),
		func(ctx context.Context, _ *struct{}) (*tableBody[DerivedTableList], error) {
			s, err := t.State(ctx)
			return &tableBody[DerivedTableList]{DerivedTableList{At: s.Now,
				Tables:  asList(s.Tables, func(t refresh.Table) DerivedTable { return a.derivedTable(ctx, t) }),
				Pending: asList(s.Pending, func(p refresh.Pending) PendingRefresh { return PendingRefresh(p) }),
				Claims:  asList(s.Claims, func(c refresh.Claim) RefreshClaim { return RefreshClaim(c) }),
				Workers: asList(s.Workers, func(w refresh.Worker) RefreshWorker { return RefreshWorker(w) }),
				Nobody:  refresh.MissingWorkers(s)}}, err
		})
	Handle(
		a,
		NewOperation(http.MethodGet, base+"/{name}", "get-table", tableTag, "Read a derived table", http.StatusNotFound),
		func(ctx context.Context, in *TableNameInput) (*tableBody[DerivedTableDetail], error) {
			s, err := t.State(ctx)
			if err != nil {
				return nil, err
			}
			d, err := tableDetail(s, in.name())
			d.Table = a.derivedTable(ctx, refresh.Table(d.Table))
			return &tableBody[DerivedTableDetail]{d}, err
		},
	)
	Handle(a, NewOperation(http.MethodGet, base+"/{name}/history", "table-history", tableTag,
		"What became of the refreshes of a table", http.StatusNotFound),
		func(ctx context.Context, in *refreshHistoryInput) (*tableBody[RefreshHistory], error) {
			records, err := t.History(ctx, in.name(), in.Limit)
			return &tableBody[RefreshHistory]{RefreshHistory{asList(records, func(r refresh.Record) RefreshRecord {
				return RefreshRecord(r)
			})}}, err
		})
	create := NewOperation(http.MethodPost, base, "create-table", tableTag, "Make a derived table", http.StatusConflict,
		http.StatusNotFound, http.StatusTooManyRequests)
	create.DefaultStatus = http.StatusCreated
	create.Description = "Its definition is executed by a role that can read results and nothing else."
	Handle(a, create, func(ctx context.Context, in *tableBody[DerivedTableInput]) (*tableBody[DerivedTable], error) {
		b := in.Body
		if err := engine.CheckName("name", b.Name); err != nil {
			return nil, err
		}
		made, err := t.Create(
			a.asking(ctx, ""),
			refresh.Table{Name: b.Name, Definition: b.Definition, Description: b.Description,
				TargetLagSeconds: b.TargetLagSeconds, Mode: b.Mode, PartitionBy: b.PartitionBy,
				Partitions: b.Partitions, Priority: b.Priority,
				CreatedBy: a.Caller(ctx), OwnerID: a.User(ctx).UserID, Owner: a.Caller(ctx)},
		)
		if err == nil {
			a.Audit(ctx, "table.create", made.Name, "")
		}
		return &tableBody[DerivedTable]{DerivedTable(made)}, err
	})
	change := NewOperation(
		http.MethodPut,
		base+"/{name}",
		"update-table",
		tableTag,
		"Change a derived table",
		http.StatusNotFound,
		http.StatusConflict,
		http.StatusTooManyRequests,
	)
	change.Description = "It is refreshed in whole then; one that has failed is active again, and so is one that was " +
		"suspended since its owner may have it refreshed no longer: it is the caller's then."
	Handle(a, change, func(ctx context.Context, in *tableChangeInput) (*tableBody[DerivedTable], error) {
		b := in.Body
		saved, err := t.Update(
			a.asking(ctx, ""),
			refresh.Table{Name: in.name(), Definition: b.Definition, Description: b.Description,
				TargetLagSeconds: b.TargetLagSeconds, Mode: b.Mode, PartitionBy: b.PartitionBy,
				Partitions: b.Partitions, Priority: b.Priority,
				Version: b.Version, UpdatedBy: a.Caller(ctx), OwnerID: a.User(ctx).UserID, Owner: a.Caller(ctx)},
		)
		if err == nil {
			a.Audit(ctx, "table.update", saved.Name, fmt.Sprintf("version %d", saved.Version))
		}
		return &tableBody[DerivedTable]{DerivedTable(saved)}, err
	})
	registerTableActions(a, t)
	registerQueries(a, t)
	registerQueryLogins(a, t)
}

// derivedTable is a table as the caller may see it: viewers are not told what has become of other users.
func (a *API) derivedTable(ctx context.Context, t refresh.Table) DerivedTable {
	if a.User(ctx).Role == store.RoleViewer {
		if t.OwnerID = ""; t.Suspended != "" {
			t.Suspended = "its owner may no longer have it refreshed"
		}
	}
	return DerivedTable(t)
}

// tableDetail is a table of all that there are, with what surrounds it.
func tableDetail(s refresh.State, name string) (d DerivedTableDetail, err error) {
	i := slices.IndexFunc(s.Tables, func(t refresh.Table) bool { return t.Name == name })
	if i < 0 {
		return d, httpx.NotFound("derived table", name)
	}
	d = DerivedTableDetail{At: s.Now, Table: DerivedTable(s.Tables[i]), ReadBy: []string{}, Pending: []PendingRefresh{},
		Claims: []RefreshClaim{}}
	for _, other := range s.Tables {
		if slices.Contains(other.Sources, name) {
			d.ReadBy = append(d.ReadBy, other.Name)
		}
	}
	for _, p := range s.Pending {
		if p.Table == name {
			d.Pending = append(d.Pending, PendingRefresh(p))
		}
	}
	for _, c := range s.Claims {
		if c.Table == name {
			d.Claims = append(d.Claims, RefreshClaim(c))
		}
	}
	return d, nil
}

// registerTableActions are what is done with a table as a whole.
func registerTableActions(a *API, t Tables) {
	const base = "/api/v1/tables"
	drop := NewOperation(
		http.MethodDelete,
		base+"/{name}",
		"drop-table",
		tableTag,
		"Drop a derived table",
		http.StatusNotFound,
		http.StatusConflict,
	)
	Handle(a, drop, func(ctx context.Context, in *TableNameInput) (*struct{}, error) {
		err := t.Drop(ctx, in.name())
		if err == nil {
			a.Audit(ctx, "table.drop", in.name(), "")
		}
		return &struct{}{}, err
	})
	for _, act := range []struct{ verb, what string }{{"refresh", "Refresh a table now"}, {"suspend", "Suspend a table"},
		{"resume", "Let a table be refreshed again"}} {
		verb := act.verb
		o := NewOperation(http.MethodPost, base+"/{name}/"+verb, verb+"-table", tableTag, act.what, http.StatusNotFound,
			http.StatusConflict)
		Handle(a, o, func(ctx context.Context, in *TableNameInput) (*tableBody[DerivedTable], error) {
			table, err := t.Do(ctx, in.name(), verb, a.User(ctx))
			if err == nil {
				a.Audit(ctx, "table."+verb, in.name(), "")
			}
			return &tableBody[DerivedTable]{DerivedTable(table)}, err
		})
	}
}

// registerQueryLogins are the logins of programs that read results.
func registerQueryLogins(a *API, t Tables) {
	const base, only = "/api/v1/query-users", "Only an admin may: a session, or a token of the scope admin. "
	add := NewOperation(
		http.MethodPost,
		base,
		"add-query-user",
		tableTag,
		"Make a login that reads results",
		http.StatusConflict,
	)
	add.Description = only + "It connects to the results database and to nothing else, as long as the admin who made it " +
		"is one. A name that is there is 409, or gets another password with new_password: it is let in again, and is the " +
		"caller's then."
	Handle(a, add, func(ctx context.Context, in *queryLoginInput) (*tableBody[QueryLogin], error) {
		if err := a.Admin(ctx, "make a login"); err != nil {
			return nil, err
		}
		dsn, err := t.AddReader(ctx, in.Body.Name, in.Body.NewPassword, a.User(ctx))
		if err != nil {
			return nil, err
		}
		a.Audit(ctx, "query-user.add", in.Body.Name, "")
		return &tableBody[QueryLogin]{QueryLogin{Name: in.Body.Name, DSN: dsn}}, nil
	})
	list := NewOperation(http.MethodGet, base, "list-query-users", tableTag, "List the logins that read results",
		http.StatusConflict)
	list.Description = only
	Handle(a, list, func(ctx context.Context, _ *struct{}) (*tableBody[QueryLoginList], error) {
		if err := a.Admin(ctx, "list logins"); err != nil {
			return nil, err
		}
		logins, err := t.Readers(ctx)
		if err != nil {
			return nil, err
		}
		users, err := a.Store.ListUsers(ctx)
		if err != nil {
			return nil, err
		}
		return &tableBody[QueryLoginList]{QueryLoginList{asList(logins, func(l query.Login) KnownQueryLogin {
			known := KnownQueryLogin{Name: l.Name, Suspended: l.Suspended}
			if i := slices.IndexFunc(users, func(u store.User) bool { return u.UserID == l.OwnerID }); i >= 0 {
				known.Owner = users[i].Name
			}
			return known
		})}}, nil
	})
	remove := NewOperation(
		http.MethodDelete,
		base+"/{name}",
		"remove-query-user",
		tableTag,
		"Remove a login that reads results",
		http.StatusNotFound,
		http.StatusConflict,
	)
	remove.Description = only + "Its sessions end."
	Handle(a, remove, func(ctx context.Context, in *TableNameInput) (*struct{}, error) {
		if err := a.Admin(ctx, "remove a login"); err != nil {
			return nil, err
		}
		if err := t.RemoveReader(ctx, in.name()); err != nil {
			return nil, err
		}
		a.Audit(ctx, "query-user.remove", in.name(), "")
		return &struct{}{}, nil
	})
}
