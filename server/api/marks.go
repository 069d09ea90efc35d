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
	steeringTag = "Runs"
	base        = "/api/v1/runs/{id}/marks"
	one         = base + "/{mark}"
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
	At   time.Time `json:"at" doc:"RFC 3339, as it was told: to the millisecond."`
}

type adding struct {
	IDInput
	Body MarkInput
}

type changing struct {
	IDInput
	Mark string `path:"mark" maxLength:"100"`
	Body MarkChange
}

type deleting struct {
	IDInput
	Mark    string    `path:"mark" maxLength:"100"`
	WasText string    `query:"was_text" maxLength:"200" doc:"The text of the mark that was looked at, with was_at; 409 when it is another by now. Without both, whatever is there is deleted."`
	WasAt   time.Time `query:"was_at" doc:"Its moment, RFC 3339, as it was told: to the millisecond."`
}

// was is what was seen of the mark, nil when nothing is said.
func (d deleting) was() (*store.MarkWas, error) {
	switch {
	case d.WasText == "" && d.WasAt.IsZero():
		return nil, nil
	case d.WasText == "":
		return nil, engine.InvalidField("was_text", "is missing", "name text and moment of the mark, or neither")
	case d.WasAt.IsZero():
		return nil, engine.InvalidField("was_at", "is missing", "name text and moment of the mark, or neither")
	}
	return &store.MarkWas{Text: d.WasText, At: engine.At(d.WasAt)}, nil
}

type steeringBody[T any] struct{ Body T }

// ahead is how far a mark may lie in the future: the clocks of who marks differ.
const ahead = time.Minute

// RegisterLiveControl adds the routes.
func RegisterLiveControl(a *API) {
	Handle(a, Op(http.MethodGet, base, "list-marks", steeringTag, "What is marked in a run", http.StatusNotFound),
		func(ctx context.Context, in *IDInput) (*steeringBody[MarkList], error) {
			if _, err := begun(ctx, a, in.ID); err != nil && !engine.HasCode(err, engine.CodeConflict) {
				return nil, err
			}
			list, err := a.Store.Marks(ctx, in.ID)
			return &steeringBody[MarkList]{MarkList{append([]engine.Mark{}, list...)}}, err
		})
	add := Op(http.MethodPost, base, "add-mark", steeringTag, "Mark a moment of a run", http.StatusNotFound,
		http.StatusConflict)
	add.DefaultStatus = http.StatusCreated
	add.Description = "It is drawn in every chart of the run. A run that is over takes marks too."
	Handle(a, add, func(ctx context.Context, in *adding) (*steeringBody[engine.Mark], error) {
		m := engine.Mark{RunID: in.ID, At: engine.At(in.Body.At), Text: in.Body.Text, MadeBy: a.Caller(ctx)}
		if m.At.IsZero() {
			m.At = engine.At(time.Now())
		}
		if err := within(ctx, a, m); err != nil {
			return nil, err
		}
		m, err := a.Store.AddMark(ctx, m)
		if err != nil {
			return nil, steeringMissing(err, in.ID, "")
		}
		a.Note(ctx, "mark.add", in.ID, m.Text)
		return &steeringBody[engine.Mark]{m}, nil
	})
	Handle(a, Op(http.MethodPut, one, "change-mark", steeringTag, "Change a mark of a run", http.StatusNotFound,
		http.StatusConflict), func(ctx context.Context, in *changing) (*steeringBody[engine.Mark], error) {
		m := engine.Mark{RunID: in.ID, MarkID: in.Mark, At: engine.At(in.Body.At), Text: in.Body.Text,
			ChangedBy: a.Caller(ctx)}
		if err := within(ctx, a, m); err != nil {
			return nil, err
		}
		var was *store.MarkWas
		if w := in.Body.Was; w != nil {
			was = &store.MarkWas{Text: w.Text, At: engine.At(w.At)}
		}
		m, before, err := a.Store.ChangeMark(ctx, m, was)
		if err != nil {
			return nil, steeringMissing(err, in.ID, in.Mark)
		}
		a.Note(ctx, "mark.change", in.ID, moved(before)+" → "+moved(m))
		return &steeringBody[engine.Mark]{m}, nil
	})
	Handle(a, Op(http.MethodDelete, one, "delete-mark", steeringTag, "Delete a mark of a run", http.StatusNotFound,
		http.StatusConflict), func(ctx context.Context, in *deleting) (*struct{}, error) {
		was, err := in.was()
		if err != nil {
			return nil, err
		}
		gone, err := a.Store.DeleteMark(ctx, in.ID, in.Mark, was)
		if err != nil {
			return nil, steeringMissing(err, in.ID, in.Mark)
		}
		a.Note(ctx, "mark.delete", in.ID, moved(gone))
		return &struct{}{}, nil
	})
	load(a)
}

// moved is a mark as the audit log has it.
func moved(m engine.Mark) string {
	return fmt.Sprintf("%q at %s", m.Text, m.At.Format(engine.TimeLayout))
}

// begun is the run, unless it has no time yet in which something could be marked.
func begun(ctx context.Context, a *API, id string) (engine.Run, error) {
	run, err := a.Store.Run(ctx, id)
	if err != nil {
		return run, steeringMissing(err, id, "")
	}
	if run.Status == engine.StatusPrepared || run.Status.Terminal() && run.StartTime.IsZero() {
		return run, &engine.Error{Code: engine.CodeConflict, Message: "The run has not been started.",
			Hint: "mark it when it goes on, or afterwards"}
	}
	return run, nil
}

// within refuses a moment at which the run was not.
func within(ctx context.Context, a *API, m engine.Mark) error {
	run, err := begun(ctx, a, m.RunID)
	if err != nil {
		return err
	}
	until := time.Now().Add(ahead)
	if !run.EndTime.IsZero() {
		until = run.EndTime.Add(ahead)
	}
	from := run.StartTime
	if from.IsZero() { // it is being started
		from = run.CreatedAt
	}
	if m.At.Before(from.Add(-ahead)) || m.At.After(until) {
		hint := "the run began " + from.Format(engine.TimeLayout)
		if !run.EndTime.IsZero() {
			hint += " and ended " + run.EndTime.Format(engine.TimeLayout)
		}
		return engine.InvalidField("at", "is not in the time of the run", hint)
	}
	return nil
}

func steeringMissing(err error, runID, mark string) error {
	var told *engine.Error
	switch {
	case !errors.Is(err, store.ErrNotFound), errors.As(err, &told):
		return err
	case mark != "":
		return httpx.NotFound("mark", mark)
	}
	return httpx.NotFound("run", runID)
}
