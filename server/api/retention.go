// This part holds the handlers by which admins decide which runs are deleted by themselves.

package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/loadstone-db/loadstone/engine/results/retention"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Retention is which runs are deleted by themselves, and what came of it.
type Retention struct {
	retention.SavedRules
	retention.OverBudget
	LastPass  *retention.Pass   `json:"last_pass" doc:"The last time that there was something to delete, on any server; null before."`
	Leftovers []store.LeftPlace `json:"leftovers" nullable:"false" doc:"Files of deleted runs that are still to be removed, by place."`
}

// Preview is what rules come to now.
type Preview struct {
	DeletedRuns       int                `json:"deleted_runs" doc:"Runs that go whole."`
	DeletedExecutions int                `json:"deleted_executions" doc:"Runs that stay, and whose single executions go."`
	FreedBytes        int64              `json:"freed_bytes"`
	Kept              []KeptRuns         `json:"kept" nullable:"false" doc:"Runs that would go but for what keeps them."`
	EndedRuns         int                `json:"ended_runs" doc:"All runs that are over."`
	Bytes             int64              `json:"executions_bytes" doc:"What single executions take now."`
	BytesAfter        int64              `json:"executions_bytes_after"`
	OverBytes         int64              `json:"over_budget_bytes" doc:"By how much they are above the budget then, because pinned and young runs stay."`
	First             []retention.Victim `json:"first" nullable:"false" doc:"Those that go first, 100 at most."`
}

// KeptRuns are runs that one thing keeps.
type KeptRuns struct {
	By    store.Pin `json:"by" enum:"baseline,note,share,replay,matrix,tag"`
	Count int       `json:"count"`
}

type retentionBody[T any] struct{ Body T }

// GivenRules are rules as an admin writes them.
type GivenRules struct {
	retention.Rules
	Version int64 `json:"version" minimum:"0" doc:"That which was edited; 0 before anything was saved."`
}

type saveInput struct{ Body GivenRules }

type retentionPreviewInput struct{ Body retention.Rules }

const (
	retentionPath   = "/api/v1/retention"
	retentionTag    = "Server"
	retentionShown  = 100
	retentionAction = "decide which runs are deleted"
)

// RegisterRetention adds the routes.
func RegisterRetention(a *API, k *retention.Janitor, s store.Settings) {
	state := func(ctx context.Context, saved retention.SavedRules) (*retentionBody[Retention], error) {
		last, err := k.LastPass(ctx)
		if err != nil {
			return nil, err
		}
		over, err := k.OverBudget(ctx, saved.Rules)
		if err != nil {
			return nil, err
		}
		left, err := k.Backlogs(ctx)
		return &retentionBody[Retention]{Retention{SavedRules: saved, OverBudget: over, LastPass: last, Leftovers: left}}, err
	}
	read := NewOperation(
		http.MethodGet,
		retentionPath,
		"get-retention",
		retentionTag,
		"Read which runs are deleted by themselves (admins)",
		http.StatusForbidden,
	)
	Handle(a, read, func(ctx context.Context, _ *struct{}) (*retentionBody[Retention], error) {
		if err := a.Admin(ctx, retentionAction); err != nil {
			return nil, err
		}
		saved, err := retention.ReadRules(ctx, s)
		if err != nil {
			return nil, err
		}
		return state(ctx, saved)
	})
	save := NewOperation(
		http.MethodPut,
		retentionPath,
		"save-retention",
		retentionTag,
		"Decide which runs are deleted by themselves (admins)",
		http.StatusForbidden,
		http.StatusConflict,
	)
	save.Description = "Runs with a note, a tag that keeps runs, or a link that has not expired stay, and so do " +
		"baselines of templates, runs that are replayed, and all that are not over. Every deletion is in the audit log."
	Handle(a, save, func(ctx context.Context, in *saveInput) (*retentionBody[Retention], error) {
		if err := a.Admin(ctx, retentionAction); err != nil {
			return nil, err
		}
		saved, err := k.Save(ctx, in.Body.Rules, in.Body.Version, a.Caller(ctx))
		if err != nil {
			return nil, err
		}
		a.Audit(ctx, "retention.save", retentionPath, describeRules(saved.Rules))
		return state(ctx, saved)
	})
	preview := NewOperation(http.MethodPost, retentionPath+"/preview", "preview-retention", retentionTag,
		"See what rules would delete now, and delete nothing (admins)", http.StatusForbidden)
	Handle(a, preview, func(ctx context.Context, in *retentionPreviewInput) (*retentionBody[Preview], error) {
		if err := a.Admin(ctx, retentionAction); err != nil {
			return nil, err
		}
		plan, err := k.Preview(ctx, in.Body)
		if err != nil {
			return nil, err
		}
		return &retentionBody[Preview]{previewOf(plan)}, nil
	})
}

func previewOf(plan retention.Plan) Preview {
	p := Preview{EndedRuns: plan.Runs, Bytes: plan.Bytes, BytesAfter: plan.BytesAfter, OverBytes: plan.Over,
		Kept: []KeptRuns{}, First: append([]retention.Victim{}, plan.Victims[:min(retentionShown, len(plan.Victims))]...)}
	p.DeletedRuns, p.DeletedExecutions, p.FreedBytes = plan.Count()
	for _, pin := range []store.Pin{store.PinBaseline, store.PinNote, store.PinShare, store.PinReplay, store.PinMatrix,
		store.PinTag} {
		if n := plan.Kept[pin]; n > 0 {
			p.Kept = append(p.Kept, KeptRuns{By: pin, Count: n})
		}
	}
	return p
}

// describeRules is what was decided, for the audit log.
func describeRules(r retention.Rules) string {
	if !r.Enabled {
		return "off"
	}
	return fmt.Sprintf("runs %d days, executions %d days, %g GB, kept tags %q", r.RunDays, r.ExecutionDays, r.BudgetGB,
		r.KeepTags)
}
