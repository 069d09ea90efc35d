package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
)

// QueryAnswer is what a query gave.
type QueryAnswer struct {
	Columns   []QueryColumn `json:"columns" nullable:"false"`
	Rows      [][]any       `json:"rows" nullable:"false" doc:"Values are null, true or false, numbers, JSON of json columns, and text for all else."`
	Truncated bool          `json:"truncated" doc:"There were more rows than were asked for, or than an answer holds."`
	ElapsedMs float64       `json:"elapsed_ms"`
}

func queryAnswerOf(a query.Answer) QueryAnswer {
	return QueryAnswer{asList(a.Columns, func(c query.Column) QueryColumn { return QueryColumn(c) }),
		append([][]any{}, a.Rows...), a.Truncated, a.ElapsedMs}
}

// QueryQuestion is a query.
type QueryQuestion struct {
	SQL     string `json:"sql" minLength:"1" maxLength:"100000" doc:"One statement that reads."`
	MaxRows int    `json:"max_rows,omitempty" minimum:"1" maximum:"100000" default:"1000"`
	QueryID string `json:"query_id,omitempty" pattern:"^[A-Za-z0-9-]{8,64}$" doc:"A name of the caller's, by which it can be cancelled."`
}

// RunExport is what ingestion and export have made of a run.
type RunExport query.RunExport

// QueryExport is a query whose answer becomes a file.
type QueryExport struct {
	SQL     string `json:"sql" minLength:"1" maxLength:"100000"`
	MaxRows int    `json:"max_rows,omitempty" minimum:"1" maximum:"100000" default:"100000"`
	Format  string `json:"format" enum:"csv,json,parquet"`
}

// QueryCancel names a query that is under way.
type QueryCancel struct {
	QueryID string `json:"query_id" pattern:"^[A-Za-z0-9-]{8,64}$"`
}

// TablePreviewInput is a definition that is not a table's yet.
type TablePreviewInput struct {
	Name       string `json:"name,omitempty" maxLength:"63" doc:"Of the table, which may not read itself."`
	Definition string `json:"definition" minLength:"1" maxLength:"100000"`
}

// TablePreview is what a definition would give.
type TablePreview struct {
	Plan    string   `json:"plan" doc:"The plan of the database, a line for each step."`
	Sources []string `json:"sources" nullable:"false" doc:"The derived tables that it reads."`
	QueryAnswer
	Note string `json:"note" doc:"Why there are no rows."`
}

// QueryRelation is a table that can be asked.
type QueryRelation struct {
	Schema  string        `json:"schema" enum:"tables,rollup"`
	Name    string        `json:"name"`
	Columns []QueryColumn `json:"columns" nullable:"false"`
}

// QueryCatalog is what can be asked.
type QueryCatalog struct {
	Relations []QueryRelation `json:"relations" nullable:"false"`
}

// SavedQuery is a query under a name.
type SavedQuery query.SavedQuery

// SavedQueryList is every saved query, by name.
type SavedQueryList struct {
	Queries []SavedQuery `json:"queries" nullable:"false"`
}

// SavedQueryInput is a query to be saved.
type SavedQueryInput struct {
	Name    string `json:"name,omitempty" maxLength:"100" doc:"Another name for the query of that version; left out, it keeps its own."`
	SQL     string `json:"sql" minLength:"1" maxLength:"100000"`
	Chart   string `json:"chart,omitempty" maxLength:"1000"`
	Version int64  `json:"version,omitempty" minimum:"0" maximum:"9007199254740991" doc:"The version that was edited, 0 for a new query; 409 when another has been saved since."`
}

type savedQueryInput struct {
	TableNameInput
	Body SavedQueryInput
}

type tableFile struct {
	ContentType  string `header:"Content-Type"`
	Disposition  string `header:"Content-Disposition"`
	CacheControl string `header:"Cache-Control"`
	Truncated    string `header:"X-Truncated" doc:"true when there were more rows."`
	Body         []byte
}

// runningQueries are the queries that can be cancelled, by caller and id.
type runningQueries struct {
	mu      sync.Mutex
	cancels map[string]context.CancelCauseFunc
}

// begin makes a query cancellable until done is called.
func (u *runningQueries) begin(ctx context.Context, key string) (_ context.Context, done func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cancels[key] != nil {
		return nil, nil, &engine.Error{Code: engine.CodeConflict, Message: "A query of this query_id is under way."}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	u.cancels[key] = cancel
	return ctx, func() {
		cancel(nil)
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.cancels, key)
	}, nil
}

// cancel reports whether the query is one of this server's.
func (u *runningQueries) cancel(key string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	cancel := u.cancels[key]
	if cancel == nil {
		return false
	}
	cancel(query.ErrCancelled)
	return true
}

// registerQueries are SQL over results, and the queries that are kept.
func registerQueries(a *API, t Tables) {
	running := &runningQueries{cancels: map[string]context.CancelCauseFunc{}}
	key := func(ctx context.Context, id string) string { return a.Caller(ctx) + "\x00" + id }
	ask := NewOperation(http.MethodPost, "/api/query", "query", tableTag, "Query results with SQL", http.StatusConflict,
		http.StatusTooManyRequests)
	ask.Description = "One statement that reads, over derived tables and roll-ups, executed by a role that can do " +
		"nothing else. A token of the scope read may, too. Two queries of a user are executed at a time, and ten wait; " +
		"more are 429."
	Handle(a, ask, func(ctx context.Context, in *tableBody[QueryQuestion]) (*tableBody[QueryAnswer], error) {
		asking := a.asking(ctx, in.Body.QueryID)
		if id := in.Body.QueryID; id != "" {
			cancellable, done, err := running.begin(asking, key(ctx, id))
			if err != nil {
				return nil, err
			}
			defer done()
			asking = cancellable
		}
		asking, done := a.whileAllowed(asking)
		defer done()
		answer, err := t.Query(asking, in.Body.SQL, in.Body.MaxRows)
		if err != nil && errors.Is(context.Cause(asking), query.ErrCancelled) {
			err = query.ErrCancelled
		}
		a.AuditStatement(ctx, "query.execute", in.Body.SQL, err)
		return &tableBody[QueryAnswer]{queryAnswerOf(answer)}, err
	})
	Handle(a, NewOperation(http.MethodGet, "/api/runs/{id}/export", "run-export", tagRuns,
		"What has become of a run in the results database and in a results connection", http.StatusNotFound),
		func(ctx context.Context, in *IDInput) (*tableBody[RunExport], error) {
			if err := a.exists(ctx, in.ID); err != nil {
				return nil, err
			}
			status, err := t.RunExport(ctx, in.ID)
			return &tableBody[RunExport]{RunExport(status)}, err
		})
	cancel := NewOperation(http.MethodPost, "/api/query/cancel", "cancel-query", tableTag, "Cancel a query of one's own",
		http.StatusNotFound)
	cancel.Description = "Whichever server executes it."
	cancel.DefaultStatus = http.StatusNoContent
	Handle(a, cancel, func(ctx context.Context, in *tableBody[QueryCancel]) (*struct{}, error) {
		if running.cancel(key(ctx, in.Body.QueryID)) {
			return &struct{}{}, nil
		}
		err := t.Cancel(ctx, a.Caller(ctx), in.Body.QueryID)
		if errors.Is(err, store.ErrNotFound) {
			err = &engine.Error{Code: engine.CodeNotFound, Cause: err, Message: "This query is not under way."}
		}
		return &struct{}{}, err
	})
	exported := NewOperation(http.MethodPost, "/api/query/export", "export-query", tableTag, "Query results into a file",
		http.StatusTooManyRequests)
	Attachment(&exported, "The file.", "text/csv", "application/x-ndjson", "application/vnd.apache.parquet")
	Handle(a, exported,
		func(ctx context.Context, in *tableBody[QueryExport]) (*tableFile, error) {
			asking, done := a.whileAllowed(a.asking(ctx, ""))
			defer done()
			file, err := exportQuery(asking, t, in.Body)
			a.AuditStatement(ctx, "query.export", in.Body.SQL, err)
			return file, err
		})
	Handle(a, NewOperation(http.MethodGet, "/api/v1/query-catalog", "query-catalog", tableTag, "What can be queried"),
		func(ctx context.Context, _ *struct{}) (*tableBody[QueryCatalog], error) {
			list, err := t.Catalog(ctx)
			return &tableBody[QueryCatalog]{QueryCatalog{asList(list, func(r query.Relation) QueryRelation {
				return QueryRelation{
					r.Schema,
					r.Name,
					asList(r.Columns, func(c query.Column) QueryColumn { return QueryColumn(c) }),
				}
			})}}, err
		})
	preview := NewOperation(http.MethodPost, "/api/v1/table-preview", "preview-table", tableTag,
		"Show what a definition would give: plan, columns, first rows", http.StatusTooManyRequests)
	preview.Description = "Nothing is made. The rows are left out when they take longer than two seconds."
	Handle(a, preview, func(ctx context.Context, in *tableBody[TablePreviewInput]) (*tableBody[TablePreview], error) {
		asking, done := a.whileAllowed(a.asking(ctx, ""))
		defer done()
		p, err := t.Preview(asking, refresh.Table{Name: in.Body.Name, Definition: in.Body.Definition})
		a.AuditStatement(ctx, "table.preview", in.Body.Definition, err)
		return &tableBody[TablePreview]{
			TablePreview{p.Plan, append([]string{}, p.Sources...), queryAnswerOf(p.Answer), p.Note},
		}, err
	})
	registerSavedQueries(a, t)
}

var exportMediaTypes = map[string]string{"csv": "text/csv; charset=utf-8", "json": "application/x-ndjson",
	"parquet": "application/vnd.apache.parquet"}

func exportQuery(ctx context.Context, t Tables, e QueryExport) (*tableFile, error) {
	answer, err := t.Query(ctx, e.SQL, e.MaxRows)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := query.Write(&out, e.Format, answer); err != nil {
		return nil, err
	}
	f := &tableFile{ContentType: exportMediaTypes[e.Format], Disposition: `attachment; filename="query.` + e.Format + `"`,
		CacheControl: "private, no-store", Body: out.Bytes()}
	if answer.Truncated {
		f.Truncated = "true"
	}
	return f, nil
}

// registerSavedQueries are the queries that users keep.
func registerSavedQueries(a *API, t Tables) {
	const base = "/api/v1/queries"
	Handle(a, NewOperation(http.MethodGet, base, "list-queries", tableTag, "List the saved queries"),
		func(ctx context.Context, _ *struct{}) (*tableBody[SavedQueryList], error) {
			list, err := t.SavedQueries(ctx)
			return &tableBody[SavedQueryList]{
				SavedQueryList{asList(list, func(q query.SavedQuery) SavedQuery { return SavedQuery(q) })},
			}, err
		})
	save := NewOperation(http.MethodPut, base+"/{name}", "save-query", tableTag, "Save a query", http.StatusNotFound,
		http.StatusConflict)
	Handle(a, save, func(ctx context.Context, in *savedQueryInput) (*tableBody[SavedQuery], error) {
		b := in.Body
		given := query.SavedQuery{Name: in.name(), SQL: b.SQL, Chart: b.Chart, Version: b.Version, UpdatedBy: a.Caller(ctx)}
		message := ""
		if b.Version == 0 || b.Name != "" && b.Name != given.Name {
			if err := engine.CheckName("name", cmp.Or(b.Name, given.Name)); err != nil {
				return nil, err
			}
		}
		if b.Name != "" && b.Name != given.Name {
			if b.Version == 0 {
				return nil, engine.InvalidField("version", "is left out", "give that of the query that is renamed")
			}
			given.Name, given.PreviousName, message = b.Name, given.Name, "was "+given.Name
		}
		q, err := t.SaveQuery(ctx, given)
		if err == nil {
			a.Audit(ctx, "query.save", q.Name, message)
		}
		return &tableBody[SavedQuery]{SavedQuery(q)}, err
	})
	remove := NewOperation(
		http.MethodDelete,
		base+"/{name}",
		"delete-query",
		tableTag,
		"Delete a saved query",
		http.StatusNotFound,
	)
	Handle(a, remove, func(ctx context.Context, in *TableNameInput) (*struct{}, error) {
		err := t.DeleteSavedQuery(ctx, in.name())
		if err == nil {
			a.Audit(ctx, "query.delete", in.name(), "")
		}
		return &struct{}{}, err
	})
}
