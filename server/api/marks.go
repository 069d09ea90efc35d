// This part holds the handlers of what users do to runs that go on: marks, such as "index created",
// and changes of their load.

package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/httpx"
)

const (
	liveControlTag = "Runs"
	marksPath      = "/api/v1/runs/{id}/marks"
	markPath       = marksPath + "/{mark}"
)

// MarkList is what is marked in a run, by the moments.
type MarkList struct {
	Marks []engine.Mark `json:"marks" nullable:"false"`
}

// MarkInput is a mark as a user writes it.
type MarkInput struct {
	Text string    `json:"text" minLength:"1" maxLength:"200" doc:"What happened, for example: index created."`
	At   time.Time `json:"at,omitempty" doc:"When, RFC 3339; now without it."`
}

// MarkChange is a mark as it shall be.
type MarkChange struct {
	Text string    `json:"text" minLength:"1" maxLength:"200" doc:"What happened, for example: index created."`
	At   time.Time `json:"at" doc:"When, RFC 3339."`
	Was  *MarkWas  `json:"was,omitempty" doc:"The mark that was edited; 409 when it is another by now. Without it, whatever is there is replaced."`
}

// MarkWas is a mark as it was seen before it was changed.
type MarkWas struct {
	Text string    `json:"text" maxLength:"200"`
	At   time.Time `json:"at" doc:"RFC 3339, to the millisecond."`
}

type markAddInput struct {
	IDInput
	Body MarkInput
}

type markChangeInput struct {
	IDInput
	Mark string `path:"mark" maxLength:"100"`
	Body MarkChange
}

type markDeleteInput struct {
	IDInput
	Mark    string    `path:"mark" maxLength:"100"`
	WasText string    `query:"was_text" maxLength:"200" doc:"The text of the mark that was read, with was_at; 409 if it has changed since. Without both, the mark is deleted in any case."`
	WasAt   time.Time `query:"was_at" doc:"Its time, RFC 3339, to the millisecond."`
}

// expected is what was seen of the mark, nil when nothing is said.
func (d markDeleteInput) expected() (*store.ExpectedMark, error) {
	switch {
	case d.WasText == "" && d.WasAt.IsZero():
		return nil, nil
	case d.WasText == "":
		return nil, engine.InvalidField("was_text", "is missing", "name text and moment of the mark, or neither")
	case d.WasAt.IsZero():
		return nil, engine.InvalidField("was_at", "is missing", "name text and moment of the mark, or neither")
	}
	return &store.ExpectedMark{Text: d.WasText, At: engine.At(d.WasAt)}, nil
}

type liveControlBody[T any] struct{ Body T }

// maxMarkAhead is how far a mark may lie in the future: the clocks of who marks differ.
const maxMarkAhead = time.Minute

// RegisterLiveControl adds the routes.
func RegisterLiveControl(a *API) {
	Handle(
		a,
		NewOperation(http.MethodGet, marksPath, "list-marks", liveControlTag, "What is marked in a run", http.StatusNotFound),
		func(ctx context.Context, in *IDInput) (*liveControlBody[MarkList], error) {
			if _, err := startedRun(ctx, a, in.ID); err != nil && !engine.HasCode(err, engine.CodeConflict) {
				return nil, err
			}
			list, err := a.Store.ListMarks(ctx, in.ID)
			return &liveControlBody[MarkList]{MarkList{append([]engine.Mark{}, list...)}}, err
		},
	)
	add := NewOperation(
		http.MethodPost,
		marksPath,
		"add-mark",
		liveControlTag,
		"Mark a moment of a run",
		http.StatusNotFound,
		http.StatusConflict,
	)
	add.DefaultStatus = http.StatusCreated
	add.Description = "It is drawn in every chart of the run. A run that is over takes marks too."
	Handle(a, add, func(ctx context.Context, in *markAddInput) (*liveControlBody[engine.Mark], error) {
		m := engine.Mark{RunID: in.ID, At: engine.At(in.Body.At), Text: in.Body.Text, MadeBy: a.Caller(ctx)}
		if m.At.IsZero() {
			m.At = engine.At(time.Now())
		}
		if err := checkMarkTime(ctx, a, m); err != nil {
			return nil, err
		}
		m, err := a.Store.AddMark(ctx, m)
		if err != nil {
			return nil, markNotFound(err, in.ID, "")
		}
		a.Audit(ctx, "mark.add", in.ID, m.Text)
		return &liveControlBody[engine.Mark]{m}, nil
	})
	Handle(
		a,
		NewOperation(http.MethodPut, markPath, "change-mark", liveControlTag, "Change a mark of a run", http.StatusNotFound,
			http.StatusConflict),
		func(ctx context.Context, in *markChangeInput) (*liveControlBody[engine.Mark], error) {
			m := engine.Mark{RunID: in.ID, MarkID: in.Mark, At: engine.At(in.Body.At), Text: in.Body.Text,
				ChangedBy: a.Caller(ctx)}
			if err := checkMarkTime(ctx, a, m); err != nil {
				return nil, err
			}
			var was *store.ExpectedMark
			if w := in.Body.Was; w != nil {
				was = &store.ExpectedMark{Text: w.Text, At: engine.At(w.At)}
			}
			m, before, err := a.Store.ChangeMark(ctx, m, was)
			if err != nil {
				return nil, markNotFound(err, in.ID, in.Mark)
			}
			a.Audit(ctx, "mark.change", in.ID, markAuditText(before)+" → "+markAuditText(m))
			return &liveControlBody[engine.Mark]{m}, nil
		},
	)
	Handle(
		a,
		NewOperation(
			http.MethodDelete,
			markPath,
			"delete-mark",
			liveControlTag,
			"Delete a mark of a run",
			http.StatusNotFound,
			http.StatusConflict,
		),
		func(ctx context.Context, in *markDeleteInput) (*struct{}, error) {
			was, err := in.expected()
			if err != nil {
				return nil, err
			}
			gone, err := a.Store.DeleteMark(ctx, in.ID, in.Mark, was)
			if err != nil {
				return nil, markNotFound(err, in.ID, in.Mark)
			}
			a.Audit(ctx, "mark.delete", in.ID, markAuditText(gone))
			return &struct{}{}, nil
		},
	)
	registerLoadChange(a)
}

// markAuditText is a mark as the audit log has it.
func markAuditText(m engine.Mark) string {
	return fmt.Sprintf("%q at %s", m.Text, m.At.Format(engine.TimeLayout))
}

// startedRun is the run, unless it has no time yet in which something could be marked.
func startedRun(ctx context.Context, a *API, id string) (engine.Run, error) {
	run, err := a.Store.Run(ctx, id)
	if err != nil {
		return run, markNotFound(err, id, "")
	}
	if run.Status == engine.StatusPrepared || run.Status.Terminal() && run.StartTime.IsZero() {
		return run, &engine.Error{Code: engine.CodeConflict, Message: "The run has not been started.",
			Hint: "mark it when it goes on, or afterwards"}
	}
	return run, nil
}

// checkMarkTime refuses a moment at which the run was not.
func checkMarkTime(ctx context.Context, a *API, m engine.Mark) error {
	run, err := startedRun(ctx, a, m.RunID)
	if err != nil {
		return err
	}
	until := time.Now().Add(maxMarkAhead)
	if !run.EndTime.IsZero() {
		until = run.EndTime.Add(maxMarkAhead)
	}
	from := run.StartTime
	if from.IsZero() { // it is being started
		from = run.CreatedAt
	}
	if m.At.Before(from.Add(-maxMarkAhead)) || m.At.After(until) {
		hint := "the run began " + from.Format(engine.TimeLayout)
		if !run.EndTime.IsZero() {
			hint += " and ended " + run.EndTime.Format(engine.TimeLayout)
		}
		return engine.InvalidField("at", "is not in the time of the run", hint)
	}
	return nil
}

func markNotFound(err error, runID, mark string) error {
	var message *engine.Error
	switch {
	case !errors.Is(err, store.ErrNotFound), errors.As(err, &message):
		return err
	case mark != "":
		return httpx.NotFound("mark", mark)
	}
	return httpx.NotFound("run", runID)
}
