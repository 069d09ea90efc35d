package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

const tag = "Runs"

// Handed is the part of the control store that the handlers read and write.
type Handed interface {
	store.Handed
	Template(ctx context.Context, id string) (store.Template, error)
	Run(ctx context.Context, runID string) (engine.Run, error)
}

type reportBody[T any] struct{ Body T }

// maybe is a body, or 204 without one.
type maybe[T any] struct {
	Status int
	Body   *T
}

type reportNothing struct{}

type file struct {
	ContentType  string `header:"Content-Type"`
	Disposition  string `header:"Content-Disposition"`
	CacheControl string `header:"Cache-Control"`
	Body         []byte
}

// ShareList is a list of links, newest first.
type ShareList struct {
	Shares []store.Share `json:"shares" nullable:"false"`
}

// NewShare is a link with its address, which is told this once.
type NewShare struct {
	store.Share
	URL string `json:"url" doc:"Whoever has it sees the report. It is shown this once."`
}

type shareInput struct {
	IDInput
	Body struct {
		ExpiresInDays int `json:"expires_in_days,omitempty" minimum:"1" maximum:"365" default:"7"`
	}
}

type sharesInput struct {
	RunID string `query:"run_id" maxLength:"160" doc:"Those of one run."`
}

type noteInput struct {
	IDInput
	Body struct {
		Text    string `json:"text" maxLength:"10000"`
		Version int64  `json:"version" minimum:"0" doc:"The version that was edited, 0 for the first note."`
	}
}

type tagsInput struct {
	IDInput
	Body struct {
		Tags map[string]string `json:"tags" maxProperties:"50" doc:"All of them: a tag that is not among them is removed."`
		Was  map[string]string `json:"was,omitempty" maxProperties:"50" doc:"Those that were edited; 409 when the run has others by now. Without it, whatever is there is replaced."`
	}
}

type baselineInput struct {
	IDInput
	Body struct {
		RunID string `json:"run_id" minLength:"1" maxLength:"160" doc:"A completed run of the template."`
	}
}

// TaggedRun is a run with its tags.
type TaggedRun struct {
	RunID string            `json:"run_id"`
	Tags  map[string]string `json:"tags"`
}

type handlers struct {
	a      *API
	maker  *Maker
	store  Handed
	opened opened
}

// RegisterReport adds the handlers to an API and to its app.
func RegisterReport(a *API, app *fiber.App, m *Maker, s Handed) {
	h := &handlers{a: a, maker: m, store: s, opened: opened{gate: httpx.NewGate(2, 32, 4),
		wrong: auth.NewLimiter(10, wrongEvery), all: auth.NewLimiter(60, allEvery),
		noted: auth.NewLimiter(1, noteEvery)}}
	report := Op(http.MethodGet, "/api/runs/{id}/report", "run-report", tag, "The run's report, one HTML file",
		http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests)
	report.Description = "Verdict, figures and charts of a run that is over. The file loads nothing from a " +
		"network and sends nothing."
	Attachment(&report, "The report.", fiber.MIMETextHTML)
	Handle(a, report, Heavily(a, h.report))
	h.shares(app)
	h.notes()
	h.comparisons()
	h.many()
	h.baselines()
}

func (h *handlers) report(ctx context.Context, in *IDInput) (*file, error) {
	r, err := h.maker.Report(ctx, in.ID)
	if err != nil {
		return nil, Named(err, "run", in.ID)
	}
	return &file{ContentType: fiber.MIMETextHTMLCharsetUTF8, CacheControl: "private, no-store", Body: r.HTML,
		Disposition: `attachment; filename="` + FileName(r) + `"`}, nil
}

// FileName is under what name a report is kept: letters, digits and dashes.
func FileName(r Report) string {
	const longest = 60
	var b strings.Builder
	for _, c := range strings.ToLower(r.RunName) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= longest {
			break
		}
	}
	name := strings.Trim(b.String(), "-")
	if name == "" {
		name = "run"
	}
	return fmt.Sprintf("%s-%.8s-report.html", name, r.RunID)
}

func (h *handlers) notes() {
	a := h.a
	const path = "/api/runs/{id}/note"
	Handle(a, Op(http.MethodGet, path, "run-note", tag, "What was written about a run", http.StatusNotFound),
		func(ctx context.Context, in *IDInput) (*reportBody[store.RunNote], error) {
			n, err := h.store.RunNote(ctx, in.ID)
			return &reportBody[store.RunNote]{n}, Named(err, "run", in.ID)
		})
	Handle(a, Op(http.MethodPut, path, "save-run-note", tag, "Write about a run", http.StatusNotFound,
		http.StatusConflict),
		func(ctx context.Context, in *noteInput) (*reportBody[store.RunNote], error) {
			n, err := h.store.SaveRunNote(ctx, store.RunNote{RunID: in.ID, Text: in.Body.Text, Version: in.Body.Version,
				UpdatedBy: a.Caller(ctx)})
			if err != nil {
				return nil, Named(err, "run", in.ID)
			}
			h.opened.drop(in.ID)
			a.Note(ctx, "run.note", in.ID, "")
			return &reportBody[store.RunNote]{n}, nil
		})
	Handle(a, Op(http.MethodPut, "/api/runs/{id}/tags", "tag-run", tag, "Set the tags of a run that is not live",
		http.StatusNotFound, http.StatusConflict),
		func(ctx context.Context, in *tagsInput) (*reportBody[TaggedRun], error) {
			tags := in.Body.Tags
			if tags == nil {
				tags = map[string]string{}
			}
			if err := h.store.TagRun(ctx, in.ID, tags, in.Body.Was); err != nil {
				return nil, Named(err, "run", in.ID)
			}
			h.opened.drop(in.ID)
			a.Note(ctx, "run.tag", in.ID, "")
			return &reportBody[TaggedRun]{TaggedRun{in.ID, tags}}, nil
		})
}

// mayJudge refuses callers who may not use a template to say what its runs are held against.
func (h *handlers) mayJudge(ctx context.Context, templateID string) error {
	t, err := h.store.Template(ctx, templateID)
	if err != nil {
		return Named(err, "template", templateID)
	}
	id, _ := auth.IdentityOf(ctx)
	return auth.Template(id.User, t)
}

// baseline answers 204 for a template without one, which is no mistake of who asks: pages of runs do.
func (h *handlers) baseline(ctx context.Context, in *IDInput) (*maybe[store.Baseline], error) {
	b, err := h.store.Baseline(ctx, in.ID)
	if errors.Is(err, store.ErrNotFound) {
		if _, err := h.store.Template(ctx, in.ID); err != nil {
			return nil, Named(err, "template", in.ID)
		}
		return &maybe[store.Baseline]{Status: http.StatusNoContent}, nil
	}
	if err != nil {
		return nil, err
	}
	return &maybe[store.Baseline]{http.StatusOK, &b}, nil
}

func (h *handlers) baselines() {
	a := h.a
	const path = "/api/templates/{id}/baseline"
	get := Op(http.MethodGet, path, "baseline", "Templates", "The run that others of the template are held against",
		http.StatusNotFound)
	get.Responses = map[string]*huma.Response{"204": {Description: "The template has no baseline."}}
	Handle(a, get, h.baseline)
	Handle(a, Op(http.MethodPut, path, "set-baseline", "Templates", "Make a run the baseline of its template",
		http.StatusNotFound, http.StatusConflict),
		func(ctx context.Context, in *baselineInput) (*reportBody[store.Baseline], error) {
			if err := h.mayJudge(ctx, in.ID); err != nil {
				return nil, err
			}
			b, err := h.store.SetBaseline(ctx, store.Baseline{TemplateID: in.ID, RunID: in.Body.RunID, SetBy: a.Caller(ctx)})
			if err != nil {
				return nil, Named(err, "template", in.ID)
			}
			a.Note(ctx, "baseline.set", in.ID, in.Body.RunID)
			return &reportBody[store.Baseline]{b}, nil
		})
	drop := Op(http.MethodDelete, path, "drop-baseline", "Templates", "Remove the baseline of a template",
		http.StatusNotFound)
	drop.DefaultStatus = http.StatusNoContent
	Handle(a, drop, func(ctx context.Context, in *IDInput) (*reportNothing, error) {
		if err := h.mayJudge(ctx, in.ID); err != nil {
			return nil, err
		}
		if err := h.store.DropBaseline(ctx, in.ID); err != nil {
			return nil, err
		}
		a.Note(ctx, "baseline.drop", in.ID, "")
		return &reportNothing{}, nil
	})
}
