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

const reportTag = "Runs"

// ReportTemplates is the part of the control store that the handlers read and write.
type ReportTemplates interface {
	ShareStore
	BaselineStore
	NoteStore
	Template(ctx context.Context, id string) (store.Template, error)
	Run(ctx context.Context, runID string) (engine.Run, error)
}

type reportBody[T any] struct{ Body T }

// optionalBody is a body, or 204 without one.
type optionalBody[T any] struct {
	Status int
	Body   *T
}

type reportNothing struct{}

type reportFile struct {
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

type reportHandlers struct {
	a      *API
	maker  *ReportMaker
	store  ReportTemplates
	opener shareOpener
}

// RegisterReport adds the handlers to an API and to its app.
func RegisterReport(a *API, app *fiber.App, m *ReportMaker, s ReportTemplates) {
	guesses, _ := a.Store.(auth.GuessStore) // without it each server counts its own
	h := &reportHandlers{a: a, maker: m, store: s, opener: shareOpener{
		gate: httpx.NewGate(2, 32, 4),
		unknownLinks: auth.NewGuessLimiter(
			"shared link from",
			10,
			unknownLinkRefill,
			guesses,
		),
		opens:   auth.NewLimiter(60, openRefill),
		audited: auth.NewLimiter(1, shareAuditInterval),
	}}
	report := NewOperation(
		http.MethodGet,
		"/api/runs/{id}/report",
		"run-report",
		reportTag,
		"The run's report, one HTML file",
		http.StatusNotFound,
		http.StatusConflict,
		http.StatusTooManyRequests,
	)
	report.Description = "Verdict, figures and charts of a run that is over. The file loads nothing from a " +
		"network and sends nothing."
	Attachment(&report, "The report.", fiber.MIMETextHTML)
	Handle(a, report, Throttled(a, h.registerReport))
	h.registerShares(app)
	h.registerNotes()
	h.registerComparisons()
	h.registerArchive()
	h.registerBaselines()
}

func (h *reportHandlers) registerReport(ctx context.Context, in *IDInput) (*reportFile, error) {
	r, err := h.maker.Report(ctx, in.ID)
	if err != nil {
		return nil, NotFoundAs(err, "run", in.ID)
	}
	return &reportFile{ContentType: fiber.MIMETextHTMLCharsetUTF8, CacheControl: "private, no-store", Body: r.HTML,
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

func (h *reportHandlers) registerNotes() {
	a := h.a
	const path = "/api/runs/{id}/note"
	Handle(
		a,
		NewOperation(http.MethodGet, path, "run-note", reportTag, "What was written about a run", http.StatusNotFound),
		func(ctx context.Context, in *IDInput) (*reportBody[store.RunNote], error) {
			n, err := h.store.RunNote(ctx, in.ID)
			return &reportBody[store.RunNote]{n}, NotFoundAs(err, "run", in.ID)
		},
	)
	Handle(a, NewOperation(http.MethodPut, path, "save-run-note", reportTag, "Write about a run", http.StatusNotFound,
		http.StatusConflict),
		func(ctx context.Context, in *noteInput) (*reportBody[store.RunNote], error) {
			n, err := h.store.SaveRunNote(ctx, store.RunNote{RunID: in.ID, Text: in.Body.Text, Version: in.Body.Version,
				UpdatedBy: a.Caller(ctx)})
			if err != nil {
				return nil, NotFoundAs(err, "run", in.ID)
			}
			h.opener.invalidate(in.ID)
			a.Audit(ctx, "run.note", in.ID, "")
			return &reportBody[store.RunNote]{n}, nil
		})
	Handle(
		a,
		NewOperation(http.MethodPut, "/api/runs/{id}/tags", "tag-run", reportTag, "Set the tags of a run that is not live",
			http.StatusNotFound, http.StatusConflict),
		func(ctx context.Context, in *tagsInput) (*reportBody[TaggedRun], error) {
			tags := in.Body.Tags
			if tags == nil {
				tags = map[string]string{}
			}
			if err := h.store.TagRun(ctx, in.ID, tags, in.Body.Was); err != nil {
				return nil, NotFoundAs(err, "run", in.ID)
			}
			h.opener.invalidate(in.ID)
			a.Audit(ctx, "run.tag", in.ID, "")
			return &reportBody[TaggedRun]{TaggedRun{in.ID, tags}}, nil
		},
	)
}

// authorizeBaseline refuses callers who may not use a template to say what its runs are held against.
func (h *reportHandlers) authorizeBaseline(ctx context.Context, templateID string) error {
	t, err := h.store.Template(ctx, templateID)
	if err != nil {
		return NotFoundAs(err, "template", templateID)
	}
	id, _ := auth.IdentityOf(ctx)
	return auth.AuthorizeTemplate(id.User, t)
}

// baseline answers 204 for a template without one, which is no mistake of who asks: pages of runs do.
func (h *reportHandlers) baseline(ctx context.Context, in *IDInput) (*optionalBody[store.Baseline], error) {
	b, err := h.store.Baseline(ctx, in.ID)
	if errors.Is(err, store.ErrNotFound) {
		if _, err := h.store.Template(ctx, in.ID); err != nil {
			return nil, NotFoundAs(err, "template", in.ID)
		}
		return &optionalBody[store.Baseline]{Status: http.StatusNoContent}, nil
	}
	if err != nil {
		return nil, err
	}
	return &optionalBody[store.Baseline]{http.StatusOK, &b}, nil
}

func (h *reportHandlers) registerBaselines() {
	a := h.a
	const path = "/api/templates/{id}/baseline"
	get := NewOperation(
		http.MethodGet,
		path,
		"baseline",
		"Templates",
		"The run that others of the template are held against",
		http.StatusNotFound,
	)
	get.Responses = map[string]*huma.Response{"204": {Description: "The template has no baseline."}}
	Handle(a, get, h.baseline)
	Handle(a, NewOperation(http.MethodPut, path, "set-baseline", "Templates", "Make a run the baseline of its template",
		http.StatusNotFound, http.StatusConflict),
		func(ctx context.Context, in *baselineInput) (*reportBody[store.Baseline], error) {
			if err := h.authorizeBaseline(ctx, in.ID); err != nil {
				return nil, err
			}
			b, err := h.store.SetBaseline(ctx, store.Baseline{TemplateID: in.ID, RunID: in.Body.RunID, SetBy: a.Caller(ctx)})
			if err != nil {
				return nil, NotFoundAs(err, "template", in.ID)
			}
			a.Audit(ctx, "baseline.set", in.ID, in.Body.RunID)
			return &reportBody[store.Baseline]{b}, nil
		})
	drop := NewOperation(http.MethodDelete, path, "drop-baseline", "Templates", "Remove the baseline of a template",
		http.StatusNotFound)
	drop.DefaultStatus = http.StatusNoContent
	Handle(a, drop, func(ctx context.Context, in *IDInput) (*reportNothing, error) {
		if err := h.authorizeBaseline(ctx, in.ID); err != nil {
			return nil, err
		}
		if err := h.store.DeleteBaseline(ctx, in.ID); err != nil {
			return nil, err
		}
		a.Audit(ctx, "baseline.drop", in.ID, "")
		return &reportNothing{}, nil
	})
}
