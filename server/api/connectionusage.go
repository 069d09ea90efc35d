// This part says what uses a saved connection, and when it last worked.

package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
)

// ConnectionUse is what uses a connection.
type ConnectionUse struct {
	Templates []UsedByTemplate `json:"templates" nullable:"false" doc:"The templates that name it, by name."`
	Sinks     []string         `json:"sinks" nullable:"false" doc:"The sinks of continuous queries that write to it, by name."`
	Results   bool             `json:"results" doc:"Whether servers take the results of all users to it (--results-connection): only admins say where it leads then."`
	Runs      int64            `json:"runs" doc:"How many runs have named it, those that go on included."`
	LastRun   *UsedByRun       `json:"last_run" doc:"The newest of them; null without one."`
	Worked    *Worked          `json:"worked" doc:"When the database last answered; null when that is not known. Tests count as long as the audit log has them."`
}

// UsedByTemplate is one that names the connection.
type UsedByTemplate struct {
	TemplateID string `json:"template_id"`
	Name       string `json:"name"`
}

// UsedByRun is one that names the connection.
type UsedByRun struct {
	RunID     string        `json:"run_id"`
	RunName   string        `json:"run_name"`
	Status    engine.Status `json:"status"`
	CreatedAt engine.Time   `json:"created_at"`
}

// Worked is a moment at which the database behind a connection answered.
type Worked struct {
	At    engine.Time `json:"at"`
	By    string      `json:"by" enum:"test,run"`
	RunID string      `json:"run_id,omitempty"`
	// ChangedSince: what answered then may be another database.
	ChangedSince bool `json:"changed_since" doc:"Whether the connection was changed after that."`
}

type usageBody struct{ Body ConnectionUse }

// maxRunsScanned bounds the runs among which one that worked is looked for.
const maxRunsScanned = 50

// StreamCatalogReader is that of continuous queries.
type StreamCatalogReader interface {
	Contents(ctx context.Context) (catalog.Contents, error)
}

// RegisterConnectionUsage adds the route. A server without continuous queries has no catalog: nil.
func RegisterConnectionUsage(a *API, streams StreamCatalogReader) {
	o := NewOperation(http.MethodGet, "/api/connections/{id}/use", "connection-use", "Connections",
		"Read what uses a connection, and when it last worked", http.StatusNotFound)
	Handle(a, o, func(ctx context.Context, in *IDInput) (*usageBody, error) {
		if !WellFormedID(in.ID) {
			return nil, NotFoundAs(store.ErrNotFound, "connection", in.ID)
		}
		c, err := a.Store.Connection(ctx, in.ID)
		if err != nil {
			return nil, NotFoundAs(err, "connection", in.ID)
		}
		use, err := FindConnectionUsage(ctx, a.Store, c)
		if err != nil {
			return nil, err
		}
		results, err := a.Store.ResultsConnection(ctx)
		use.Results = results.Is(c.ConnectionID, c.Name)
		if err != nil || streams == nil {
			return &usageBody{use}, err
		}
		contents, err := streams.Contents(ctx)
		for _, s := range contents.Sinks {
			if s.Config.String(catalog.ConnectionID) == c.ConnectionID {
				use.Sinks = append(use.Sinks, s.Name)
			}
		}
		return &usageBody{use}, err
	})
}

// ConnectionUsageStore is what is asked.
type ConnectionUsageStore interface {
	ListTemplates(ctx context.Context) ([]store.Template, error)
	ListRuns(ctx context.Context, f store.RunFilter) (store.RunList, error)
	ListAudit(ctx context.Context, f store.AuditFilter) ([]store.AuditEntry, error)
}

// FindConnectionUsage returns what uses a connection.
func FindConnectionUsage(ctx context.Context, s ConnectionUsageStore, c store.Connection) (ConnectionUse, error) {
	u := ConnectionUse{Templates: []UsedByTemplate{}, Sinks: []string{}}
	templates, err := s.ListTemplates(ctx)
	if err != nil {
		return u, err
	}
	for _, t := range templates {
		if slices.ContainsFunc(t.Config.Connections(), func(of engine.Connection) bool {
			return *of.ID == c.ConnectionID || *of.ID == "" && of.Ref.Name == c.Name
		}) {
			u.Templates = append(u.Templates, UsedByTemplate{TemplateID: t.TemplateID, Name: t.Name})
		}
	}
	list, err := s.ListRuns(ctx, store.RunFilter{ConnectionID: c.ConnectionID, Page: store.Page{Limit: maxRunsScanned}})
	if err != nil {
		return u, err
	}
	u.Runs = list.Total
	for i, r := range list.Runs {
		if i == 0 {
			u.LastRun = &UsedByRun{RunID: r.RunID, RunName: r.RunName, Status: r.Status, CreatedAt: r.CreatedAt}
		}
		if at := lastAnswered(r.Run); at.After(u.updateWorked()) {
			u.Worked = &Worked{At: engine.At(at), By: "run", RunID: r.RunID}
		}
	}
	tests, err := s.ListAudit(ctx, store.AuditFilter{Action: "connection.test", Object: c.ConnectionID,
		Outcome: store.OutcomeDone, Limit: 1})
	if err != nil {
		return u, err
	}
	if len(tests) > 0 && tests[0].At.After(u.updateWorked()) {
		u.Worked = &Worked{At: tests[0].At, By: "test"}
	}
	if u.Worked != nil {
		u.Worked.ChangedSince = c.UpdatedAt.After(u.Worked.At.Time)
	}
	return u, nil
}

// updateWorked is the moment that is known so far.
func (u ConnectionUse) updateWorked() time.Time {
	if u.Worked == nil {
		return time.Time{}
	}
	return u.Worked.At.Time
}

// lastAnswered is when the database has last answered a run; zero when it has not.
func lastAnswered(r engine.Run) time.Time {
	switch {
	case r.TotalOps <= r.ErrorCount:
		return time.Time{}
	case !r.Status.Terminal():
		return r.UpdatedAt.Time
	case !r.MeasurementEndTime.IsZero():
		return r.MeasurementEndTime.Time
	}
	return r.EndTime.Time
}
